"""Tasks: identity and state, immutable versions, answers apart, lineage, sources, receipts, events."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Boolean, Float, ForeignKey, ForeignKeyConstraint, Index, Integer, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from service.store.tables.base import Base, Json
from service.store.types import UtcDateTime, sort_text


class Family(Base):
    """All tasks of one lineage root. The family decides the split, once."""

    __tablename__ = "family"
    id: Mapped[str] = mapped_column(sort_text(40), primary_key=True)
    split: Mapped[str] = mapped_column(String(16))
    split_basis: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class Task(Base):
    """What changes about a task: its status, its current version, what lists filter and sort by.

    `receipts_key` names the verifier version and the gate versions that its receipts are of (`required_gates.py`);
    the task is servable while it is active and that key is the current one.
    """

    __tablename__ = "task"
    id: Mapped[str] = mapped_column(sort_text(40), primary_key=True)
    version: Mapped[int] = mapped_column(Integer)
    row_version: Mapped[int] = mapped_column(Integer, default=1)
    domain: Mapped[str] = mapped_column(sort_text(120))
    status: Mapped[str] = mapped_column(String(16))
    split: Mapped[str] = mapped_column(String(16))
    family_id: Mapped[str] = mapped_column(ForeignKey("family.id"))
    content_hash: Mapped[str] = mapped_column(String(64))
    identity_hash: Mapped[str] = mapped_column(String(64))
    live: Mapped[bool] = mapped_column(Boolean)
    verifier: Mapped[str] = mapped_column(String(64))
    task_type: Mapped[str] = mapped_column(String(64))
    generator: Mapped[str | None] = mapped_column(String(120))
    licence: Mapped[str | None] = mapped_column(String(120))
    source_uri: Mapped[str | None] = mapped_column(String(2000))
    cell: Mapped[str] = mapped_column(sort_text(200))
    rkey: Mapped[float] = mapped_column(Float)
    receipts_key: Mapped[str | None] = mapped_column(String(200))
    created_by: Mapped[str] = mapped_column(String(120))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
    __table_args__ = (
        Index(
            "uq_task_identity_live",
            "identity_hash",
            unique=True,
            sqlite_where=text("live"),
            postgresql_where=text("live"),
        ),
        Index("ix_task_servable", "split", "status", "domain", "cell", "rkey"),
        Index("ix_task_status_created", "status", "id"),
        Index("ix_task_domain", "domain", "id"),
        Index("ix_task_family", "family_id"),
        Index("ix_task_generator", "generator"),
    )


class TaskVersion(Base):
    """The immutable, content-addressed body of one version, without its answers."""

    __tablename__ = "task_version"
    task_id: Mapped[str] = mapped_column(ForeignKey("task.id"), primary_key=True)
    version: Mapped[int] = mapped_column(Integer, primary_key=True)
    content_hash: Mapped[str] = mapped_column(String(64), index=True)
    prompt: Mapped[list[Any]] = mapped_column(JSON)
    prompt_text: Mapped[str] = mapped_column(Text)
    verifier: Mapped[Json]
    environment: Mapped[Json]
    limits: Mapped[Json]
    source: Mapped[Json | None] = mapped_column(JSON(none_as_null=True))
    features: Mapped[Json]
    tags: Mapped[list[str]]
    origin: Mapped[Json | None] = mapped_column(JSON(none_as_null=True))
    guess_floor: Mapped[float] = mapped_column(Float, default=0.0)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class TaskAnswer(Base):
    """What the task's author knows. Never in a stream, a page or an export; apart, so that no join brings it along."""

    __tablename__ = "task_answer"
    task_id: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    reference: Mapped[Json]
    gold: Mapped[list[Any]]
    nulls: Mapped[list[Any]]
    equivalents: Mapped[list[Any]]
    mutants: Mapped[list[Any]]
    __table_args__ = (ForeignKeyConstraint(["task_id", "version"], ["task_version.task_id", "task_version.version"]),)


