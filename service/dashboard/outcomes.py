"""The outcomes of a verdict in the order in which pages show them, and the tone of each."""

from collections.abc import Mapping

from verifiers.contract import Outcome

OUTCOME_TONES: Mapping[str, str] = {
    Outcome.VERIFIED: "tone-8",
    Outcome.FAILED: "tone-1",
    Outcome.FORMAT_ERROR: "tone-5",
    Outcome.CANDIDATE_ERROR: "tone-2",
    Outcome.CANDIDATE_LIMIT: "tone-4",
    Outcome.SANDBOX_ERROR: "tone-6",
    Outcome.VERIFIER_ERROR: "tone-6",
    Outcome.JUDGE_ERROR: "tone-6",
    Outcome.SKIPPED: "tone-7",
}
"""Those that have a reward first; then our own failures, which are never part of a rate, and what was not judged."""
