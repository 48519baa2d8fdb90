"""G2: every gold is verified, in every run. The receipt carries what that says about flakiness."""

import time
from collections.abc import Sequence

from factory.contract import GateReceipt, Judge, Subject
from factory.gates.case import case_of, golds, runs_code, seen, shown
from service.store.required_gates import GATE_VERSIONS
from service.words import GateResult, Split
from verifiers.contract import Outcome, Verdict

RUNS_TEXT, RUNS_CODE, RUNS_HOLDOUT = 2, 5, 20


def flake_bound(runs: int) -> float:
    """The largest rate of flaky failures that `runs` passes in a row leave possible, at 95 % confidence."""
    return float(1 - 0.05 ** (1 / runs))


def runs_for(subject: Subject) -> int:
    """How often each gold is run."""
    if subject.split is Split.HOLDOUT:
        return RUNS_HOLDOUT
    return RUNS_CODE if runs_code(subject.candidate) else RUNS_TEXT


class Gold:
    """The gate. The metric is the bound of `flake_bound`."""

    name = "G2"
    version = GATE_VERSIONS["G2"]

    def run(self, subjects: Sequence[Subject], judge: Judge) -> list[GateReceipt]:
        started = time.perf_counter()
        plans = [(subject, golds(subject.candidate), runs_for(subject)) for subject in subjects]
        cases = [
            case_of(subject.candidate, gold, seed)
            for subject, answers, runs in plans
            for gold in answers
            for seed in range(runs)
        ]
        verdicts = iter(judge.verify_many(cases))
        each_ms = (time.perf_counter() - started) * 1e3 / max(1, len(subjects))
        receipts = []
        for _, answers, runs in plans:
            results = [[next(verdicts) for _ in range(runs)] for _ in answers]
            receipts.append(self._receipt(answers, results, runs, each_ms))
        return receipts

    def _receipt(
        self, answers: Sequence[object], results: Sequence[Sequence[Verdict]], runs: int, took_ms: float
    ) -> GateReceipt:
        result, code, detail, evidence = GateResult.PASS, "ok", f"{len(answers)} golds, {runs} runs each", None
        image = None
        if not answers:
            result, code, detail = GateResult.ERROR, "no_gold", "give a gold: nothing shows that the task can be solved"
        for gold, verdicts in zip(answers, results, strict=True):
            wrong = [verdict for verdict in verdicts if verdict.outcome is not Outcome.VERIFIED]
            image = verdicts[0].image
            if not wrong:
                continue
            void = [verdict for verdict in wrong if not verdict.outcome.valid]
            found = void[0] if void else wrong[0]
            passed = len(verdicts) - len(wrong)
            result = GateResult.ERROR if void else GateResult.FAIL
            code = "void_verdict" if void else ("gold_flaky" if passed else "gold_not_verified")
            detail = f"{passed} of {len(verdicts)} runs verified: {found.outcome} {found.code}"
            evidence = {"gold": shown(gold), "verdicts": [seen(verdict) for verdict in verdicts]}  # type: ignore[arg-type]
            break
        return GateReceipt(
            self.name,
            self.version,
            result,
            code,
            detail[:500],
            metric=flake_bound(runs) if result is GateResult.PASS else None,
            threshold=flake_bound(runs),
            n_exec=sum(map(len, results)),
            image=image,
            evidence=evidence,
            duration_ms=took_ms,
        )
