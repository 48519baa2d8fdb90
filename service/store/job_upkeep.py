"""What is done about jobs whose worker is gone or whose hint was lost, and the periodic jobs. Every worker does it."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from sqlalchemy import ColumnElement, func, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from service.store.jobs import clock, exhausted, file
from service.store.session import ReadSession, Store, WriteSession
from service.store.tables import Job, Periodic
from service.words import JobStatus, Queue

HINT_AGAIN_S = 30.0
MAX_HINTS = 200
MAX_SWEPT = 500


class Swept(NamedTuple):
    """Ids of the jobs that wait again, that are dead, that stopped as asked."""

    requeued: list[str]
    dead: list[str]
    cancelled: list[str]


def sweep(db: WriteSession) -> Swept:
    """Release every job whose lease has run out: it waits again, or is dead when its attempts are used up."""
    now = clock(db)
    expired = db.scalars(
        select(Job)
        .where(Job.status == JobStatus.RUNNING, Job.lease_until < now)
        .order_by(Job.id)
        .limit(MAX_SWEPT)
        .with_for_update(skip_locked=True)
    ).all()
    swept = Swept([], [], [])
    for job in expired:
        job.lease_until = None
        if job.cancel_requested:
            job.status, job.finished_at = JobStatus.CANCELLED, now
            swept.cancelled.append(job.id)
        elif job.attempts >= job.max_attempts:
            job.status, job.finished_at, job.error = JobStatus.DEAD, now, exhausted(job.error)
            swept.dead.append(job.id)
        else:
            job.status, job.leased_by, job.hinted_at = JobStatus.QUEUED, None, None
            job.run_at = now  # it waits from now on: a rescue is for jobs that nobody takes, not for old ones
            swept.requeued.append(job.id)
    db.flush()
    return swept


def due(db: ReadSession, queues: Sequence[Queue], *, limit: int, but: Sequence[str] = ()) -> list[str]:
    """Ids of waiting jobs whose time has come, in the order they are to run."""
    question = select(Job.id).where(*_due(db, queues)).order_by(Job.priority, Job.id).limit(limit)
    if but:
        question = question.where(Job.id.not_in(but))
    return list(db.scalars(question))


def hint_again(db: WriteSession, queues: Sequence[Queue]) -> dict[str, Queue]:
    """Jobs whose hint was sent too long ago, or never; they count as hinted from now on."""
    now = clock(db)
    stale = or_(Job.hinted_at.is_(None), Job.hinted_at < now - timedelta(seconds=HINT_AGAIN_S))
    chosen = (
        select(Job.id)
        .where(*_due(db, queues), stale)
        .order_by(Job.priority, Job.id)
        .limit(MAX_HINTS)
        .with_for_update(skip_locked=True)
    )
    rows = db.execute(
        update(Job)
        .where(Job.id.in_(chosen.scalar_subquery()))
        .values(hinted_at=now)
        .returning(Job.id, Job.queue)
        .execution_options(synchronize_session=False)
    )
    return {row.id: Queue(row.queue) for row in rows}


def oldest_wait_s(db: ReadSession, queues: Sequence[Queue]) -> float:
    """Seconds that the oldest due job has been waiting; 0 when none waits."""
    oldest = db.execute(select(func.min(Job.run_at)).where(*_due(db, queues))).scalar_one()
    return 0.0 if oldest is None else max(0.0, (clock(db) - oldest).total_seconds())


def running(db: ReadSession) -> int:
    """How many jobs are in the hands of a worker that is not overdue."""
    question = select(func.count()).where(Job.status == JobStatus.RUNNING, Job.lease_until >= clock(db))
    return db.scalars(question).one()


def tick(db: WriteSession, name: str, every_s: float, *, kind: str, params: Mapping[str, object]) -> str | None:
    """File the periodic job if its time has come. Any number of schedulers file one job a period (D25)."""
    now = clock(db)
    dialect = postgresql if db.get_bind().dialect.name == "postgresql" else sqlite
    db.execute(
        dialect.insert(Periodic).on_conflict_do_nothing(),
        {"name": name, "every_s": every_s, "next_run_at": now + timedelta(seconds=every_s)},
    )
    moved = db.execute(
        update(Periodic)
        .where(Periodic.name == name, Periodic.next_run_at <= now)
        .values(next_run_at=now + timedelta(seconds=every_s), every_s=every_s)
        .returning(Periodic.name)
        .execution_options(synchronize_session=False)
    ).first()
    return None if moved is None else file(db, kind, params, actor="system", dedup_key=name)


def truncate_wal(store: Store) -> None:
    """Give back the disk of SQLite's log, unless a reader or a writer is in the way. Nothing on PostgreSQL."""
    if store.engine.dialect.name != "sqlite":
        return
    connection = store.engine.raw_connection()  # outside of any transaction, or SQLite refuses
    try:
        for pragma in ("busy_timeout=0", "wal_checkpoint(TRUNCATE)", "busy_timeout=5000"):
            connection.cursor().execute(f"PRAGMA {pragma}").fetchall()
    finally:
        connection.close()


def _due(db: ReadSession, queues: Sequence[Queue]) -> tuple[ColumnElement[bool], ...]:
    return Job.status == JobStatus.QUEUED, Job.queue.in_(queues), Job.run_at <= clock(db)