class TaskTag(Base):
    __tablename__ = "task_tag"
    task_id: Mapped[str] = mapped_column(ForeignKey("task.id"), primary_key=True)
    tag: Mapped[str] = mapped_column(sort_text(64), primary_key=True)
    __table_args__ = (Index("ix_task_tag_tag", "tag", "task_id"),)


class TaskSource(Base):
    """Every source a task came from: a duplicate adds its own here instead of a row of its own in `task`."""

    __tablename__ = "task_source"
    id: Mapped[str] = mapped_column(sort_text(40), primary_key=True)
    task_id: Mapped[str] = mapped_column(ForeignKey("task.id"), index=True)
    uri: Mapped[str] = mapped_column(String(2000))
    licence: Mapped[str] = mapped_column(String(120))
    retrieved_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    span: Mapped[str | None] = mapped_column(String(200))
    added_by: Mapped[str] = mapped_column(String(120))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class TaskParent(Base):
    """One derivation edge: which version of which task, by which operation and seed."""

    __tablename__ = "task_parent"
    task_id: Mapped[str] = mapped_column(ForeignKey("task.id"), primary_key=True)
    version: Mapped[int] = mapped_column(Integer, primary_key=True)
    position: Mapped[int] = mapped_column(Integer, primary_key=True)
    parent_id: Mapped[str] = mapped_column(ForeignKey("task.id"), index=True)
    parent_version: Mapped[int] = mapped_column(Integer)
    op: Mapped[str] = mapped_column(String(120))
    op_version: Mapped[str] = mapped_column(String(32))
    seed: Mapped[int | None] = mapped_column(Integer)


class Receipt(Base):
    """One gate's recorded result. It counts only while `verifier_version` and `gate_version` are the current ones."""

    __tablename__ = "receipt"
    id: Mapped[str] = mapped_column(sort_text(40), primary_key=True)
    task_id: Mapped[str] = mapped_column(ForeignKey("task.id"))
    version: Mapped[int] = mapped_column(Integer)
    gate: Mapped[str] = mapped_column(String(8))
    gate_version: Mapped[str] = mapped_column(String(16))
    result: Mapped[str] = mapped_column(String(16))
    code: Mapped[str] = mapped_column(String(64))
    detail: Mapped[str] = mapped_column(String(500))
    metric: Mapped[float | None] = mapped_column(Float)
    threshold: Mapped[float | None] = mapped_column(Float)
    n_exec: Mapped[int] = mapped_column(Integer)
    seed: Mapped[int] = mapped_column(Integer)
    verifier: Mapped[str] = mapped_column(String(64))
    verifier_version: Mapped[str] = mapped_column(String(16))
    image: Mapped[str | None] = mapped_column(String(200))
    evidence_sha256: Mapped[str | None] = mapped_column(ForeignKey("evidence.sha256"))
    duration_ms: Mapped[float] = mapped_column(Float)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    __table_args__ = (
        Index("ix_receipt_task", "task_id", "version", "gate", "id"),
        Index("ix_receipt_gate", "gate", "result"),
    )


class Evidence(Base):
    """What a gate or a verdict rests on, stored once by hash. Reading it needs `answers:read`."""

    __tablename__ = "evidence"
    sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    data: Mapped[Json]


class Event(Base):
    """Every change, with its actor and reason. Append-only. `subject` is the id of a task, stream, key, run or job."""

    __tablename__ = "event"
    id: Mapped[str] = mapped_column(sort_text(40), primary_key=True)
    subject: Mapped[str] = mapped_column(sort_text(40))
    kind: Mapped[str] = mapped_column(String(64))
    actor: Mapped[str] = mapped_column(String(120))
    reason: Mapped[str] = mapped_column(String(1000))
    data: Mapped[Json]
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    __table_args__ = (Index("ix_event_subject", "subject", "id"),)


class Exposure(Base):
    """Each read of a holdout task or a reveal of an answer: who, what, where. Append-only."""

    __tablename__ = "exposure"
    id: Mapped[str] = mapped_column(sort_text(40), primary_key=True)
    task_id: Mapped[str] = mapped_column(ForeignKey("task.id"), index=True)
    version: Mapped[int] = mapped_column(Integer)
    actor: Mapped[str] = mapped_column(String(120))
    surface: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
