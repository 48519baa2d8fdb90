"""The queue of record: every unit of background work is a row, leased to one worker at a time.

`token` fences: each claim raises it, and whoever holds an older one changes nothing (`LeaseLost` rolls its transaction
back). `attempts` counts starts that were the job's own risk, `retries` those that an outage of ours undid. The clock
is the database's, so that workers need no equal clocks. `job_upkeep.py` holds what is done about jobs whose worker is
gone, and the periodic ones.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, func, or_, select, text, update
from sqlalchemy.dialects import postgresql, sqlite

from service.errors import FieldError, Invalid, NotFound
from service.store.ids import new_id
from service.store.session import ReadSession, WriteSession, hint
from service.store.tables import Job
from service.words import JobStatus, Queue

KINDS: Mapping[str, Queue] = {
    "factory.gate": Queue.CPU,
    "factory.regate": Queue.CPU,
    "factory.generate": Queue.SANDBOX,
    "service.housekeeping": Queue.CPU,
}
"""The kinds of job there are, and the queue that each waits in."""

MAX_ATTEMPTS = 3
MAX_RETRIES = 20
RETRY_FIRST_S, RETRY_LONGEST_S = 5.0, 300.0


class LeaseLost(Exception):
    """This worker no longer holds the job: roll everything back and stop working on it."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A job in the hands of one worker. `cursor` and `counts` are what an earlier attempt has committed."""

    id: str
    kind: str
    params: Mapping[str, Any]
    token: int
    attempts: int
    cursor: Mapping[str, Any]
    counts: Mapping[str, Any]
    actor: str


class Hint(str):
    """The id of a job, which also says where its hint goes."""

    __slots__ = ("queue",)
    queue: Queue

    def __new__(cls, job_id: str, queue: Queue) -> "Hint":
        made = super().__new__(cls, job_id)
        made.queue = queue
        return made


class Extended(NamedTuple):
    """Whether the lease is still held, and whether somebody asked the job to stop."""

    held: bool
    cancel_requested: bool


def clock(db: ReadSession) -> datetime:
    """The database's time: of this statement, not of the transaction's start."""
    if db.get_bind().dialect.name == "postgresql":
        now: datetime = db.execute(select(func.clock_timestamp())).scalar_one()
        return now.astimezone(UTC)
    return datetime.now(UTC)


def file(
    db: WriteSession,
    kind: str,
    params: Mapping[str, Any],
    *,
    actor: str,
    queue: Queue | None = None,
    priority: int = 0,
    dedup_key: str | None = None,
    run_at: datetime | None = None,
) -> str:
    """File a job in the caller's transaction; its hint leaves after the commit. Lower priorities run first.

    An equal `dedup_key` of a waiting or running job of the kind coalesces: the answer is that job's id.

    Raises:
        Invalid: there is no such kind, and no queue was named for it.
    """
    if queue is None:
        if kind not in KINDS:
            rule = f"must be one of {', '.join(sorted(KINDS))}"
            raise Invalid("There is no such kind of job.", errors=[FieldError("/kind", "unknown_kind", rule)])
        queue = KINDS[kind]
    now = clock(db)
    due = run_at is None or run_at <= now
    row = {
        "id": new_id("job"),
        "kind": kind,
        "params": dict(params),
        "queue": queue,
        "priority": priority,
        "status": JobStatus.QUEUED,
        "run_at": run_at or now,
        "cursor": {},
        "counts": {},
        "dedup_key": dedup_key,
        "hinted_at": now if due else None,
        "created_by": actor,
        "created_at": now,
    }
    dialect = postgresql if db.get_bind().dialect.name == "postgresql" else sqlite
    statement = dialect.insert(Job).on_conflict_do_nothing(
        index_elements=["kind", "dedup_key"],
        # The index's own words: PostgreSQL does not recognise its predicate in a prepared statement's parameters.
        index_where=text("status IN ('queued', 'running')"),
    )
    made: str | None = db.scalar(statement.returning(Job.id), row)
    if made is None:
        return db.scalars(
            select(Job.id).where(Job.kind == kind, Job.dedup_key == dedup_key, Job.status.in_(_UNFINISHED))
        ).one()
    if due:
        hint(db, Hint(made, queue))
    return made


_UNFINISHED = (JobStatus.QUEUED, JobStatus.RUNNING)


def claim(db: WriteSession, job_id: str, *, worker: str, lease_s: float) -> Claim | None:
    """Take this job, if it is due and nobody holds it; None makes a duplicate hint harmless (D15)."""
    found = _claim(db, Job.id == job_id, worker, lease_s, 1)
    return found[0] if found else None


