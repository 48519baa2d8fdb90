"""JSON Schema fragments that several verifiers share. Unknown keys are refused everywhere."""

from collections.abc import Mapping
from typing import Any

VALID_OUTCOMES = ("verified", "failed", "format_error", "candidate_error", "candidate_limit")

REWARDS: Mapping[str, Any] = {
    "type": "object",
    "properties": {outcome: {"type": "number", "minimum": -1, "maximum": 1} for outcome in VALID_OUTCOMES},
    "additionalProperties": False,
}

LIMITS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "wall_s": {"type": "number", "minimum": 0.1, "maximum": 3600},
        "cpu_s": {"type": "number", "minimum": 0.1, "maximum": 7200},
        "memory_mb": {"type": "integer", "minimum": 16, "maximum": 16384},
        "output_kb": {"type": "integer", "minimum": 1, "maximum": 16384},
        "processes": {"type": "integer", "minimum": 1, "maximum": 512},
        "disk_mb": {"type": "integer", "minimum": 1, "maximum": 4096},
    },
    "additionalProperties": False,
}

TEXT_PARAMS: Mapping[str, Any] = {
    "slot": {
        "type": "string",
        "pattern": r"^(auto|boxed|answer_line|hash|last_number|raw|tag:[A-Za-z_][A-Za-z0-9_.:-]{0,63})$",
        "default": "auto",
    },
    "think": {"enum": ["strip", "keep"], "default": "strip"},
    "max_chars": {"type": "integer", "minimum": 1, "maximum": 2_000_000, "default": 200_000},
    "on_truncated": {"enum": ["score", "skip"], "default": "score"},
    "rewards": REWARDS,
}

ANSWER: Mapping[str, Any] = {"type": ["string", "number"]}
ANSWERS: Mapping[str, Any] = {"type": "array", "items": ANSWER, "minItems": 1, "maxItems": 1000}


def text_params(**own: Any) -> dict[str, Any]:
    """The params schema of a text verifier: what all of them take, and its own keys."""
    return {"type": "object", "properties": {**TEXT_PARAMS, **own}, "additionalProperties": False}


def answers_of(reference: Mapping[str, Any]) -> list[str]:
    """The accepted answers of a reference that has `answer` or `answers`, as text."""
    found = list(reference.get("answers") or ())
    if "answer" in reference:
        found.insert(0, reference["answer"])
    return [answer if isinstance(answer, str) else repr(answer) for answer in found]


def blank_answers(reference: Mapping[str, Any]) -> list[str]:
    """Lint: answers that hold nothing. Two nothings are never equal, so a blank gold can only pay silence."""
    return ["an answer is blank" for answer in answers_of(reference) if not answer.strip()][:1]
