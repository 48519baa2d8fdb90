"""What the numbers of the record mean: one function and one sentence for each name."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from verifiers.contract import Outcome

Z = 1.959964
"""Two-sided 95 %."""

DEFINITIONS: Mapping[str, str] = {
    "valid attempt": "its outcome is verified, failed, format_error, candidate_error or candidate_limit",
    "pass rate": "verified ÷ valid, with its Wilson interval; the invalid ones are counted beside, never inside",
    "infra-error rate": "(sandbox_error + verifier_error + judge_error) ÷ (valid + those); skipped is in neither",
    "zero-variance group": "at least 2 valid rollouts, and all raw rewards within 1e-6 of each other",
    "effective share": "1 − zero-variance share, over groups with results",
    "coverage": "share of the snapshot's tasks served at least once, withdrawn groups left out",
    "funnel": "newest receipt of each gate for each task's newest version",
    "trainable": "active, split train",
}


class Interval(NamedTuple):
    lo: float
    hi: float


def wilson(successes: float, n: float) -> Interval | None:
    """The 95 % interval of a share; None when nothing was measured."""
    if n <= 0:
        return None
    p = successes / n
    centre = (p + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z / (1 + Z * Z / n) * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
    return Interval(max(0.0, centre - half), min(1.0, centre + half))


class Rates(NamedTuple):
    """Counts that rates are made of."""

    verified: int
    valid: int
    infra: int
    skipped: int

    @property
    def invalid(self) -> int:
        return self.infra + self.skipped


def rates(outcomes: Mapping[str, int]) -> Rates:
    """Sort outcomes into what a rate needs."""
    valid = sum(count for outcome, count in outcomes.items() if Outcome(outcome).valid)
    skipped = outcomes.get(Outcome.SKIPPED, 0)
    return Rates(outcomes.get(Outcome.VERIFIED, 0), valid, sum(outcomes.values()) - valid - skipped, skipped)