def claim_next(
    db: WriteSession, queues: Sequence[Queue], *, worker: str, lease_s: float, n: int = 1, waiting_s: float = 0.0
) -> list[Claim]:
    """Take up to `n` due jobs of these queues that wait for `waiting_s` seconds or longer, in their order."""
    return _claim(db, Job.queue.in_(queues), worker, lease_s, n, waiting_s)


def _claim(
    db: WriteSession, which: ColumnElement[bool], worker: str, lease_s: float, n: int, waiting_s: float = 0.0
) -> list[Claim]:
    now = clock(db)
    takeable = or_(
        and_(Job.status == JobStatus.QUEUED, Job.run_at <= now - timedelta(seconds=waiting_s)),
        and_(Job.status == JobStatus.RUNNING, Job.lease_until < now, ~Job.cancel_requested),
    )
    chosen = (
        select(Job.id)
        .where(which, takeable, Job.attempts < Job.max_attempts)
        .order_by(Job.priority, Job.id)
        .limit(n)
        .with_for_update(skip_locked=True)  # SQLite has no such clause: there the writer is alone
    )
    rows = db.execute(
        update(Job)
        .where(Job.id.in_(chosen.scalar_subquery()))
        .values(
            status=JobStatus.RUNNING,
            token=Job.token + 1,
            attempts=Job.attempts + 1,
            lease_until=now + timedelta(seconds=lease_s),
            leased_by=worker,
            started_at=func.coalesce(Job.started_at, now),
        )
        .returning(Job.id, Job.kind, Job.params, Job.token, Job.attempts, Job.cursor, Job.counts, Job.created_by)
        .execution_options(synchronize_session=False)
    ).all()
    claims = [
        Claim(row.id, row.kind, row.params, row.token, row.attempts, row.cursor, row.counts, row.created_by)
        for row in rows
    ]
    return sorted(claims, key=lambda claimed: claimed.id)


def extend(db: WriteSession, job_id: str, token: int, *, lease_s: float) -> Extended:
    """Keep the lease for `lease_s` more seconds."""
    row = db.execute(
        update(Job)
        .where(*_held(job_id, token))
        .values(lease_until=clock(db) + timedelta(seconds=lease_s))
        .returning(Job.cancel_requested)
        .execution_options(synchronize_session=False)
    ).first()
    return Extended(False, False) if row is None else Extended(True, row.cancel_requested)


def step(
    db: WriteSession,
    job_id: str,
    token: int,
    *,
    cursor: Mapping[str, Any],
    counts: Mapping[str, Any] | None = None,
    progress: float | None = None,
) -> None:
    """Move the job's cursor in the transaction that writes the results of the step (at most 500 rows).

    A job that gets on is no poison, so it may be started anew as often as a fresh one: however long it is and however
    often its workers die, it ends, because its cursor only moves forward.

    Raises:
        LeaseLost: another worker has the job; the step's results must not be kept.
    """
    values: dict[str, Any] = {"cursor": dict(cursor), "max_attempts": Job.attempts + MAX_ATTEMPTS - 1}
    if counts is not None:
        values["counts"] = dict(counts)
    if progress is not None:
        values["progress"] = progress
    _change(db, job_id, token, values)


def finish(
    db: WriteSession,
    job_id: str,
    token: int,
    *,
    result: Mapping[str, Any],
    counts: Mapping[str, Any] | None = None,
    status: JobStatus = JobStatus.DONE,
) -> None:
    """End the job; `status` is cancelled when it stopped because it was asked to.

    Raises:
        LeaseLost: another worker has the job; roll back the last results too.
    """
    values: dict[str, Any] = {"status": status, "result": dict(result), "error": None}
    if status == JobStatus.DONE:
        values["progress"] = 1.0
    if counts is not None:
        values["counts"] = dict(counts)
    _change(db, job_id, token, values | _ended(clock(db)))


def fail(db: WriteSession, job_id: str, token: int, *, code: str, detail: str) -> None:
    """End the job as failed: it cannot succeed, however often it is tried.

    Raises:
        LeaseLost: another worker has the job.
    """
    values = {"status": JobStatus.FAILED, "error": {"code": code, "detail": detail[:2000]}}
    _change(db, job_id, token, values | _ended(clock(db)))


def crashed(db: WriteSession, job_id: str, token: int, *, code: str, detail: str) -> None:
    """Note that the attempt broke. The job is tried again, until its attempts are used up.

    Raises:
        LeaseLost: another worker has the job.
    """
    attempts, most = _counters(db, job_id, token)[:2]
    error = {"code": code, "detail": detail[:2000]}
    if attempts >= most:
        dead = {"status": JobStatus.DEAD, "error": exhausted(error)}
        _change(db, job_id, token, dead | _ended(clock(db)))
    else:
        again = {"status": JobStatus.QUEUED, "error": error, "run_at": clock(db) + backoff(attempts)}
        _change(db, job_id, token, again | _RELEASED)


