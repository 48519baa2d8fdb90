"""Streams: dataset snapshots, the ordinal log, leases, and what is known of each task's difficulty."""

from datetime import datetime

from sqlalchemy import JSON, Boolean, Float, ForeignKey, Index, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from service.store.tables.base import Base, Json
from service.store.types import UtcDateTime, sort_text


class Snapshot(Base):
    """What was servable at one moment. `hash` is the Merkle root over its members.

    Positions follow (domain, task id), so that a domain with its sub-domains is one range of positions; `domains` holds
    the range `[first, end]` of each exact domain.
    """

    __tablename__ = "snapshot"
    hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    filter: Mapped[Json]
    domains: Mapped[Json]
    count: Mapped[int] = mapped_column(Integer)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class SnapshotMember(Base):
    """One servable task version of a snapshot, by its place in it."""

    __tablename__ = "snapshot_member"
    hash: Mapped[str] = mapped_column(ForeignKey("snapshot.hash"), primary_key=True)
    position: Mapped[int] = mapped_column(Integer, primary_key=True)
    task_id: Mapped[str] = mapped_column(ForeignKey("task.id"))
    version: Mapped[int] = mapped_column(Integer)
    domain: Mapped[str] = mapped_column(sort_text(120))
    __table_args__ = (Index("ix_snapshot_member_task", "hash", "task_id"),)


class Stream(Base):
    """A named, resumable order of tasks for one training run.

    `generation` fences consumers: a restore raises it, and leases of an older generation acknowledge nothing.
    `shares` holds, for each domain asked for, its credit and how far its permutations are walked; `draws` counts the
    leases that drew something new.
    """

    __tablename__ = "stream"
    id: Mapped[str] = mapped_column(sort_text(40), primary_key=True)
    name: Mapped[str] = mapped_column(String(120), unique=True)
    split: Mapped[str] = mapped_column(String(16))
    domains: Mapped[Json]
    policy: Mapped[Json]
    lineage: Mapped[str] = mapped_column(String(120))
    group_size: Mapped[int] = mapped_column(Integer)
    seed: Mapped[int] = mapped_column(Integer)
    max_lag: Mapped[int] = mapped_column(Integer)
    ack: Mapped[str] = mapped_column(String(16))
    snapshot_hash: Mapped[str] = mapped_column(ForeignKey("snapshot.hash"))
    next_ordinal: Mapped[int] = mapped_column(Integer, default=0)
    draws: Mapped[int] = mapped_column(Integer, default=0)
    shares: Mapped[Json]
    generation: Mapped[int] = mapped_column(Integer, default=0)
    consumer: Mapped[str | None] = mapped_column(String(120))
    policy_version: Mapped[int] = mapped_column(Integer, default=0)
    created_by: Mapped[str] = mapped_column(String(120))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class Lease(Base):
    """Tasks handed out, with an expiry."""

    __tablename__ = "lease"
    id: Mapped[str] = mapped_column(sort_text(40), primary_key=True)
    stream_id: Mapped[str] = mapped_column(ForeignKey("stream.id"))
    generation: Mapped[int] = mapped_column(Integer)
    consumer: Mapped[str] = mapped_column(String(120))
    policy_version: Mapped[int] = mapped_column(Integer)
    state: Mapped[str] = mapped_column(String(16))
    ttl_s: Mapped[float] = mapped_column(Float)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    __table_args__ = (
        Index("ix_lease_open", "stream_id", "state", "expires_at"),
        Index("ix_lease_consumer", "stream_id", "consumer", "generation"),
    )


