"""G1: made again elsewhere, the task is the same; judged again, its gold is judged the same.

Elsewhere is a fresh process with another hash seed, time zone, locale and working folder. A task that no generator of
ours made cannot be made again: only its judging is repeated. Not covered: other machines and Python versions.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from factory.contract import GateReceipt, Judge, Subject
from factory.elsewhere import Elsewhere, Failed, judged_and_made
from factory.gates.case import case_of, golds, runs_code, seen
from service.store.required_gates import GATE_VERSIONS
from service.words import GateResult
from verifiers.contract import Case, Verdict

RUNS = 2


class Determinism:
    """The gate. One fresh process serves all generated subjects of a call."""

    name = "G1"
    version = GATE_VERSIONS["G1"]

    def run(self, subjects: Sequence[Subject], judge: Judge) -> list[GateReceipt]:
        started = time.perf_counter()
        cases = [self._case(subject) for subject in subjects]
        verdicts = iter(judge.verify_many([case for case in cases if case for _ in range(RUNS)]))
        judged = [[next(verdicts) for _ in range(RUNS)] if case else [] for case in cases]
        elsewhere = self._elsewhere(subjects, cases)
        each_ms = (time.perf_counter() - started) * 1e3 / max(1, len(subjects))
        return [
            self._receipt(subject, judged[place], elsewhere, place, each_ms) for place, subject in enumerate(subjects)
        ]

    def _case(self, subject: Subject) -> Case | None:
        if subject.candidate.origin is not None and runs_code(subject.candidate):
            return None  # it is made again here; G2 judges its golds more often than this gate would
        answers = golds(subject.candidate)
        return case_of(subject.candidate, answers[0]) if answers else None

    def _elsewhere(self, subjects: Sequence[Subject], cases: Sequence[Case | None]) -> Elsewhere | Failed:
        origins = {place: subject.candidate.origin for place, subject in enumerate(subjects)}
        made = {place: origin for place, origin in origins.items() if origin is not None}
        if not made:
            return Elsewhere({}, {})
        text = {
            place: case
            for place, case in enumerate(cases)
            if place in made and case is not None and not runs_code(subjects[place].candidate)
        }
        uris = {place: source.uri for place in made if (source := subjects[place].candidate.source) is not None}
        return judged_and_made(made, uris, text)

    def _receipt(
        self, subject: Subject, verdicts: Sequence[Verdict], elsewhere: Elsewhere | Failed, place: int, took_ms: float
    ) -> GateReceipt:
        outcomes = [str(verdict.outcome) for verdict in verdicts]
        evidence: dict[str, Any] = {"verdicts": [seen(verdict) for verdict in verdicts]}

        def receipt(result: GateResult, code: str, detail: str = "") -> GateReceipt:
            shown = evidence if result not in (GateResult.PASS, GateResult.NOT_APPLICABLE) else None
            different = float(len(set(outcomes)) or 1)
            return GateReceipt(
                self.name,
                self.version,
                result,
                code,
                detail,
                metric=different,
                threshold=1.0,
                n_exec=len(outcomes),
                evidence=shown,
                duration_ms=took_ms,
            )

        if any(not verdict.outcome.valid for verdict in verdicts):
            return receipt(GateResult.ERROR, "void_verdict", verdicts[-1].code)
        if len({(verdict.outcome, verdict.reward, verdict.process) for verdict in verdicts}) > 1:
            return receipt(GateResult.FAIL, "judged_differently", " then ".join(outcomes))
        if isinstance(elsewhere, Failed):
            if subject.candidate.origin is not None:
                return receipt(GateResult.ERROR, "elsewhere_failed", elsewhere.detail)
            return receipt(GateResult.PASS, "ok", "judged again")
        return receipt(*self._compared(subject, outcomes, elsewhere, place, evidence))

    def _compared(
        self,
        subject: Subject,
        outcomes: Sequence[str],
        elsewhere: Elsewhere,
        place: int,
        evidence: dict[str, Any],
    ) -> tuple[GateResult, str, str]:
        made: Mapping[int, str | None] = elsewhere.hashes
        if made.get(place, subject.content_hash) not in (subject.content_hash, None):
            evidence["content_hash"] = {"here": subject.content_hash, "elsewhere": made[place]}
            return GateResult.FAIL, "made_differently", "the generator made another task elsewhere"
        if outcomes and elsewhere.outcomes.get(place, outcomes[0]) != outcomes[0]:
            evidence["elsewhere"] = elsewhere.outcomes[place]
            return GateResult.FAIL, "judged_differently", f"{outcomes[0]} here, {elsewhere.outcomes[place]} elsewhere"
        done = [*(["made again"] if made.get(place) else []), *(["judged again"] if outcomes else [])]
        return GateResult.PASS, "ok", " and ".join(done)