def hand_back(db: WriteSession, job_id: str, token: int, *, code: str, detail: str = "") -> None:
    """Put the job back because of us: a shutdown, a sandbox or a judge that is down. It costs no attempt.

    Raises:
        LeaseLost: another worker has the job.
    """
    attempts, _, retries = _counters(db, job_id, token)
    now = clock(db)
    if retries >= MAX_RETRIES:
        error = {"code": "infrastructure", "detail": f"handed back {retries} times, last: {code} {detail}"[:2000]}
        _change(db, job_id, token, {"status": JobStatus.FAILED, "error": error} | _ended(now))
        return
    values: dict[str, Any] = {
        "status": JobStatus.QUEUED,
        "attempts": attempts - 1,
        "retries": retries + 1,
        "run_at": now + backoff(retries),
        "error": {"code": code, "detail": detail[:2000]},
    }
    _change(db, job_id, token, values | _RELEASED)


def get(db: ReadSession, job_id: str) -> Job:
    """One job.

    Raises:
        NotFound: there is none with this id.
    """
    job = db.get(Job, job_id, populate_existing=True)
    if job is None:
        raise NotFound(f"There is no job {job_id}.")
    return job


def page(
    db: ReadSession,
    *,
    statuses: Sequence[JobStatus] = (),
    kinds: Sequence[str] = (),
    before: str | None = None,
    limit: int = 50,
) -> list[Job]:
    """Jobs, newest first, after the one with id `before`."""
    question = select(Job).order_by(Job.id.desc()).limit(limit)
    if statuses:
        question = question.where(Job.status.in_(statuses))
    if kinds:
        question = question.where(Job.kind.in_(kinds))
    if before is not None:
        question = question.where(Job.id < before)
    return list(db.scalars(question))


def cancel(db: WriteSession, job_id: str) -> Job:
    """Ask a job to stop: a waiting one is cancelled at once, a running one at its next safe point.

    A job that has ended stays as it is.

    Raises:
        NotFound: there is none with this id.
    """
    for status, values in (
        (JobStatus.QUEUED, {"status": JobStatus.CANCELLED, "cancel_requested": True, "finished_at": clock(db)}),
        (JobStatus.RUNNING, {"cancel_requested": True}),
    ):
        db.execute(
            update(Job)
            .where(Job.id == job_id, Job.status == status)
            .values(**values)
            .execution_options(synchronize_session=False)
        )
    return get(db, job_id)


def backoff(retries: int) -> timedelta:
    """The wait before try `retries` + 1: doubling from 5 s to 300 s, ± 20 %, so that jobs do not return as one."""
    longest = min(RETRY_FIRST_S * 2.0 ** min(retries, 20), RETRY_LONGEST_S)
    return timedelta(seconds=longest * random.uniform(0.8, 1.2))


def exhausted(last: Mapping[str, Any] | None) -> dict[str, Any]:
    """The error of a job that is dead: its attempts are used up, the last thing known is kept."""
    text = f"; last error: {last['code']} {last['detail']}" if last else "; its worker died each time"
    return {"code": "attempts_exhausted", "detail": ("every attempt broke" + text)[:2000]}


_RELEASED: dict[str, Any] = {"lease_until": None, "leased_by": None, "hinted_at": None}


def _ended(now: datetime) -> dict[str, Any]:
    return {"finished_at": now, "lease_until": None}


def _held(job_id: str, token: int) -> tuple[ColumnElement[bool], ...]:
    return Job.id == job_id, Job.token == token, Job.status == JobStatus.RUNNING


class _Counters(NamedTuple):
    attempts: int
    max_attempts: int
    retries: int


def _counters(db: WriteSession, job_id: str, token: int) -> _Counters:
    row = db.execute(
        select(Job.attempts, Job.max_attempts, Job.retries).where(*_held(job_id, token)).with_for_update()
    ).first()
    if row is None:
        raise LeaseLost(job_id)
    return _Counters(*row)


def _change(db: WriteSession, job_id: str, token: int, values: Mapping[str, Any]) -> None:
    changed = db.execute(
        update(Job)
        .where(*_held(job_id, token))
        .values(**values)
        .returning(Job.id)
        .execution_options(synchronize_session=False)
    ).first()
    if changed is None:
        raise LeaseLost(job_id)
