"""Counts for the statistics record: grouped in SQL, exact, at the moment of the transaction."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, case, func, or_, select

from service.store.session import ReadSession
from service.store.tables import Attempt, Difficulty, Job, OrdinalRow, Receipt, SnapshotMember, Stream, Task, VerdictRow
from service.words import OrdinalState, Split

TASK_DIMENSIONS: Mapping[str, Any] = {
    "status": Task.status,
    "split": Task.split,
    "domain": Task.domain,
    "verifier": Task.verifier,
    "origin": Task.generator,
    "licence": Task.licence,
}

Counts = Mapping[str, int]


class GateCount(NamedTuple):
    gate: str
    result: str
    code: str
    tasks: int


class OutcomeCount(NamedTuple):
    domain: str | None
    outcome: str
    verdicts: int


class StreamCount(NamedTuple):
    """`groups` are acknowledged ones with results, `trained` those with weight, `tasks` the distinct tasks served."""

    stream_id: str
    name: str
    lineage: str
    tasks: int
    states: Counts
    stale: int
    retried: int


class DifficultyCount(NamedTuple):
    """Of one lineage and domain: tasks in each bucket, groups observed, of those without any signal."""

    lineage: str
    domain: str
    buckets: Counts
    rollouts: int
    groups: int
    zero_variance: int


class Coverage(NamedTuple):
    """How many tasks of a stream's snapshot were served so many times, by domain."""

    domain: str
    served: int
    tasks: int


def tasks_by(db: ReadSession, dimension: str, *, holdout: bool) -> Counts:
    """Tasks by the values of one dimension; a missing value is `none`."""
    column = TASK_DIMENSIONS[dimension]
    query = select(column, func.count()).where(_shown(holdout)).group_by(column)
    return {str(value) if value is not None else "none": count for value, count in db.execute(query)}


def sealed(db: ReadSession) -> int:
    """The size of the holdout: public, unlike everything else about it."""
    return db.scalar(select(func.count()).select_from(Task).where(Task.split == Split.HOLDOUT)) or 0


def gates(db: ReadSession, *, holdout: bool) -> list[GateCount]:
    """The newest receipt of each gate for each task's newest version, by result and code."""
    newest = (
        select(func.max(Receipt.id))
        .join(Task, (Task.id == Receipt.task_id) & (Task.version == Receipt.version))
        .where(_shown(holdout))
        .group_by(Receipt.task_id, Receipt.gate)
    )
    query = (
        select(Receipt.gate, Receipt.result, Receipt.code, func.count())
        .where(Receipt.id.in_(newest))
        .group_by(Receipt.gate, Receipt.result, Receipt.code)
        .order_by(Receipt.gate, Receipt.result, Receipt.code)
    )
    return [GateCount(*row) for row in db.execute(query)]


def outcomes(db: ReadSession, *, holdout: bool) -> list[OutcomeCount]:
    """Verdicts by domain and outcome; replays left out. A domain of None: the task came inline."""
    query = (
        select(Task.domain, VerdictRow.outcome, func.count())
        .select_from(VerdictRow)
        .join(Attempt, Attempt.id == VerdictRow.attempt_id)
        .outerjoin(Task, Task.id == Attempt.task_id)
        .where(VerdictRow.replay_of.is_(None), or_(Task.id.is_(None), _shown(holdout)))
        .group_by(Task.domain, VerdictRow.outcome)
    )
    return [OutcomeCount(*row) for row in db.execute(query)]


def streams(db: ReadSession, *, holdout: bool) -> list[StreamCount]:
    """The ordinals of each stream by state."""
    stale = func.sum(case((OrdinalRow.stale, 1), else_=0))
    retried = func.sum(case((OrdinalRow.tries > 1, 1), else_=0))
    query = (
        select(Stream.id, Stream.name, Stream.lineage, OrdinalRow.state, func.count(), stale, retried)
        .outerjoin(OrdinalRow, OrdinalRow.stream_id == Stream.id)
        .where(_stream_shown(holdout))
        .group_by(Stream.id, Stream.name, Stream.lineage, OrdinalRow.state)
        .order_by(Stream.id)
    )
    found: dict[str, StreamCount] = {}
    for stream_id, name, lineage, state, count, old, again in db.execute(query):
        before = found.get(stream_id) or StreamCount(stream_id, name, lineage, 0, dict.fromkeys(OrdinalState, 0), 0, 0)
        if state is not None:
            before = before._replace(
                states={**before.states, state: count}, stale=before.stale + old, retried=before.retried + again
            )
        found[stream_id] = before
    return list(found.values())


def coverage(db: ReadSession, stream_id: str) -> list[Coverage]:
    """How often each task of a stream's snapshot was served, withdrawn groups left out."""
    served = (
        select(OrdinalRow.task_id, func.count().label("served"))
        .where(OrdinalRow.stream_id == stream_id, OrdinalRow.state != OrdinalState.WITHDRAWN)
        .group_by(OrdinalRow.task_id)
        .subquery()
    )
    times = func.coalesce(served.c.served, 0)
    query = (
        select(SnapshotMember.domain, times, func.count())
        .join(Stream, Stream.snapshot_hash == SnapshotMember.hash)
        .outerjoin(served, served.c.task_id == SnapshotMember.task_id)
        .where(Stream.id == stream_id)
        .group_by(SnapshotMember.domain, times)
        .order_by(SnapshotMember.domain, times)
    )
    return [Coverage(*row) for row in db.execute(query)]


def difficulty(db: ReadSession) -> list[DifficultyCount]:
    """What the lineages showed, by exact domain. Only tasks of split train are ever measured."""
    query = (
        select(
            Difficulty.lineage,
            Difficulty.domain,
            Difficulty.bucket,
            func.count(),
            func.sum(Difficulty.rollouts),
            func.sum(Difficulty.visits),
            func.sum(Difficulty.zero_variance),
        )
        .group_by(Difficulty.lineage, Difficulty.domain, Difficulty.bucket)
        .order_by(Difficulty.lineage, Difficulty.domain, Difficulty.bucket)
    )
    found: dict[tuple[str, str], DifficultyCount] = {}
    for lineage, domain, bucket, tasks, rollouts, groups, flat in db.execute(query):
        before = found.get((lineage, domain)) or DifficultyCount(lineage, domain, {}, 0, 0, 0)
        found[lineage, domain] = DifficultyCount(
            lineage,
            domain,
            {**before.buckets, str(bucket): tasks},
            before.rollouts + rollouts,
            before.groups + groups,
            before.zero_variance + flat,
        )
    return list(found.values())


def jobs(db: ReadSession) -> Mapping[str, Counts]:
    """Jobs by kind and status."""
    found: dict[str, dict[str, int]] = {}
    query = select(Job.kind, Job.status, func.count()).group_by(Job.kind, Job.status).order_by(Job.kind)
    for kind, status, count in db.execute(query):
        found.setdefault(kind, {})[status] = count
    return found


def _shown(holdout: bool) -> ColumnElement[bool]:
    return Task.split.in_(list(Split)) if holdout else Task.split != Split.HOLDOUT


def _stream_shown(holdout: bool) -> ColumnElement[bool]:
    return Stream.split.in_(list(Split)) if holdout else Stream.split != Split.HOLDOUT
