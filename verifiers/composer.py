"""From a finding to a reward (law 2). The only place where a reward is made.

verified 1.0 · format error −1.0 · failed, candidate error and candidate limit: the process score below 1, else 0.0 ·
void outcomes: none. A task may override the five numbers, inside [−1, 1] and in this order.
"""

from collections.abc import Mapping
from typing import Any

from verifiers.contract import Finding, Outcome

HIGHEST_UNVERIFIED = 0.99
DEFAULTS: Mapping[Outcome, float] = {
    Outcome.VERIFIED: 1.0,
    Outcome.FAILED: 0.0,
    Outcome.FORMAT_ERROR: -1.0,
    Outcome.CANDIDATE_ERROR: 0.0,
    Outcome.CANDIDATE_LIMIT: 0.0,
}
_MIDDLE = (Outcome.FAILED, Outcome.CANDIDATE_ERROR, Outcome.CANDIDATE_LIMIT)


def reward(finding: Finding, rewards: Mapping[str, Any] | None = None) -> float | None:
    """The reward of a finding; null exactly when its outcome is void.

    An overridden number of one of the three middle outcomes replaces the process score too: the author named it.
    """
    outcome = finding.outcome
    if not outcome.valid:
        return None
    if rewards and outcome in rewards:
        return float(rewards[outcome])
    if outcome in _MIDDLE and finding.process is not None:
        share = min(max(finding.process, 0.0), HIGHEST_UNVERIFIED)
        return min(share, _below(rewards)) if rewards else share
    return DEFAULTS[outcome]


def faults(rewards: Mapping[str, Any]) -> list[str]:
    """What is wrong with an override: numbers that would pay a failure as much as a success."""
    values = {outcome: float(rewards.get(outcome, default)) for outcome, default in DEFAULTS.items()}
    middle = [values[outcome] for outcome in _MIDDLE]
    found = []
    if values[Outcome.FORMAT_ERROR] > min(middle):
        found.append("format_error must not be above failed, candidate_error or candidate_limit")
    if max(middle) >= values[Outcome.VERIFIED]:
        found.append("verified must be above failed, candidate_error and candidate_limit")
    return found


def _below(rewards: Mapping[str, Any]) -> float:
    """A process score stays below what `verified` pays."""
    top = float(rewards.get(Outcome.VERIFIED, DEFAULTS[Outcome.VERIFIED]))
    return top * HIGHEST_UNVERIFIED if top > 0 else top - 0.01
