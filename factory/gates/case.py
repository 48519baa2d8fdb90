"""Cases that gates put to the engine: a subject's verifier with one response."""

from collections.abc import Mapping
from typing import Any

from factory.contract import Candidate
from verifiers.contract import Case, Response, Verdict
from verifiers.registry import VERIFIERS

MAX_SHOWN = 2000


def case_of(candidate: Candidate, response: Response, seed: int = 0) -> Case:
    """The case of this response to this candidate."""
    return Case(
        verifier=candidate.verifier.name,
        params=candidate.verifier.params,
        reference=candidate.reference,
        response=response,
        limits=candidate.limits.for_sandbox(),
        image=candidate.environment.image,
        files=candidate.environment.files,
        seed=seed,
    )


def runs_code(candidate: Candidate) -> bool:
    """Whether a verdict of this candidate needs a sandbox, by its verifier or one inside it."""
    return _boxed(candidate.verifier.name, candidate.verifier.params)


def _boxed(name: str, params: Mapping[str, Any]) -> bool:
    if name in VERIFIERS and VERIFIERS[name].cost == "box":
        return True
    parts = params.get("parts", ())
    return isinstance(parts, list) and any(
        isinstance(part, dict) and _boxed(str(part.get("verifier")), part.get("params") or {}) for part in parts
    )


def golds(candidate: Candidate) -> list[Response]:
    """The right answers: the author's, else the reference's own rendering, if there is one."""
    if candidate.gold:
        return list(candidate.gold)
    answers = [candidate.reference.get("answer"), *_listed(candidate.reference.get("answers"))]
    texts: list[Response] = [str(answer) for answer in answers if isinstance(answer, str | int | float)]
    return [text for text in texts if str(text).strip()][:1]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def shown(response: Response) -> Any:
    """A response as evidence: cut, since a null may be huge."""
    return response[:MAX_SHOWN] if isinstance(response, str) else response


def seen(verdict: Verdict) -> dict[str, Any]:
    """A verdict as evidence."""
    return {
        "outcome": str(verdict.outcome),
        "reward": verdict.reward,
        "code": verdict.code,
        "detail": verdict.detail[:MAX_SHOWN],
        "extracted": verdict.extracted,
    }
