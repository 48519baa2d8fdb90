"""Streams: their fixed request, and the counters that a lease moves."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.dialects import postgresql, sqlite

from service.errors import NotFound
from service.store.ids import new_id
from service.store.session import ReadSession, WriteSession
from service.store.tables import Snapshot, Stream
from service.words import AckMode, Split


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """One stream as it stands. `shares` is its walking state, by share."""

    id: str
    name: str
    split: Split
    domains: Mapping[str, Any]
    policy: Mapping[str, Any]
    lineage: str
    group_size: int
    seed: int
    max_lag: int
    ack: AckMode
    snapshot_hash: str
    snapshot_count: int
    next_ordinal: int
    draws: int
    shares: Mapping[str, Mapping[str, float]]
    generation: int
    consumer: str | None
    policy_version: int
    created_by: str
    created_at: datetime


_COLUMNS = (
    Stream.id,
    Stream.name,
    Stream.split,
    Stream.domains,
    Stream.policy,
    Stream.lineage,
    Stream.group_size,
    Stream.seed,
    Stream.max_lag,
    Stream.ack,
    Stream.snapshot_hash,
    Snapshot.count,
    Stream.next_ordinal,
    Stream.draws,
    Stream.shares,
    Stream.generation,
    Stream.consumer,
    Stream.policy_version,
    Stream.created_by,
    Stream.created_at,
)
_QUERY = select(*_COLUMNS).join(Snapshot, Snapshot.hash == Stream.snapshot_hash)


def create(
    db: WriteSession, request: Mapping[str, Any], *, lineage: str, hash_: str, actor: str, now: datetime
) -> str | None:
    """Write a new stream of this request (already checked) on this snapshot; None when its name is taken."""
    row = dict(request) | {
        "id": new_id("str"),
        "lineage": lineage,
        "snapshot_hash": hash_,
        "shares": {},
        "created_by": actor,
        "created_at": now,
    }
    dialect = postgresql if db.get_bind().dialect.name == "postgresql" else sqlite
    statement = dialect.insert(Stream).on_conflict_do_nothing(index_elements=["name"]).returning(Stream.id)
    made: str | None = db.scalar(statement, row)
    return made


def get(db: ReadSession, stream_id: str) -> StreamRecord:
    """The stream.

    Raises:
        NotFound: there is none.
    """
    row = db.execute(_QUERY.where(Stream.id == stream_id)).first()
    if row is None:
        raise NotFound("There is no such stream.")
    return _record(row)


def by_name(db: ReadSession, name: str) -> StreamRecord | None:
    row = db.execute(_QUERY.where(Stream.name == name)).first()
    return _record(row) if row else None


def for_update(db: WriteSession, stream_id: str) -> StreamRecord:
    """The stream, held until the transaction ends: whoever moves its ordinals or leases does it alone.

    Raises:
        NotFound: there is none.
    """
    # on SQLite the transaction holds the whole database already (BEGIN IMMEDIATE)
    db.execute(select(Stream.id).where(Stream.id == stream_id).with_for_update())
    return get(db, stream_id)


def page(db: ReadSession, after: str | None, limit: int, *, with_holdout: bool) -> list[StreamRecord]:
    """Streams, oldest first."""
    query = _QUERY.order_by(Stream.id).limit(limit)
    if after is not None:
        query = query.where(Stream.id > after)
    if not with_holdout:
        query = query.where(Stream.split != Split.HOLDOUT)
    return [_record(row) for row in db.execute(query)]


def advance(
    db: WriteSession,
    stream_id: str,
    *,
    next_ordinal: int,
    draws: int,
    shares: Mapping[str, Any],
    policy_version: int,
) -> None:
    """Move the counters after a lease."""
    db.execute(
        update(Stream)
        .where(Stream.id == stream_id)
        .values(next_ordinal=next_ordinal, draws=draws, shares=dict(shares), policy_version=policy_version)
    )


def take_over(db: WriteSession, stream_id: str, *, consumer: str, generation: int) -> None:
    """Give the stream to a consumer after a restore. Its policy version is known again with its next lease."""
    db.execute(
        update(Stream).where(Stream.id == stream_id).values(consumer=consumer, generation=generation, policy_version=0)
    )


def _record(row: Any) -> StreamRecord:
    values = list(row)
    values[2], values[9] = Split(values[2]), AckMode(values[9])
    return StreamRecord(*values)
