"""Streams, leases and ordinals as the API takes and answers them."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field

from service.auth.principal import Principal
from service.errors import NotFound
from service.store import ordinals, stream_items
from service.store.drafts import Strict
from service.store.ids import task_ref
from service.store.ordinals import OrdinalRecord
from service.store.session import ReadSession
from service.store.stream_items import TaskKey
from service.store.streams import StreamRecord
from service.stream.contract import Count, GroupRef, Name
from service.stream.serving import Ask, Leased
from service.words import Scope, Split

LARGEST_LEASE = 4096


class StreamOut(BaseModel):
    id: str
    name: str
    split: str
    domains: dict[str, Any]
    policy: dict[str, Any]
    lineage: str
    group_size: int
    seed: int
    max_lag: int
    ack: str
    snapshot_hash: str
    snapshot_count: int
    next_ordinal: int
    generation: int
    consumer: str | None
    policy_version: int
    created_at: str


class RestoredOut(StreamOut):
    """The stream, and how many ordinals will be served again."""

    reopened: int


class StreamPage(BaseModel):
    items: list[StreamOut]
    next: str | None


class LeaseIn(Strict):
    """`ttl_s` is for trainers that know how long a group takes; unset: three times the p95 measured here."""

    n: Annotated[int, Field(ge=1, le=LARGEST_LEASE)]
    policy_version: Count
    consumer: Name
    ttl_s: Annotated[float, Field(ge=1, le=21_600)] | None = None

    def ask(self) -> Ask:
        return Ask(self.n, self.policy_version, self.consumer, self.ttl_s)


class LeaseItemOut(BaseModel):
    """One group to roll out. `p` is the expected pass rate, `p_informative` the chance that the group is not flat."""

    ordinal: int
    group_id: str
    ref: str
    domain: str
    prompt: list[Any]
    tools: list[Any]
    group_size: int
    limits: dict[str, Any]
    p: float
    p_informative: float
    trust_tier: str | None
    why: dict[str, Any]
    tries: int


class LeaseOut(BaseModel):
    """`short` when there are fewer items than asked for; `reason` says why there are as many as there are."""

    lease_id: str | None
    expires_at: str | None
    ttl_s: float | None
    items: list[LeaseItemOut]
    short: bool
    reason: str
    retry_after_s: float | None


class Served(BaseModel):
    ordinal: int
    tries: int


class LeaseKept(BaseModel):
    """What is kept for a repeated request: the lease without its prompts, which do not change."""

    lease_id: str | None
    expires_at: str | None
    ttl_s: float | None
    served: list[Served]
    short: bool
    reason: str
    retry_after_s: float | None


class TokenOut(BaseModel):
    """Signed text of less than 4 kB, to lie inside the trainer's checkpoint."""

    token: str


class RestoreIn(Strict):
    token: Annotated[str, Field(max_length=8192)]
    consumer: Name


class OrdinalOut(BaseModel):
    ordinal: int
    ref: str
    domain: str
    state: str
    tries: int
    group_id: str
    lease_id: str | None
    step: int | None
    weight: float | None
    stale: bool
    reason: str | None


class OrdinalPage(BaseModel):
    items: list[OrdinalOut]
    next: str | None


def visible(stream: StreamRecord, caller: Principal) -> StreamRecord:
    """The stream, if this caller may know of it.

    Raises:
        NotFound: it serves holdout tasks, and the key lacks the scope.
    """
    if stream.split == Split.HOLDOUT and not caller.may(Scope.HOLDOUT_READ):
        raise NotFound("There is no such stream.")
    return stream


def stream_out(stream: StreamRecord) -> StreamOut:
    return StreamOut(**_stream_fields(stream))


def restored_out(stream: StreamRecord, reopened: int) -> RestoredOut:
    return RestoredOut(**_stream_fields(stream), reopened=reopened)


def ordinal_out(record: OrdinalRecord) -> OrdinalOut:
    return OrdinalOut(
        ordinal=record.ordinal,
        ref=task_ref(record.task_id, record.task_version),
        domain=record.domain,
        state=record.state,
        tries=record.tries,
        group_id=record.group_id,
        lease_id=record.lease_id,
        step=record.step,
        weight=record.weight,
        stale=record.stale,
        reason=record.reason,
    )


def lease_kept(leased: Leased) -> LeaseKept:
    lease = leased.lease
    return LeaseKept(
        lease_id=lease.id if lease else None,
        expires_at=lease.expires_at.isoformat() if lease else None,
        ttl_s=lease.ttl_s if lease else None,
        served=[Served(ordinal=record.ordinal, tries=record.tries) for record in leased.items],
        short=leased.short,
        reason=leased.reason,
        retry_after_s=leased.retry_after_s,
    )


def lease_out(
    db: ReadSession, stream: StreamRecord, kept: LeaseKept, records: Sequence[OrdinalRecord] | None = None
) -> LeaseOut:
    """The whole answer; the records are read again where they are not at hand."""
    if records is None:
        found = ordinals.some(db, stream.id, {served.ordinal for served in kept.served})
        records = [found[served.ordinal] for served in kept.served]
    shown = stream_items.shown(db, [TaskKey(record.task_id, record.task_version) for record in records])
    items = [
        _item(stream, record, served.tries, shown[TaskKey(record.task_id, record.task_version)])
        for record, served in zip(records, kept.served, strict=True)
    ]
    return LeaseOut(**kept.model_dump(exclude={"served"}), items=items)


def _item(stream: StreamRecord, record: OrdinalRecord, tries: int, shown: stream_items.Shown) -> LeaseItemOut:
    return LeaseItemOut(
        ordinal=record.ordinal,
        group_id=str(GroupRef(stream.id, record.ordinal, tries)),
        ref=task_ref(record.task_id, record.task_version),
        domain=record.domain,
        prompt=shown.prompt,
        tools=shown.tools,
        group_size=stream.group_size,
        limits=shown.limits,
        p=record.p,
        p_informative=record.p_informative,
        trust_tier=None,  # no gate rates trust yet
        why=dict(record.why),
        tries=tries,
    )


def _stream_fields(stream: StreamRecord) -> dict[str, Any]:
    names = StreamOut.model_fields.keys() - {"created_at"}
    return {name: getattr(stream, name) for name in names} | {"created_at": stream.created_at.isoformat()}
