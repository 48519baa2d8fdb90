"""What a verifier is, what it is given and what it answers.

A verifier is a small module of this package that exports the attributes of `Verifier`. It is pure: it never changes
what it is given, keeps nothing between calls, and gives the same finding for the same input in any process, thread,
locale, time zone and hash seed. `engine.py` runs verifiers; `composer.py` turns findings into rewards.

An outcome is not a reward: a reward exists only when the outcome is valid. What the *answer* causes (hostile text, a
crash of its code) is a valid outcome; what *we* cause (no sandbox, a crash of the verifier) is void and has none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, NamedTuple, Protocol

from sandbox.contract import Backend, Limits

Response = str | Mapping[str, Any] | None
"""What the policy wrote: text, `{"messages": [...]}`, `{"tool_calls": [...]}`, or nothing."""


class Outcome(StrEnum):
    VERIFIED = "verified"
    FAILED = "failed"
    FORMAT_ERROR = "format_error"
    CANDIDATE_ERROR = "candidate_error"
    CANDIDATE_LIMIT = "candidate_limit"
    SANDBOX_ERROR = "sandbox_error"
    VERIFIER_ERROR = "verifier_error"
    JUDGE_ERROR = "judge_error"
    SKIPPED = "skipped"

    @property
    def valid(self) -> bool:
        """Whether a reward may exist: the answer was judged, whatever came of it."""
        return self in _VALID


_VALID = frozenset(
    (
        Outcome.VERIFIED,
        Outcome.FAILED,
        Outcome.FORMAT_ERROR,
        Outcome.CANDIDATE_ERROR,
        Outcome.CANDIDATE_LIMIT,
    )
)


@dataclass(frozen=True, slots=True)
class Case:
    """One response to judge, with everything that the verdict may depend on."""

    verifier: str
    params: Mapping[str, Any]
    reference: Mapping[str, Any]
    response: Response
    limits: Limits = field(default_factory=Limits)
    image: str = "python"
    files: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0


class Finding(NamedTuple):
    """What a verifier found. `detail` and `extracted` never contain the reference; `evidence` may."""

    outcome: Outcome
    code: str
    detail: str = ""
    extracted: str | None = None
    normal_form: str | None = None
    tier: str | None = None
    process: float | None = None
    trust: str | None = None
    image: str | None = None
    evidence: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds. Waiting for a worker is `queue_ms` and never charged to the answer."""

    queue_ms: float = 0.0
    verify_ms: float = 0.0
    cpu_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judged result of one response. `reward` is null exactly when the outcome is void."""

    outcome: Outcome
    reward: float | None
    process: float | None
    code: str
    detail: str
    extracted: str | None
    normal_form: str | None
    tier: str | None
    trust: str | None
    verifier: str
    verifier_version: str
    fingerprint: str
    image: str | None
    seed: int
    cost: Cost
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Context:
    """What the engine lends to a verifier besides the case itself."""

    sandbox: Backend | None
    limits: Limits
    image: str
    files: Mapping[str, str]
    seed: int
    judge: "PartJudge"


class PartJudge(Protocol):
    """Judges one part of a composite; the engine's own `verify`, as a protocol."""

    def __call__(self, case: Case) -> Verdict: ...


CostClass = Literal["µs", "ms", "box", "model"]
Relation = Literal["equal", "compatible", "contradict"]


class Verifier(Protocol):
    """The attributes of a verifier module. Bump `version` on any change that can change a verdict.

    A module of cost `ms` may also export `quick(response, reference, params) -> Finding | None`, which runs in the
    calling thread and settles what microseconds can settle; `gold_case(case) -> Case`, its own reference as the answer,
    to tell whose fault a killed worker was; and `warm_imports` and `warm()`, what a worker template loads first.
    """

    name: str
    version: str
    cost: CostClass
    params_schema: Mapping[str, Any]
    reference_schema: Mapping[str, Any]

    def lint(self, reference: Mapping[str, Any], params: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with this reference and these params beyond their schemas; empty when nothing is."""

    def relate(self, a: Mapping[str, Any], b: Mapping[str, Any], params: Mapping[str, Any]) -> Relation:
        """Whether some response could satisfy both references."""

    def verify(
        self, response: Response, reference: Mapping[str, Any], params: Mapping[str, Any], context: Context
    ) -> Finding:
        """Judge one response. Reference and params have passed their schemas and the lint.

        Raises:
            Exception: anything raised is our fault and becomes `verifier_error`, or `sandbox_error` for the
                errors of `sandbox.contract`.
        """
