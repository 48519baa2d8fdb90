"""Leases: who holds which ordinals, until when."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import insert, select, update

from service.errors import NotFound
from service.store.ids import new_id
from service.store.session import ReadSession, WriteSession
from service.store.tables import Lease, OrdinalRow
from service.words import LeaseState, OrdinalState

SHORTEST_S, LONGEST_S, FIRST_S = 60.0, 21_600.0, 600.0
"""Bounds of a lease's time to live, and what it is while too few groups were completed to measure."""

_MEASURED = 20


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    id: str
    stream_id: str
    generation: int
    consumer: str
    policy_version: int
    state: LeaseState
    ttl_s: float
    expires_at: datetime
    created_at: datetime


_COLUMNS = (
    Lease.id,
    Lease.stream_id,
    Lease.generation,
    Lease.consumer,
    Lease.policy_version,
    Lease.state,
    Lease.ttl_s,
    Lease.expires_at,
    Lease.created_at,
)


def create(
    db: WriteSession,
    stream_id: str,
    *,
    generation: int,
    consumer: str,
    policy_version: int,
    ttl_s: float,
    now: datetime,
) -> LeaseRecord:
    expires_at = now + timedelta(seconds=ttl_s)
    made = LeaseRecord(
        new_id("lse"), stream_id, generation, consumer, policy_version, LeaseState.OPEN, ttl_s, expires_at, now
    )
    db.execute(insert(Lease), [{column.key: getattr(made, column.key) for column in _COLUMNS}])
    return made


def get(db: ReadSession, lease_id: str) -> LeaseRecord:
    """The lease.

    Raises:
        NotFound: there is none.
    """
    row = db.execute(select(*_COLUMNS).where(Lease.id == lease_id)).first()
    if row is None:
        raise NotFound("There is no such lease.")
    return _record(row)


def open_ones(db: ReadSession, stream_id: str) -> list[LeaseRecord]:
    """The leases of a stream that are held, oldest first."""
    query = select(*_COLUMNS).where(Lease.stream_id == stream_id, Lease.state == LeaseState.OPEN)
    return [_record(row) for row in db.execute(query.order_by(Lease.id))]


def expire(db: WriteSession, stream_id: str, now: datetime) -> None:
    """Open the ordinals of leases that ran out: they are served again, first and in their order."""
    due = db.scalars(
        select(Lease.id).where(Lease.stream_id == stream_id, Lease.state == LeaseState.OPEN, Lease.expires_at <= now)
    ).all()
    end(db, due, LeaseState.EXPIRED)


def end(db: WriteSession, lease_ids: Sequence[str], state: LeaseState) -> None:
    """Close leases; what they still hold becomes open."""
    if not lease_ids:
        return
    db.execute(
        update(OrdinalRow)
        .where(OrdinalRow.lease_id.in_(lease_ids), OrdinalRow.state == OrdinalState.LEASED)
        .values(state=OrdinalState.OPEN, lease_id=None)
    )
    db.execute(update(Lease).where(Lease.id.in_(lease_ids)).values(state=state))


def close_when_done(db: WriteSession, lease_id: str) -> None:
    """Close a lease that holds nothing any more."""
    held = select(OrdinalRow.ordinal).where(OrdinalRow.lease_id == lease_id, OrdinalRow.state == OrdinalState.LEASED)
    if db.execute(held.limit(1)).first() is None:
        db.execute(
            update(Lease).where(Lease.id == lease_id, Lease.state == LeaseState.OPEN).values(state=LeaseState.CLOSED)
        )


def extend(db: WriteSession, lease_id: str, expires_at: datetime) -> None:
    db.execute(update(Lease).where(Lease.id == lease_id).values(expires_at=expires_at))


def knows_consumer(db: ReadSession, stream_id: str, consumer: str, *, before: int) -> bool:
    """Whether this consumer's newest lease is of a generation before this one."""
    newest = db.scalar(
        select(Lease.generation)
        .where(Lease.stream_id == stream_id, Lease.consumer == consumer)
        .order_by(Lease.generation.desc())
        .limit(1)
    )
    return newest is not None and newest < before


def time_to_live(db: ReadSession, stream_id: str) -> float:
    """Three times the p95 of how long groups took from lease to completion, in seconds, within the bounds."""
    took = sorted(
        (done - leased).total_seconds()
        for done, leased in db.execute(
            select(OrdinalRow.completed_at, Lease.created_at)
            .join(Lease, Lease.id == OrdinalRow.lease_id)
            .where(OrdinalRow.stream_id == stream_id, OrdinalRow.state == OrdinalState.COMPLETED)
            .order_by(OrdinalRow.ordinal.desc())
            .limit(200)
        )
        if done is not None
    )
    if len(took) < _MEASURED:
        return FIRST_S
    return min(LONGEST_S, max(SHORTEST_S, 3 * took[math.ceil(0.95 * len(took)) - 1]))


def _record(row: Sequence[object]) -> LeaseRecord:
    values = list(row)
    values[5] = LeaseState(str(values[5]))
    return LeaseRecord(*values)  # type: ignore[arg-type]  # the row has exactly the columns of the record
