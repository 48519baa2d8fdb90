"""Training and evaluation runs, and the points of their curves."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.dialects import postgresql, sqlite

from service.errors import FieldError, Invalid, NotFound
from service.store.ids import new_id
from service.store.session import ReadSession, WriteSession
from service.store.tables import Run, RunMetric, Stream
from service.words import RunStatus


class Point(NamedTuple):
    step: int
    name: str
    value: float


class PointRecord(NamedTuple):
    step: int
    name: str
    value: float
    at: datetime


def create(
    db: WriteSession,
    *,
    name: str,
    kind: str,
    policy: str,
    stream_id: str | None,
    config: Mapping[str, Any],
    actor: str,
    now: datetime,
) -> Run:
    """Write a new run.

    Raises:
        Invalid: there is no such stream.
    """
    if stream_id is not None and db.get(Stream, stream_id) is None:
        rule = "must be the id of a stream"
        raise Invalid("There is no such stream.", errors=[FieldError("/stream_id", "unknown_stream", rule)])
    made = Run(
        id=new_id("run"),
        name=name,
        kind=kind,
        policy=policy,
        stream_id=stream_id,
        config=dict(config),
        status=RunStatus.RUNNING,
        summary={},
        last_step=None,
        created_by=actor,
        created_at=now,
        updated_at=now,
        finished_at=None,
    )
    db.add(made)
    db.flush()
    return made


def get(db: ReadSession, run_id: str) -> Run:
    """The run.

    Raises:
        NotFound: there is none.
    """
    run = db.get(Run, run_id)
    if run is None:
        raise NotFound("There is no such run.")
    return run


def page(db: ReadSession, *, before: str | None = None, limit: int) -> list[Run]:
    """Runs, newest first."""
    query = select(Run).order_by(Run.id.desc()).limit(limit)
    if before is not None:
        query = query.where(Run.id < before)
    return list(db.scalars(query))


def add_points(db: WriteSession, run_id: str, points: Sequence[Point], now: datetime) -> None:
    """Write points; one of a step that was posted before (a resumed run repeats steps) replaces it."""
    rows = {
        (point.name, point.step): {"run_id": run_id, "at": now} | point._asdict() for point in points
    }  # a point given twice in one request: the last one holds
    if not rows:
        return
    dialect = postgresql if db.get_bind().dialect.name == "postgresql" else sqlite
    statement = dialect.insert(RunMetric)
    db.execute(
        statement.on_conflict_do_update(
            index_elements=["run_id", "name", "step"],
            set_={"value": statement.excluded.value, "at": statement.excluded.at},
        ),
        [rows[key] for key in sorted(rows)],
    )


def move(
    db: WriteSession,
    run_id: str,
    *,
    last_step: int | None,
    status: RunStatus | None,
    summary: Mapping[str, Any] | None,
    now: datetime,
) -> Run:
    """Note how far a run has come, and how it ended. The summary is merged key by key.

    Raises:
        NotFound: there is none.
    """
    run = db.get(Run, run_id, with_for_update=True)
    if run is None:
        raise NotFound("There is no such run.")
    run.updated_at = now
    if last_step is not None:
        run.last_step = last_step
    if summary is not None:
        run.summary = {**run.summary, **summary}
    if status is not None:
        run.status = status
        run.finished_at = None if status == RunStatus.RUNNING else now
    return run


def metrics(db: ReadSession, run_id: str) -> list[PointRecord]:
    """Every point of a run, by name and step."""
    return points(db, run_id, (), None, None)


def points(
    db: ReadSession, run_id: str, names: Sequence[str], after: tuple[str, int] | None, limit: int | None
) -> list[PointRecord]:
    """Points of these curves (none named: of all), by name and step."""
    query = select(RunMetric.step, RunMetric.name, RunMetric.value, RunMetric.at).where(RunMetric.run_id == run_id)
    if names:
        query = query.where(RunMetric.name.in_(names))
    if after is not None:
        name, step = after
        query = query.where((RunMetric.name > name) | ((RunMetric.name == name) & (RunMetric.step > step)))
    query = query.order_by(RunMetric.name, RunMetric.step).limit(limit)
    return [PointRecord(*row) for row in db.execute(query)]


def curves(db: ReadSession, run_id: str) -> dict[str, int]:
    """The names of a run's curves, and how many points each has: what a page decides by which of them it can draw."""
    query = select(RunMetric.name, func.count()).where(RunMetric.run_id == run_id).group_by(RunMetric.name)
    return {name: count for name, count in db.execute(query.order_by(RunMetric.name))}
