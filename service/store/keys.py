"""API keys at rest. The token itself is shown once, by `create`, and never stored."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sqlalchemy import select, update

from service.store import events
from service.store.ids import new_id
from service.store.session import ReadSession, WriteSession
from service.store.tables import ApiKey

USED_AT_MOST_EVERY = timedelta(minutes=1)  # `last_used_at` would otherwise turn every read into a write


class Created(NamedTuple):
    key_id: str
    token: str


def create(
    db: WriteSession,
    *,
    name: str,
    scopes: Sequence[str],
    token: str,
    token_hmac: str,
    expires_at: datetime | None,
    actor: str = "cli",
) -> Created:
    """Store a key's hash; `token` is only handed back, so that callers have both in one value."""
    key_id = new_id("key")
    now = datetime.now(UTC)
    db.add(
        ApiKey(
            id=key_id,
            name=name,
            token_hmac=token_hmac,
            scopes=sorted(set(scopes)),
            created_at=now,
            expires_at=expires_at,
        )
    )
    db.flush()
    events.record(db, key_id, "key.created", actor, data={"name": name, "scopes": sorted(set(scopes))})
    return Created(key_id, token)


def find(db: ReadSession, token_hmac: str) -> ApiKey | None:
    """The valid key with this hash: neither revoked nor expired."""
    row = db.scalars(select(ApiKey).where(ApiKey.token_hmac == token_hmac)).one_or_none()
    if row is None or row.revoked_at is not None:
        return None
    if row.expires_at is not None and row.expires_at <= datetime.now(UTC):
        return None
    return row


def by_id(db: ReadSession, key_id: str) -> ApiKey | None:
    """A key by its id, if it is still valid."""
    row = db.get(ApiKey, key_id)
    return find(db, row.token_hmac) if row else None


def needs_touch(row: ApiKey, now: datetime) -> bool:
    return row.last_used_at is None or now - row.last_used_at > USED_AT_MOST_EVERY


def touch(db: WriteSession, key_id: str, now: datetime) -> None:
    """Note that the key was used."""
    db.execute(update(ApiKey).where(ApiKey.id == key_id).values(last_used_at=now))


def every(db: ReadSession) -> list[ApiKey]:
    """All keys, oldest first."""
    return list(db.scalars(select(ApiKey).order_by(ApiKey.id)))


def revoke(db: WriteSession, key_id: str, actor: str = "cli") -> bool:
    """Revoke a key; False when there is none of this id."""
    row = db.get(ApiKey, key_id)
    if row is None:
        return False
    if row.revoked_at is None:
        row.revoked_at = datetime.now(UTC)
        events.record(db, key_id, "key.revoked", actor)
    return True
