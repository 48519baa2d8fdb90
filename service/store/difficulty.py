"""What was observed of tasks: one row for each policy lineage and task, written only when there is evidence."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import func, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from service.store.session import ReadSession, WriteSession
from service.store.tables import Attempt, Difficulty, Run, Task, VerdictRow
from service.words import Split


@dataclass(frozen=True, slots=True)
class DifficultyRecord:
    """A Beta posterior and its counters. `visits` are groups, `rollouts` single valid attempts."""

    lineage: str
    task_id: str
    task_version: int
    domain: str
    bucket: int
    rkey: float
    alpha: float
    beta: float
    visits: int
    rollouts: int
    zero_variance: int
    last_policy_version: int | None
    served: int
    last_draw: int | None
    updated_at: datetime


_COLUMNS = tuple(getattr(Difficulty, name) for name in DifficultyRecord.__dataclass_fields__)


class Identity(NamedTuple):
    """What a task is, for the purposes of evidence."""

    version: int
    split: Split
    domain: str
    rkey: float


class BucketCount(NamedTuple):
    domain: str
    bucket: int
    tasks: int


class Judged(NamedTuple):
    """A verdict with its attempt, as far as evidence goes."""

    verdict_id: str
    task_id: str | None
    task_version: int | None
    group_id: str | None
    policy: str | None
    policy_version: int | None
    outcome: str
    reward: float | None
    observed: bool
    replay: bool
    evaluation: bool


def identities(db: ReadSession, task_ids: Collection[str]) -> dict[str, Identity]:
    query = select(Task.id, Task.version, Task.split, Task.domain, Task.rkey).where(Task.id.in_(task_ids))
    return {row[0]: Identity(row[1], Split(row[2]), row[3], row[4]) for row in db.execute(query)}


def some(
    db: ReadSession, lineage: str, task_ids: Collection[str], *, lock: bool = False
) -> dict[str, DifficultyRecord]:
    """What a lineage showed on these tasks; those without evidence are missing."""
    query = select(*_COLUMNS).where(Difficulty.lineage == lineage, Difficulty.task_id.in_(task_ids))
    query = query.order_by(Difficulty.task_id)  # one order of locks for all writers: no deadlock
    return {row.task_id: DifficultyRecord(*row) for row in db.execute(query.with_for_update() if lock else query)}


def reserve(db: WriteSession, records: Sequence[DifficultyRecord]) -> None:
    """Make rows that are not there yet, so that they can be locked and changed."""
    if records:
        dialect = postgresql if db.get_bind().dialect.name == "postgresql" else sqlite
        rows = [_values(record) for record in sorted(records, key=lambda record: record.task_id)]
        db.execute(dialect.insert(Difficulty).on_conflict_do_nothing(), rows)


def write(db: WriteSession, records: Sequence[DifficultyRecord]) -> None:
    """Write changed rows."""
    if records:
        db.execute(update(Difficulty), [_values(record) for record in records])


def bucket_counts(db: ReadSession, lineage: str, domain: str | None) -> list[BucketCount]:
    """How many tasks with evidence each exact domain has in each bucket; of one domain with its sub-domains, or all."""
    query = select(Difficulty.domain, Difficulty.bucket, func.count()).where(Difficulty.lineage == lineage)
    if domain is not None:
        inside = (Difficulty.domain >= f"{domain}.") & (Difficulty.domain < f"{domain}/")
        query = query.where(or_(Difficulty.domain == domain, inside))
    grouped = query.group_by(Difficulty.domain, Difficulty.bucket).order_by(Difficulty.domain, Difficulty.bucket)
    return [BucketCount(*row) for row in db.execute(grouped)]


def judged(db: ReadSession, verdict_ids: Collection[str]) -> dict[str, Judged]:
    """These verdicts, by id."""
    return {row.verdict_id: row for row in _judged(db, VerdictRow.id.in_(verdict_ids))}


def judged_group(db: ReadSession, group_id: str) -> list[Judged]:
    """The verdicts of the attempts of one group, oldest first, replays left out."""
    return [row for row in _judged(db, Attempt.group_id == group_id) if not row.replay]


def groups_with_verdicts(db: ReadSession, group_ids: Collection[str]) -> frozenset[str]:
    """Those of these groups of which attempts were recorded."""
    query = select(Attempt.group_id).where(Attempt.group_id.in_(group_ids)).distinct()
    return frozenset(found for found in db.scalars(query) if found is not None)


def mark_observed(db: WriteSession, verdict_ids: Sequence[str]) -> None:
    """Note that these verdicts have moved the difficulty: none does it twice."""
    for start in range(0, len(verdict_ids), 1000):
        part = verdict_ids[start : start + 1000]
        db.execute(update(VerdictRow).where(VerdictRow.id.in_(part)).values(observed=True))


def _judged(db: ReadSession, condition: Any) -> list[Judged]:
    query = (
        select(
            VerdictRow.id,
            Attempt.task_id,
            Attempt.task_version,
            Attempt.group_id,
            Attempt.policy,
            Attempt.policy_version,
            VerdictRow.outcome,
            VerdictRow.reward,
            VerdictRow.observed,
            VerdictRow.replay_of,
            Run.kind,
        )
        .join(Attempt, Attempt.id == VerdictRow.attempt_id)
        .outerjoin(Run, Run.id == Attempt.run_id)
        .where(condition)
        .order_by(VerdictRow.id)
    )
    return [Judged(*row[:9], row[9] is not None, row[10] == "eval") for row in db.execute(query)]


def _values(record: DifficultyRecord) -> Mapping[str, Any]:
    return {name: getattr(record, name) for name in DifficultyRecord.__dataclass_fields__}
