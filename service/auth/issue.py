"""Issue a key: make the token, store its hash, hand the token out once."""

from collections.abc import Sequence
from datetime import datetime

from service.auth.keys import fingerprint, new_token
from service.store import keys
from service.store.session import WriteSession


def issue_key(
    db: WriteSession,
    *,
    name: str,
    scopes: Sequence[str],
    secret: bytes,
    expires_at: datetime | None = None,
    actor: str = "cli",
) -> keys.Created:
    """A new key of these scopes. Its token exists nowhere but in the answer."""
    token = new_token()
    return keys.create(
        db,
        name=name,
        scopes=scopes,
        token=token,
        token_hmac=fingerprint(secret, token),
        expires_at=expires_at,
        actor=actor,
    )
