"""The workers that are alive: what readiness, the workers page and the metrics show of them."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import delete, func, select
from sqlalchemy.dialects import postgresql, sqlite

from service.store.jobs import clock
from service.store.session import ReadSession, WriteSession
from service.store.tables import WorkerRow

FORGOTTEN_S = 24 * 3600.0


def seen(db: WriteSession, worker_id: str, counts: Mapping[str, Any]) -> None:
    """Note that this worker has just looked for work. `counts` are its totals since it started."""
    now = clock(db)
    dialect = postgresql if db.get_bind().dialect.name == "postgresql" else sqlite
    db.execute(
        dialect.insert(WorkerRow).on_conflict_do_update(
            index_elements=["id"], set_={"seen_at": now, "counts": dict(counts)}
        ),
        {"id": worker_id, "started_at": now, "seen_at": now, "counts": dict(counts)},
    )


def gone(db: WriteSession, worker_id: str) -> None:
    """Forget a worker that has left."""
    db.execute(delete(WorkerRow).where(WorkerRow.id == worker_id))


def forget_silent(db: WriteSession) -> int:
    """Forget the workers that have been silent for a day: they were killed. Answers how many they were."""
    silent = WorkerRow.seen_at < clock(db) - timedelta(seconds=FORGOTTEN_S)
    return len(db.execute(delete(WorkerRow).where(silent).returning(WorkerRow.id)).all())


def alive(db: ReadSession, *, within_s: float) -> list[WorkerRow]:
    """The workers seen within the last `within_s` seconds."""
    recent = WorkerRow.seen_at >= clock(db) - timedelta(seconds=within_s)
    return list(db.scalars(select(WorkerRow).where(recent).order_by(WorkerRow.id)))


def silence_s(db: ReadSession) -> float | None:
    """Seconds since any worker looked for work; None when none ever has."""
    last = db.execute(select(func.max(WorkerRow.seen_at))).scalar_one()
    return None if last is None else (clock(db) - last).total_seconds()
