"""Attempts and verdicts: what policies answered and how it was judged. Both are append-only."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Boolean, Float, ForeignKey, Index, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from service.store.tables.base import Base, Json
from service.store.types import UtcDateTime, sort_text


class Attempt(Base):
    """One response to one task version by one policy version. `inline_task` holds a task that was never stored."""

    __tablename__ = "attempt"
    id: Mapped[str] = mapped_column(sort_text(40), primary_key=True)
    task_id: Mapped[str | None] = mapped_column(ForeignKey("task.id"))
    task_version: Mapped[int | None] = mapped_column(Integer)
    inline_task: Mapped[Json | None] = mapped_column(JSON(none_as_null=True))
    response: Mapped[Any] = mapped_column(JSON(none_as_null=True), nullable=True)
    policy: Mapped[str | None] = mapped_column(String(120))
    policy_version: Mapped[int | None] = mapped_column(Integer)
    run_id: Mapped[str | None] = mapped_column(String(40))
    stream_id: Mapped[str | None] = mapped_column(String(40))
    ordinal: Mapped[int | None] = mapped_column(Integer)
    group_id: Mapped[str | None] = mapped_column(String(80))
    tokens: Mapped[int | None] = mapped_column(Integer)
    actor: Mapped[str] = mapped_column(String(120))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    __table_args__ = (
        Index("ix_attempt_task", "task_id", "id"),
        Index("ix_attempt_group", "group_id", "id"),
        Index("ix_attempt_run", "run_id", "id"),
    )


class VerdictRow(Base):
    """The judged result of an attempt. A replay adds another row; nothing is ever overwritten."""

    __tablename__ = "verdict"
    id: Mapped[str] = mapped_column(sort_text(40), primary_key=True)
    attempt_id: Mapped[str] = mapped_column(ForeignKey("attempt.id"), index=True)
    outcome: Mapped[str] = mapped_column(String(16))
    reward: Mapped[float | None] = mapped_column(Float)
    process: Mapped[float | None] = mapped_column(Float)
    code: Mapped[str] = mapped_column(String(64))
    detail: Mapped[str] = mapped_column(String(2000))
    extracted: Mapped[str | None] = mapped_column(String(4096))
    normal_form: Mapped[str | None] = mapped_column(String(4096))
    tier: Mapped[str | None] = mapped_column(String(32))
    trust: Mapped[str | None] = mapped_column(String(32))
    verifier: Mapped[str] = mapped_column(String(64))
    verifier_version: Mapped[str] = mapped_column(String(16))
    fingerprint: Mapped[str] = mapped_column(String(64))
    image: Mapped[str | None] = mapped_column(String(200))
    judge: Mapped[Json | None] = mapped_column(JSON(none_as_null=True))
    seed: Mapped[int] = mapped_column(Integer)
    cost: Mapped[Json]
    evidence_sha256: Mapped[str | None] = mapped_column(ForeignKey("evidence.sha256"))
    replay_of: Mapped[str | None] = mapped_column(String(40))
    observed: Mapped[bool] = mapped_column(Boolean, default=False)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    __table_args__ = (Index("ix_verdict_outcome", "outcome", "id"),)
