"""The queue of record: jobs with leases and fencing, periodic ticks, workers."""

from datetime import datetime

from sqlalchemy import JSON, Boolean, Float, Index, Integer, String, text
from sqlalchemy.orm import Mapped, mapped_column

from service.store.tables.base import Base, Json
from service.store.types import UtcDateTime, sort_text


class Job(Base):
    """One unit of background work. `token` fences: a worker that lost its lease changes nothing."""

    __tablename__ = "job"
    id: Mapped[str] = mapped_column(sort_text(40), primary_key=True)
    kind: Mapped[str] = mapped_column(String(64))
    params: Mapped[Json]
    queue: Mapped[str] = mapped_column(String(32))
    priority: Mapped[int] = mapped_column(Integer, default=0)
    status: Mapped[str] = mapped_column(String(16))
    run_at: Mapped[datetime] = mapped_column(UtcDateTime)
    token: Mapped[int] = mapped_column(Integer, default=0)
    lease_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    leased_by: Mapped[str | None] = mapped_column(String(120))
    attempts: Mapped[int] = mapped_column(Integer, default=0)
    max_attempts: Mapped[int] = mapped_column(Integer, default=3)
    retries: Mapped[int] = mapped_column(Integer, default=0)
    cursor: Mapped[Json]
    progress: Mapped[float] = mapped_column(Float, default=0.0)
    counts: Mapped[Json]
    result: Mapped[Json | None] = mapped_column(JSON(none_as_null=True))
    error: Mapped[Json | None] = mapped_column(JSON(none_as_null=True))
    cancel_requested: Mapped[bool] = mapped_column(Boolean, default=False)
    dedup_key: Mapped[str | None] = mapped_column(String(200))
    hinted_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    created_by: Mapped[str] = mapped_column(String(120))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    started_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    __table_args__ = (
        Index(
            "ix_job_queued",
            "queue",
            "priority",
            "id",
            sqlite_where=text("status = 'queued'"),
            postgresql_where=text("status = 'queued'"),
        ),
        Index(
            "ix_job_running",
            "lease_until",
            sqlite_where=text("status = 'running'"),
            postgresql_where=text("status = 'running'"),
        ),
        Index(
            "uq_job_dedup",
            "kind",
            "dedup_key",
            unique=True,
            sqlite_where=text("status IN ('queued', 'running')"),
            postgresql_where=text("status IN ('queued', 'running')"),
        ),
    )


class Periodic(Base):
    """A tick is one conditional UPDATE that moves `next_run_at` and inserts the job: two schedulers, one job."""

    __tablename__ = "periodic"
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    every_s: Mapped[float] = mapped_column(Float)
    next_run_at: Mapped[datetime] = mapped_column(UtcDateTime)


class WorkerRow(Base):
    """A worker process and when it last looked for work: what readiness and the workers page show."""

    __tablename__ = "worker"
    id: Mapped[str] = mapped_column(String(120), primary_key=True)
    started_at: Mapped[datetime] = mapped_column(UtcDateTime)
    seen_at: Mapped[datetime] = mapped_column(UtcDateTime)
    counts: Mapped[Json]
