"""The first key: all scopes, written to `admin.key` (0600) in the data folder, made again when it no longer opens."""

import os
from pathlib import Path

from service.auth.issue import issue_key
from service.auth.keys import fingerprint
from service.dashboard.session import one_time_link
from service.settings import Settings
from service.store import keys
from service.words import Scope
from taskmill.compose import open_store


def sign_in_link(settings: Settings, url: str) -> str:
    """A link that signs the admin in to the dashboard, once."""
    token_hmac = fingerprint(settings.secret_bytes, (settings.data / "admin.key").read_text().strip())
    with open_store(settings) as store, store.reading() as db:
        row = keys.find(db, token_hmac)
    return one_time_link(settings.secret_bytes, row.id, url) if row else f"{url}/"


def ensure_admin_key(settings: Settings) -> Path:
    """The file with a valid admin key; the key is made when there is none."""
    path = settings.data / "admin.key"
    with open_store(settings) as store:
        if path.exists():
            with store.reading() as db:
                if keys.find(db, fingerprint(settings.secret_bytes, path.read_text().strip())):
                    return path
        with store.writing() as db:
            scopes = [str(scope) for scope in Scope]
            token = issue_key(db, name="admin", scopes=scopes, secret=settings.secret_bytes).token
            draft = path.with_suffix(".draft")
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(token + "\n")
            draft.rename(path)
    return path
