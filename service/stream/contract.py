"""The frozen types of streams: what is asked for, what a policy is given, what it answers."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple, Protocol

from pydantic import Field, StringConstraints, field_validator

from service.errors import FieldError, Invalid
from service.store.drafts import Domain, Strict
from service.store.ids import PATTERN
from service.words import AckMode, Split

EVERYTHING = "*"
"""The one share of a stream that names no domain."""

Name = Annotated[str, StringConstraints(pattern=r"^[\w.:+/-]{1,120}$")]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]


class DomainShare(Strict):
    """One domain of a stream: its weight, and its targets for adaptive shares (kept, not acted upon yet)."""

    weight: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    value: Annotated[float, Field(ge=0)] = 1.0
    target: Annotated[float, Field(ge=0, le=1)] = 1.0
    floor: Annotated[float, Field(ge=0, le=1)] | None = None
    cap: Annotated[float, Field(gt=0, le=1)] | None = None
    protected: bool = False


class PolicyChoice(Strict):
    """How tasks are chosen. `lineage` names whose difficulty is learnt and used; unset: the stream's name."""

    kind: Literal["uniform", "signal"] = "uniform"
    lineage: Name | None = None
    uniform_share: Annotated[float, Field(ge=0, le=1)] = 0.1
    explore_share: Annotated[float, Field(ge=0, le=1)] = 0.1
    cooldown: Annotated[int, Field(ge=0, le=10_000)] = 8
    max_reuse: Annotated[int, Field(ge=1)] = 20


class StreamRequest(Strict):
    """The body of `POST /v1/streams`. No domain means every task of the split."""

    name: Name
    split: Split = Split.TRAIN
    domains: Annotated[
        dict[Domain, Annotated[float, Field(gt=0, le=1e6)] | DomainShare], Field(default_factory=dict, max_length=256)
    ]
    policy: PolicyChoice = PolicyChoice()
    group_size: Annotated[int, Field(ge=1, le=1024)] = 8
    seed: Count = 0
    max_lag: Annotated[int, Field(ge=0, le=10_000)] = 8
    ack: AckMode = AckMode.COMPLETE

    @field_validator("domains")
    @classmethod
    def _apart(cls, domains: dict[str, float | DomainShare]) -> dict[str, float | DomainShare]:
        for name in domains:
            inside = [other for other in domains if other.startswith(f"{name}.")]
            if inside:
                rule = f"{inside[0]} lies inside {name}; a task must belong to one share"
                raise Invalid("The domains overlap.", errors=[FieldError("/domains", "overlap", rule)])
        return domains

    @property
    def weights(self) -> Mapping[str, float]:
        """The weight of each share; `EVERYTHING` when no domain is named."""
        found = {
            name: share.weight if isinstance(share, DomainShare) else share for name, share in self.domains.items()
        }
        return found or {EVERYTHING: 1.0}


class GroupRef(NamedTuple):
    """What a group id says: its stream, its ordinal, and which try of it."""

    stream_id: str
    ordinal: int
    tries: int

    def __str__(self) -> str:
        return f"{self.stream_id}.{self.ordinal}.{self.tries}"


def parse_group(group_id: str | None) -> GroupRef | None:
    """The parts of a group id made here; None for a foreign one."""
    stream_id, _, rest = (group_id or "").partition(".")
    if not PATTERN.fullmatch(stream_id) or not re.fullmatch(r"\d{1,9}\.\d{1,9}", rest):
        return None
    ordinal, _, tries = rest.partition(".")
    return GroupRef(stream_id, int(ordinal), int(tries))


class Member(NamedTuple):
    """A task of the snapshot as it stands now. `seen` tells whether the lineage has evidence on it."""

    task_id: str
    version: int
    domain: str
    servable: bool
    seen: bool
    alpha: float
    beta: float
    served: int
    last_draw: int | None


class Cell(NamedTuple):
    """Tasks of one exact domain whose pass rate lies in one bucket."""

    domain: str
    bucket: int
    tasks: int


class Pool(Protocol):
    """One share of a stream's snapshot, as a policy may question it. Answers are at the moment of asking."""

    @property
    def count(self) -> int:
        """How many positions the share has."""

    def members(self, places: Sequence[int]) -> Sequence[Member]:
        """The tasks at these positions of the share, in their order."""

    def cells(self) -> Sequence[Cell]:
        """The counts of seen tasks (some may have left the snapshot since)."""

    def seen(self, cell: Cell, start: float, limit: int) -> Sequence[Member]:
        """Up to `limit` tasks of the snapshot in this cell, from the random key `start` on, wrapping at 1."""

    def held(self) -> frozenset[str]:
        """The tasks that are leased, or wait to be served again, in this stream."""


class Draw(NamedTuple):
    """One question to a policy: `n` groups, after `walked` places of the main walk and `explored` of the unseen one."""

    n: int
    share: str
    walked: int
    explored: int
    seed: int
    draws: int
    group_size: int
    policy: PolicyChoice
    taken: frozenset[str]


class Pick(NamedTuple):
    """One chosen task. `before` is how far the main walk had gone before it was found."""

    member: Member
    arm: str
    before: int
    relaxed: str | None = None


class Drawn(NamedTuple):
    """What a policy chose, fewer than asked when there are no more, and how far its walks went."""

    picks: Sequence[Pick]
    walked: int
    explored: int


Policy = Callable[[Pool, Draw], Drawn]
