"""What rollouts say about a task: a Beta posterior of the pass rate of one policy lineage. Pure.

The policy moves, so evidence fades: what is `lag` versions away from the newest counts exp(−lag/8), whether it arrives
late or lies in the posterior already. Our own failures have no reward and are no evidence.

Not covered: features of tasks, an ability shared by tasks, guess floors. Each task is measured alone.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

EQUAL = 1e-6
"""Rewards closer than this are equal: a group of them has no signal."""

FADE = 8.0
"""Policy versions after which evidence counts 1/e."""

BUCKETS = 20


class Posterior(NamedTuple):
    """Beta(alpha, beta); Beta(1, 1) is a task never seen. `version` is the newest policy version it knows of."""

    alpha: float = 1.0
    beta: float = 1.0
    version: int | None = None

    @property
    def mean(self) -> float:
        return self.alpha / (self.alpha + self.beta)

    @property
    def bucket(self) -> int:
        """The mean in steps of 1/20."""
        return min(BUCKETS - 1, int(self.mean * BUCKETS))


def updated(before: Posterior, rewards: Sequence[float], version: int | None, newest: int | None = None) -> Posterior:
    """The posterior after these rewards of valid rollouts, made by policy version `version`.

    A reward counts as success to the part by which it lies in [0, 1]; −1 counts as 0. `newest` is the newest version of
    the training that goes on now: it may be smaller than what the posterior knows, when a policy began anew or went
    back to a checkpoint. Unset, it is the largest version known. An unknown version is taken as the newest.

    Raises:
        ValueError: a reward is not finite.
    """
    if not all(map(math.isfinite, rewards)):
        raise ValueError("a reward must be finite")
    known = [version, newest] if newest is not None else [version, before.version]
    latest = max((number for number in known if number is not None), default=None)
    old = _faded(latest, before.version)
    weight = _faded(latest, version)
    success = sum(min(1.0, max(0.0, reward)) for reward in rewards)
    return Posterior(
        1 + (before.alpha - 1) * old + success * weight,
        1 + (before.beta - 1) * old + (len(rewards) - success) * weight,
        latest,
    )


def informative(rewards: Sequence[float]) -> bool:
    """Whether a group teaches anything: its raw rewards of valid rollouts are not all equal.

    Raises:
        ValueError: a reward is not finite.
    """
    if not all(map(math.isfinite, rewards)):
        raise ValueError("a reward must be finite")
    return len(rewards) > 1 and max(rewards) - min(rewards) > EQUAL


def zero_variance_kind(rewards: Sequence[float]) -> str | None:
    """Why a group of at least two valid rollouts has no signal; None when it has one, or is too small to say."""
    if len(rewards) < 2 or informative(rewards):
        return None
    if min(rewards) >= 1 - EQUAL:
        return "too_easy"
    if max(rewards) <= -1 + EQUAL:
        return "dead_format"
    return "flat_partial" if min(rewards) > 0 and max(rewards) < 1 else "too_hard"


def value(p: float, n: int) -> float:
    """The worth of a group of `n` at pass rate `p`: variance of the signal × chance that the group is not flat."""
    return p * (1 - p) * p_informative(p, n)


def unseen_value(n: int) -> float:
    """The mean of `value` over all pass rates: what is assumed of a task before anything like it was measured."""
    return 1 / 6 - 2 / ((n + 2) * (n + 3))


def p_informative(p: float, n: int) -> float:
    """The chance that a group of `n` is not flat at pass rate `p`."""
    return 1.0 - p**n - (1 - p) ** n if n > 1 else 0.0


def expected_p_informative(alpha: float, beta: float, n: int) -> float:
    """The mean of `p_informative` over Beta(alpha, beta): honest about a task that was hardly measured."""
    if n < 2:
        return 0.0
    flat_up = math.prod((alpha + i) / (alpha + beta + i) for i in range(n))
    flat_down = math.prod((beta + i) / (alpha + beta + i) for i in range(n))
    return max(0.0, 1.0 - flat_up - flat_down)


def band(successes: int, valid: int) -> str:
    """The difficulty band of a task by its valid attempts (one policy lineage)."""
    if valid == 0:
        return "unmeasured"
    if successes in {0, valid} and valid < 4:
        return "unsure"
    if successes in {0, valid}:
        return "too_hard" if successes == 0 else "too_easy"
    mean = (successes + 1) / (valid + 2)
    return "hard" if mean < 1 / 3 else "medium" if mean < 2 / 3 else "easy"


def bucket_values(n: int) -> Mapping[int, float]:
    """The worth of a group of `n` in each bucket, at the bucket's centre."""
    return {bucket: value((bucket + 0.5) / BUCKETS, n) for bucket in range(BUCKETS)}


def _faded(newest: int | None, version: int | None) -> float:
    return 1.0 if newest is None or version is None else math.exp(-abs(newest - version) / FADE)
