"""The ordinal log: one row for each served group, dense and ascending in its stream. The record of the order.

`leased → completed | open | withdrawn`, `open → leased | withdrawn`, and a restore reopens what its checkpoint has not
seen. Whoever writes here holds the stream's row (`streams.for_update`).
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import func, insert, select, update

from service.store.servable import STANDING, Rule, Standing
from service.store.session import ReadSession, WriteSession
from service.store.tables import OrdinalRow, Task
from service.words import OrdinalState, Split

CHUNK = 1000
"""Values in one IN list."""


@dataclass(frozen=True, slots=True)
class OrdinalRecord:
    stream_id: str
    ordinal: int
    task_id: str
    task_version: int
    domain: str
    group_id: str
    state: OrdinalState
    lease_id: str | None
    tries: int
    too_few: int
    p: float
    p_informative: float
    why: Mapping[str, Any]
    policy_version: int
    weight: float | None
    step: int | None
    stale: bool
    observed: bool
    body_sha256: str | None
    reason: str | None


_COLUMNS = tuple(getattr(OrdinalRow, name) for name in OrdinalRecord.__dataclass_fields__)
_HELD = (OrdinalState.LEASED, OrdinalState.OPEN)


class Waiting(NamedTuple):
    """An open ordinal, and why its task may not be served any more (None: it may)."""

    record: OrdinalRecord
    broken: str | None


def waiting(db: ReadSession, stream_id: str, split: Split, after: int, limit: int) -> list[Waiting]:
    """Open ordinals above `after`, in their order."""
    rule = Rule(split)
    query = (
        select(*_COLUMNS, *STANDING)
        .join(Task, Task.id == OrdinalRow.task_id)
        .where(OrdinalRow.stream_id == stream_id, OrdinalRow.state == OrdinalState.OPEN, OrdinalRow.ordinal > after)
        .order_by(OrdinalRow.ordinal)
        .limit(limit)
    )
    found = []
    for row in db.execute(query):
        record = _record(row[: len(_COLUMNS)])
        found.append(Waiting(record, rule.broken(Standing(*row[len(_COLUMNS) :]), record.task_version)))
    return found


def append(db: WriteSession, records: Sequence[OrdinalRecord]) -> None:
    """Write new ordinals."""
    if records:
        names = OrdinalRecord.__dataclass_fields__
        db.execute(insert(OrdinalRow), [{name: getattr(record, name) for name in names} for record in records])


def lease_again(db: WriteSession, records: Sequence[OrdinalRecord]) -> None:
    """Give open ordinals, already changed into their next try, to their new lease."""
    if records:
        db.execute(
            update(OrdinalRow),
            [
                {
                    "stream_id": record.stream_id,
                    "ordinal": record.ordinal,
                    "state": OrdinalState.LEASED,
                    "lease_id": record.lease_id,
                    "tries": record.tries,
                    "group_id": record.group_id,
                    "policy_version": record.policy_version,
                    "observed": False,
                    "reason": None,
                }
                for record in records
            ],
        )


def withdraw(db: WriteSession, stream_id: str, ordinal: int, reason: str) -> None:
    """Close an ordinal for good: its task cannot be served."""
    _set(db, stream_id, ordinal, {"state": OrdinalState.WITHDRAWN, "lease_id": None, "reason": reason})


def reopen(db: WriteSession, stream_id: str, ordinal: int, *, reason: str | None, too_few: int) -> None:
    """Hand a leased ordinal back: it is served again before anything new."""
    _set(
        db,
        stream_id,
        ordinal,
        {"state": OrdinalState.OPEN, "lease_id": None, "reason": reason, "too_few": too_few},
    )


def complete(db: WriteSession, stream_id: str, ordinal: int, values: Mapping[str, Any]) -> None:
    """Acknowledge an ordinal."""
    _set(db, stream_id, ordinal, {"state": OrdinalState.COMPLETED} | dict(values))


def mark_observed(db: WriteSession, stream_id: str, ordinal: int) -> None:
    _set(db, stream_id, ordinal, {"observed": True})


def some(db: ReadSession, stream_id: str, ordinals: Collection[int]) -> dict[int, OrdinalRecord]:
    """These ordinals of a stream; those that do not exist are missing."""
    found: dict[int, OrdinalRecord] = {}
    for part in _chunks(sorted(ordinals)):
        query = select(*_COLUMNS).where(OrdinalRow.stream_id == stream_id, OrdinalRow.ordinal.in_(part))
        found |= {record.ordinal: record for record in map(_record, db.execute(query))}
    return found


def of_lease(db: ReadSession, lease_id: str) -> list[OrdinalRecord]:
    """What a lease still holds, in order."""
    query = select(*_COLUMNS).where(OrdinalRow.lease_id == lease_id, OrdinalRow.state == OrdinalState.LEASED)
    return [_record(row) for row in db.execute(query.order_by(OrdinalRow.ordinal))]


def held_tasks(db: ReadSession, stream_id: str) -> frozenset[str]:
    """The tasks that are leased or wait to be served again."""
    query = select(OrdinalRow.task_id).where(OrdinalRow.stream_id == stream_id, OrdinalRow.state.in_(_HELD))
    return frozenset(db.scalars(query))


def watermark(db: ReadSession, stream_id: str, next_ordinal: int) -> int:
    """The lowest ordinal that is neither completed nor withdrawn."""
    lowest = [
        db.scalar(
            select(func.min(OrdinalRow.ordinal)).where(OrdinalRow.stream_id == stream_id, OrdinalRow.state == state)
        )
        for state in _HELD
    ]
    return min((found for found in lowest if found is not None), default=next_ordinal)


def completed_from(db: ReadSession, stream_id: str, first: int) -> list[int]:
    """The completed ordinals from `first` on, ascending."""
    query = select(OrdinalRow.ordinal).where(
        OrdinalRow.stream_id == stream_id,
        OrdinalRow.state == OrdinalState.COMPLETED,
        OrdinalRow.ordinal >= first,
    )
    return list(db.scalars(query.order_by(OrdinalRow.ordinal)))


def make_completed_equal(db: WriteSession, stream_id: str, holds: Callable[[int], bool], watermark: int) -> int:
    """Make the completed set that of a checkpoint, everything else open; the answer is how many are then open.

    Withdrawn ordinals stay withdrawn. No lease may be open.
    """
    undone = [ordinal for ordinal in completed_from(db, stream_id, watermark) if not holds(ordinal)]
    for part in _chunks(undone):
        db.execute(
            update(OrdinalRow)
            .where(OrdinalRow.stream_id == stream_id, OrdinalRow.ordinal.in_(part))
            .values(state=OrdinalState.OPEN, lease_id=None, body_sha256=None, completed_at=None)
        )
    open_now = list(
        db.scalars(
            select(OrdinalRow.ordinal).where(OrdinalRow.stream_id == stream_id, OrdinalRow.state == OrdinalState.OPEN)
        )
    )
    # an acknowledgement that was lost with a power cut: the checkpoint knows better
    seen = [ordinal for ordinal in open_now if holds(ordinal)]
    for part in _chunks(seen):
        db.execute(
            update(OrdinalRow)
            .where(OrdinalRow.stream_id == stream_id, OrdinalRow.ordinal.in_(part))
            .values(state=OrdinalState.COMPLETED)
        )
    return len(open_now) - len(seen)


def page(db: ReadSession, stream_id: str, state: OrdinalState | None, after: int, limit: int) -> list[OrdinalRecord]:
    """Ordinals above `after`, ascending."""
    query = select(*_COLUMNS).where(OrdinalRow.stream_id == stream_id, OrdinalRow.ordinal > after)
    if state is not None:
        query = query.where(OrdinalRow.state == state)
    return [_record(row) for row in db.execute(query.order_by(OrdinalRow.ordinal).limit(limit))]


def _set(db: WriteSession, stream_id: str, ordinal: int, values: Mapping[str, Any]) -> None:
    db.execute(
        update(OrdinalRow).where(OrdinalRow.stream_id == stream_id, OrdinalRow.ordinal == ordinal).values(**values)
    )


def _chunks(values: Sequence[int]) -> Iterator[Sequence[int]]:
    return (values[start : start + CHUNK] for start in range(0, len(values), CHUNK))


def _record(row: Any) -> OrdinalRecord:
    values = list(row)
    values[6] = OrdinalState(values[6])
    return OrdinalRecord(*values)
