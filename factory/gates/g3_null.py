"""G3: answers without content earn nothing: empty, blank, a refusal, the prompt itself, stub code, the author's nulls.

Not covered: constants that happen to be right (judged per family, not per task) and deliberate exploits.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from factory.contract import Candidate, GateReceipt, Judge, Subject
from factory.gates.case import case_of, runs_code, seen, shown
from service.store.required_gates import GATE_VERSIONS
from service.words import GateResult
from verifiers.canonical import canonical_json
from verifiers.contract import Outcome, Response, Verdict

REFUSAL = "I'm sorry, but I can't help with that."


def nulls_of(candidate: Candidate) -> dict[str, Response]:
    """Every answer that must earn nothing, by what it is; equal ones once."""
    found: dict[str, Response] = {
        "empty": "",
        "blank": " \n\t ",
        "refusal": REFUSAL,
        "echo": "\n".join(message.content for message in candidate.prompt),
    }
    if runs_code(candidate) and candidate.verifier.params.get("language", "python") == "python":
        found |= _stubs(candidate.verifier.params)
    found |= {f"null_{place}": null for place, null in enumerate(candidate.nulls)}
    unique: dict[str, Response] = {}
    texts = set()
    for name, null in found.items():
        text = canonical_json(null)
        if text not in texts:
            texts.add(text)
            unique[name] = null
    return unique


def _stubs(params: Mapping[str, Any]) -> dict[str, Response]:
    entries = params.get("entries") or [params.get("entry")]
    names = [name for name in entries if isinstance(name, str) and name.isidentifier()]
    if not names:
        return {"stub": "", "pass": "pass\n"}
    head = "def {}(*args, **kwargs):\n    "
    return {
        what: "\n".join(head.format(name) + body + "\n" for name in names)
        for what, body in (("stub", "..."), ("pass", "pass"), ("return_none", "return None"))
    }


class Null:
    """The gate. The metric is the largest reward that a null earned."""

    name = "G3"
    version = GATE_VERSIONS["G3"]

    def run(self, subjects: Sequence[Subject], judge: Judge) -> list[GateReceipt]:
        started = time.perf_counter()
        plans = [nulls_of(subject.candidate) for subject in subjects]
        cases = [
            case_of(subject.candidate, null)
            for subject, nulls in zip(subjects, plans, strict=True)
            for null in nulls.values()
        ]
        verdicts = iter(judge.verify_many(cases))
        each_ms = (time.perf_counter() - started) * 1e3 / max(1, len(subjects))
        return [self._receipt(nulls, [next(verdicts) for _ in nulls], each_ms) for nulls in plans]

    def _receipt(self, nulls: Mapping[str, Response], verdicts: Sequence[Verdict], took_ms: float) -> GateReceipt:
        result, code, detail, evidence = GateResult.PASS, "ok", f"{len(nulls)} nulls earn nothing", None
        for (name, null), verdict in zip(nulls.items(), verdicts, strict=True):
            if not verdict.outcome.valid:
                result, code, detail = GateResult.ERROR, "void_verdict", f"{name}: {verdict.outcome} {verdict.code}"
            elif _paid(verdict):
                result, code, detail = GateResult.FAIL, "null_paid", f"{name} earns {verdict.reward}"
            else:
                continue
            evidence = {"null": name, "response": shown(null), "verdict": seen(verdict)}
            if result is GateResult.FAIL:
                break
        rewards = [verdict.reward for verdict in verdicts if verdict.reward is not None]
        return GateReceipt(
            self.name,
            self.version,
            result,
            code,
            detail[:500],
            metric=max(rewards, default=None),
            threshold=0.0,
            n_exec=len(verdicts),
            image=next((verdict.image for verdict in verdicts if verdict.image), None),
            evidence=evidence,
            duration_ms=took_ms,
        )


def _paid(verdict: Verdict) -> bool:
    """Verified, or paid without being so: a process score is the task's own floor, and below 1 by rule."""
    if verdict.outcome is Outcome.VERIFIED:
        return True
    return verdict.process is None and verdict.reward is not None and verdict.reward > 0
