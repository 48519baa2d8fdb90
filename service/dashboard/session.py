"""Who is looking: a signed cookie that names a key, and the one-time link that `taskmill up` prints.

The cookie holds no secret of its own and no scopes: the key is read on every request, so that a revoked or expired key
ends its sessions at once. Cookies ignore ports, so the port is part of the name.
"""

import hmac
import secrets
import time
from dataclasses import dataclass
from hashlib import sha256

from starlette.requests import Request
from starlette.responses import Response

from service.settings import Settings

IDLE_S = 12 * 3600
LONGEST_S = 7 * 24 * 3600
RENEW_S = 600
LINK_S = 600


class SignInNeeded(Exception):
    """The request carries no valid session."""


@dataclass(frozen=True, slots=True)
class Session:
    """A key, when the session was opened and when it was last renewed (Unix seconds)."""

    key_id: str
    opened_at: int
    seen_at: int


def seal(secret: bytes, purpose: str, *fields: str) -> str:
    """Fields and their signature. A token of one purpose is none of another."""
    body = ".".join(fields)
    return f"{body}.{_signature(secret, purpose, body)}"


def unseal(secret: bytes, purpose: str, token: str) -> list[str] | None:
    """The fields of a token that was sealed here, else None."""
    body, _, signature = token.rpartition(".")
    if not hmac.compare_digest(signature.encode(), _signature(secret, purpose, body).encode()):
        return None
    return body.split(".")


def _signature(secret: bytes, purpose: str, body: str) -> str:
    return hmac.new(secret, f"dashboard {purpose}\0{body}".encode(), sha256).hexdigest()


def cookie_name(request: Request) -> str:
    return f"tm_session_{request.url.port or (443 if request.url.scheme == 'https' else 80)}"


def current(request: Request) -> Session:
    """The session of this request.

    Raises:
        SignInNeeded: there is none, or it has run out.
    """
    token = request.cookies.get(cookie_name(request), "")
    fields = unseal(_secret(request), "session", token)
    if fields is None or len(fields) != 3:
        raise SignInNeeded
    found = Session(fields[0], int(fields[1]), int(fields[2]))
    now = time.time()
    if now - found.seen_at > IDLE_S or now - found.opened_at > LONGEST_S:
        raise SignInNeeded
    request.state.session = found
    return found


def open_for(request: Request, response: Response, key_id: str) -> None:
    """Set the cookie of a new session."""
    now = int(time.time())
    _set(request, response, Session(key_id, now, now))


def renew(request: Request, response: Response) -> None:
    """Keep a session that is in use alive; the answer to signing out is left alone."""
    found: Session | None = getattr(request.state, "session", None)
    now = int(time.time())
    if found and now - found.seen_at > RENEW_S and "set-cookie" not in response.headers:
        _set(request, response, Session(found.key_id, found.opened_at, now))


def close(request: Request, response: Response) -> None:
    """Take the cookie back."""
    response.delete_cookie(cookie_name(request), path=_path(request), httponly=True, samesite="strict")


def form_token(request: Request) -> str:
    """What a form of this session must carry: bound to the key and the moment of signing in."""
    found: Session | None = getattr(request.state, "session", None)
    return "" if found is None else _signature(_secret(request), "form", f"{found.key_id}.{found.opened_at}")


def form_is_ours(request: Request, token: str) -> bool:
    expected = form_token(request)
    return bool(expected) and hmac.compare_digest(token.encode(), expected.encode())


def one_time_link(secret: bytes, key_id: str, base_url: str) -> str:
    """An address that signs in once, within ten minutes, as the holder of this key. Print it, never log it."""
    token = seal(secret, "link", key_id, str(int(time.time()) + LINK_S), secrets.token_hex(32))
    return f"{base_url.rstrip('/')}/login?t={token}"


@dataclass(frozen=True, slots=True)
class Link:
    """A valid one-time token: whose it is, and the mark by which its use is remembered."""

    key_id: str
    mark: str


def read_link(request: Request, token: str) -> Link | None:
    """A one-time token that was made here and has not run out; whether it was used is for the store to say."""
    fields = unseal(_secret(request), "link", token)
    if fields is None or len(fields) != 3 or int(fields[1]) < time.time():
        return None
    return Link(fields[0], sha256(fields[2].encode()).hexdigest())


def _set(request: Request, response: Response, found: Session) -> None:
    token = seal(_secret(request), "session", found.key_id, str(found.opened_at), str(found.seen_at))
    response.set_cookie(
        cookie_name(request),
        token,
        max_age=IDLE_S,
        path=_path(request),
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )


def _path(request: Request) -> str:
    return str(request.scope.get("root_path", "")) or "/"


def _secret(request: Request) -> bytes:
    settings: Settings = request.app.state.services.settings
    return settings.secret_bytes
