"""Access: API keys hashed at rest, and the record of answered idempotent requests."""

from datetime import datetime

from sqlalchemy import Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from service.store.tables.base import Base
from service.store.types import UtcDateTime, sort_text


class ApiKey(Base):
    """A key. Only `HMAC-SHA256(server secret, token)` is kept."""

    __tablename__ = "api_key"
    id: Mapped[str] = mapped_column(sort_text(40), primary_key=True)
    name: Mapped[str] = mapped_column(String(120))
    token_hmac: Mapped[str] = mapped_column(String(64), unique=True)
    scopes: Mapped[list[str]]
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    revoked_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    last_used_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class Idempotency(Base):
    """One Idempotency-Key of one principal on one route: reserved while it runs, then its answer."""

    __tablename__ = "idempotency"
    principal: Mapped[str] = mapped_column(String(40), primary_key=True)
    route: Mapped[str] = mapped_column(String(200), primary_key=True)
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    body_sha256: Mapped[str] = mapped_column(String(64))
    status: Mapped[int | None] = mapped_column(Integer)
    answer: Mapped[str | None] = mapped_column(Text)
    lease_until: Mapped[datetime] = mapped_column(UtcDateTime)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