class OrdinalRow(Base):
    """One served group: the record of the order. Written in the lease's transaction, with task id and version."""

    __tablename__ = "ordinal"
    stream_id: Mapped[str] = mapped_column(ForeignKey("stream.id"), primary_key=True)
    ordinal: Mapped[int] = mapped_column(Integer, primary_key=True)
    task_id: Mapped[str] = mapped_column(ForeignKey("task.id"))
    task_version: Mapped[int] = mapped_column(Integer)
    domain: Mapped[str] = mapped_column(sort_text(120))
    group_id: Mapped[str] = mapped_column(String(80))
    state: Mapped[str] = mapped_column(String(16))
    lease_id: Mapped[str | None] = mapped_column(ForeignKey("lease.id"))
    tries: Mapped[int] = mapped_column(Integer, default=1)
    too_few: Mapped[int] = mapped_column(Integer, default=0)
    p: Mapped[float] = mapped_column(Float)
    p_informative: Mapped[float] = mapped_column(Float)
    why: Mapped[Json]
    policy_version: Mapped[int] = mapped_column(Integer)
    weight: Mapped[float | None] = mapped_column(Float)
    step: Mapped[int | None] = mapped_column(Integer)
    stale: Mapped[bool] = mapped_column(Boolean, default=False)
    observed: Mapped[bool] = mapped_column(Boolean, default=False)
    body_sha256: Mapped[str | None] = mapped_column(String(64))
    result: Mapped[Json | None] = mapped_column(JSON(none_as_null=True))
    reason: Mapped[str | None] = mapped_column(String(64))
    completed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    __table_args__ = (
        Index("ix_ordinal_state", "stream_id", "state", "ordinal"),
        Index("ix_ordinal_lease", "lease_id", "ordinal"),
        Index("ix_ordinal_group", "group_id"),
        Index("ix_ordinal_task", "task_id"),
    )


class Difficulty(Base):
    """What one policy lineage showed on one task, as a Beta posterior of its pass rate. No row: never observed.

    `bucket` is the posterior mean in steps of 1/20 and `rkey` the task's random key: a weighted draw is a choice of
    buckets and a short index scan in each, whatever the number of tasks.
    """

    __tablename__ = "difficulty"
    lineage: Mapped[str] = mapped_column(String(120), primary_key=True)
    task_id: Mapped[str] = mapped_column(ForeignKey("task.id"), primary_key=True)
    task_version: Mapped[int] = mapped_column(Integer)
    domain: Mapped[str] = mapped_column(sort_text(120))
    bucket: Mapped[int] = mapped_column(Integer)
    rkey: Mapped[float] = mapped_column(Float)
    alpha: Mapped[float] = mapped_column(Float)
    beta: Mapped[float] = mapped_column(Float)
    visits: Mapped[int] = mapped_column(Integer, default=0)
    rollouts: Mapped[int] = mapped_column(Integer, default=0)
    zero_variance: Mapped[int] = mapped_column(Integer, default=0)
    last_policy_version: Mapped[int | None] = mapped_column(Integer)
    served: Mapped[int] = mapped_column(Integer, default=0)
    last_draw: Mapped[int | None] = mapped_column(Integer)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
    __table_args__ = (Index("ix_difficulty_bucket", "lineage", "domain", "bucket", "rkey"),)


class Run(Base):
    """One training or evaluation run, its configuration and how it ended."""

    __tablename__ = "run"
    id: Mapped[str] = mapped_column(sort_text(40), primary_key=True)
    name: Mapped[str] = mapped_column(String(120))
    kind: Mapped[str] = mapped_column(String(16))
    policy: Mapped[str] = mapped_column(String(120))
    stream_id: Mapped[str | None] = mapped_column(ForeignKey("stream.id"))
    config: Mapped[Json]
    status: Mapped[str] = mapped_column(String(16))
    summary: Mapped[Json]
    last_step: Mapped[int | None] = mapped_column(Integer)
    created_by: Mapped[str] = mapped_column(String(120))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class RunMetric(Base):
    """One point of one curve. A step posted again (after a resume) replaces its point."""

    __tablename__ = "run_metric"
    run_id: Mapped[str] = mapped_column(ForeignKey("run.id"), primary_key=True)
    name: Mapped[str] = mapped_column(sort_text(120), primary_key=True)
    step: Mapped[int] = mapped_column(Integer, primary_key=True)
    value: Mapped[float] = mapped_column(Float)
    at: Mapped[datetime] = mapped_column(UtcDateTime)
