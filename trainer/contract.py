"""What the parts of the trainer exchange: frozen records, and the protocols of stream and engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

Message = Mapping[str, Any]


class TrainerError(Exception):
    """The trainer cannot go on; the message says what to change."""


class StreamDry(TrainerError):
    """The stream served nothing within the patience: no servable task, or every lease is held by others."""


class Superseded(TrainerError):
    """Another trainer restored this stream: this one must stop and acknowledge nothing."""


class LeaseLost(TrainerError):
    """The lease ran out before the acknowledgement; its ordinals are served again."""


@dataclass(frozen=True, slots=True)
class Item:
    """One leased group: `ordinal` is its place in the stream's order, `ref` the opaque name of the task."""

    ordinal: int
    group_id: str
    lease_id: str
    ref: str
    domain: str
    prompt: Sequence[Message]
    group_size: int
    tries: int = 1

    def as_attempt(self, attempt: int) -> "Item":
        """The group as the trainer counts its tries, from 0, whatever number of times it was served.

        Work that a crash makes it do again is the same work: under the same group id it is judged and counted once.
        """
        head = self.group_id.removesuffix(f".{self.tries}")
        return self if head == self.group_id else replace(self, group_id=f"{head}.{attempt + 1}")


@dataclass(frozen=True, slots=True)
class Request:
    """One sample to generate: the seed alone decides its randomness, whoever shares its batch."""

    prompt_ids: tuple[int, ...]
    seed: int


@dataclass(frozen=True, slots=True)
class Sample:
    """One response by its ids: `logps` are of the behaviour policy after temperature, one for each id.

    `finish` is "stop" (the last id is EOS) or "length".
    """

    prompt_ids: tuple[int, ...]
    ids: tuple[int, ...]
    logps: tuple[float, ...]
    finish: str
    seed: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the service found. `reward` is None when the failure was the service's own: it is never a number."""

    id: str
    outcome: str
    reward: float | None


@dataclass(frozen=True, slots=True)
class Group:
    """All samples of one leased item, and their verdicts in the same order once they are known."""

    item: Item
    samples: tuple[Sample, ...]
    verdicts: tuple[Verdict, ...] = ()

    @property
    def valid(self) -> int:
        return sum(verdict.reward is not None for verdict in self.verdicts)


@dataclass(frozen=True, slots=True)
class Completion:
    """The acknowledgement of one trained (or deliberately skipped) ordinal."""

    ordinal: int
    lease_id: str
    verdict_ids: tuple[str, ...]
    weight: float
    tokens: int
    mean_abs_advantage: float
    step: int
    policy_version: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Attribution:
    """Which policy made the responses; `run` tells training attempts from evaluation attempts."""

    policy: str
    policy_version: int
    run: str


@dataclass(frozen=True, slots=True)
class StepReport:
    """One optimiser step as it is logged."""

    step: int
    metrics: Mapping[str, float] = field(default_factory=dict)


class TaskStream(Protocol):
    """The order of tasks and the judge of responses. The service is one; tests have one backed by a file."""

    identity: str
    snapshot: str

    def lease(self, n: int, policy_version: int) -> list[Item]:
        """Up to `n` groups: un-acknowledged ones first, in ordinal order, then new ones.

        Raises:
            StreamDry: nothing came within the patience.
            Superseded: another consumer owns the stream.
        """
        ...

    def verify(self, groups: Sequence[Group], attribution: Attribution) -> list[Group]:
        """The same groups with verdicts. The same content again gives the same verdicts, counted once."""
        ...

    def complete(self, items: Sequence[Completion]) -> list[int]:
        """Acknowledge; answers the ordinals whose lease was lost (they will be served again).

        Raises:
            Superseded: another consumer owns the stream.
        """
        ...

    def release(self, items: Sequence[Item], reason: str) -> None:
        """Hand groups back: they are served again before anything new."""
        ...

    def token(self) -> str:
        """The position, to be stored inside a checkpoint before it is acknowledged."""
        ...

    def restore(self, token: str) -> None:
        """Go back to the token's position and fence off every other consumer."""
        ...

    def close(self) -> None: ...


class RolloutEngine(Protocol):
    """Generates responses. Ids in, ids out: nothing is decoded on the way."""

    def generate(self, requests: Sequence[Request], temperature: float, max_new_tokens: int) -> list[Sample]:
        """One sample for each request, in order; temperature 0 is greedy."""
        ...
