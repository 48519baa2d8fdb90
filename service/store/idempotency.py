"""Idempotency-Keys: the first request with a key does the work, every later one gets its answer.

Short routes call `begin` and `answer` in the effect's own transaction: concurrent duplicates wait for the writer and
then replay. Long routes (verify, execute) `begin` in a transaction of its own, which reserves the key for `lease_s`,
and `answer` with what they record; a key whose first holder died is free again when that time is over.
"""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sqlalchemy import ColumnElement, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite

from service.errors import InFlight, KeyReused
from service.store.session import WriteSession
from service.store.tables import Idempotency


class Key(NamedTuple):
    """One key of one principal on one route, with the hash of the body it came with."""

    principal: str
    route: str
    key: str
    body_sha256: str


class Replay(NamedTuple):
    """The answer of the first request."""

    status: int
    body: str


def begin(db: WriteSession, key: Key, *, lease_s: float, ttl_s: float) -> Replay | None:
    """Take the key, or have the answer it already has.

    Raises:
        KeyReused: the key came with another body before.
        InFlight: the first request still runs.
    """
    now = datetime.now(UTC)
    lease_until, expires_at = now + timedelta(seconds=lease_s), now + timedelta(seconds=ttl_s)
    dialect = postgresql if db.get_bind().dialect.name == "postgresql" else sqlite
    made = db.execute(
        dialect.insert(Idempotency)
        .values(**key._asdict(), lease_until=lease_until, expires_at=expires_at)
        .on_conflict_do_nothing()
        .returning(Idempotency.key)
    ).first()
    if made is not None:
        return None
    row = db.scalars(select(Idempotency).where(_is(key)).with_for_update()).one()
    if row.expires_at > now:
        if row.body_sha256 != key.body_sha256:
            raise KeyReused
        if row.answer is not None and row.status is not None:
            return Replay(row.status, row.answer)
        if row.lease_until > now:
            raise InFlight
    row.body_sha256, row.status, row.answer = key.body_sha256, None, None
    row.lease_until, row.expires_at = lease_until, expires_at
    return None


def answer(db: WriteSession, key: Key, status: int, body: str) -> None:
    """Keep the answer; call it in the transaction of the effect."""
    db.execute(update(Idempotency).where(_is(key)).values(status=status, answer=body))


def forget(db: WriteSession, key: Key) -> None:
    """Free a key whose request failed without an effect, so that it may be tried again at once."""
    db.execute(delete(Idempotency).where(_is(key), Idempotency.status.is_(None)))


def purge(db: WriteSession, limit: int = 5000) -> int:
    """Delete expired keys, at most `limit` of them; the number deleted."""
    old = select(Idempotency.principal, Idempotency.route, Idempotency.key).where(
        Idempotency.expires_at < datetime.now(UTC)
    )
    rows = db.execute(old.limit(limit)).all()
    for row in rows:
        db.execute(delete(Idempotency).where(_is(Key(row.principal, row.route, row.key, ""))))
    return len(rows)


def _is(key: Key) -> ColumnElement[bool]:
    return (Idempotency.principal == key.principal) & (Idempotency.route == key.route) & (Idempotency.key == key.key)
