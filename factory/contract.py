"""What a generator is, what it makes, what a gate is and what it answers.

A generator is pure: what it makes depends on its version, the source's hash, the seed and the knobs alone, in any
process, locale, time zone and hash seed. A gate changes nothing it is given. A verdict whose outcome is void never
decides a gate: the receipt is then `error`, and the gate is run again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from service.store.drafts import CandidateDraft
from service.words import GateResult, Split
from verifiers.contract import Case, Verdict

Candidate = CandidateDraft


@dataclass(frozen=True, slots=True)
class Source:
    """What a generator reads. `files` maps paths to text; `uri` is a package URL where the source is a package."""

    uri: str
    sha256: str
    licence: str
    files: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Made:
    """The candidate at one index of a generator's sequence."""

    index: int
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class Dropped:
    """Nothing could be made at this index, and why: a stable code, then words."""

    index: int
    code: str
    detail: str


class SourceMissing(Exception):
    """The source is not installed or not known here; the message names the command that adds it."""


class BadKnobs(ValueError):
    """The knobs break the generator's schema or cannot go together; the message says which."""


class Generator(Protocol):
    """Makes candidates in a fixed order. `knobs_schema` is JSON Schema; its defaults are filled in before use."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def domain(self) -> str: ...

    @property
    def needs_sandbox(self) -> bool: ...

    @property
    def knobs_schema(self) -> Mapping[str, Any]: ...

    def load(self, uri: str | None) -> Source | None:
        """Read the source; None when the generator needs none.

        Raises:
            SourceMissing: it is not here.
        """

    def candidates(
        self, source: Source | None, seed: int, knobs: Mapping[str, Any], start: int = 0
    ) -> Iterator[Made | Dropped]:
        """The sequence from index `start` on; it ends when the source is exhausted.

        Raises:
            BadKnobs: the knobs cannot go together.
        """


class Subject(NamedTuple):
    """What a gate looks at: a candidate before it is stored, or a stored task's version.

    `task_id` is None before it is stored. `split` matters to how often golds are run.
    """

    candidate: Candidate
    content_hash: str
    split: Split | None = None
    task_id: str | None = None
    version: int = 1


@dataclass(frozen=True, slots=True)
class GateReceipt:
    """One gate's result for one subject. `evidence` is stored by hash, behind `answers:read`."""

    gate: str
    gate_version: str
    result: GateResult
    code: str
    detail: str = ""
    metric: float | None = None
    threshold: float | None = None
    n_exec: int = 0
    seed: int = 0
    image: str | None = None
    evidence: Mapping[str, Any] | None = None
    duration_ms: float = 0.0


class Judge(Protocol):
    """Judges many cases, in their order: the engine."""

    def verify_many(self, cases: Sequence[Case]) -> list[Verdict]: ...


class Gate(Protocol):
    """One check. `run` answers for each subject, in their order."""

    name: str
    version: str

    def run(self, subjects: Sequence[Subject], judge: Judge) -> list[GateReceipt]: ...
