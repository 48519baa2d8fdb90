"""The person who looks at a page: the key behind the session, read anew on every request."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, Form
from starlette.requests import Request

from service.dashboard import session
from service.dashboard.guard import CrossSite
from service.errors import Forbidden
from service.store import keys
from service.store.session import Store
from service.words import Scope


@dataclass(frozen=True, slots=True)
class Viewer:
    """A key's id, name and scopes as they are now."""

    key_id: str
    name: str
    scopes: frozenset[str]

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes

    @property
    def sees_holdout(self) -> bool:
        return self.may(Scope.HOLDOUT_READ)

    @property
    def curates(self) -> bool:
        return self.may(Scope.CURATE)


def store_of(request: Request) -> Store:
    found: Store = request.app.state.services.store
    return found


def load_viewer(request: Request, key_id: str) -> Viewer:
    """The key with this id.

    Raises:
        SignInNeeded: it is gone, revoked or expired.
    """
    with store_of(request).reading() as db:
        key: Any = keys.get(db, key_id)
        now = datetime.now(UTC)
        if key is None or key.revoked_at is not None or (key.expires_at is not None and key.expires_at <= now):
            raise session.SignInNeeded
        return Viewer(key.id, key.name, frozenset(key.scopes))


def needs(scope: Scope) -> Callable[[Request], Viewer]:
    """A dependency: the viewer, who holds this scope."""

    def check(request: Request) -> Viewer:
        viewer = load_viewer(request, session.current(request).key_id)
        request.state.viewer = viewer
        if not viewer.may(scope):
            raise Forbidden(f"This page needs a key with the scope {scope}; the key {viewer.name!r} lacks it.")
        return viewer

    return check


Reader = Annotated[Viewer, Depends(needs(Scope.TASKS_READ))]
Curator = Annotated[Viewer, Depends(needs(Scope.CURATE))]
StoreHandle = Annotated[Store, Depends(store_of)]


def check_form(request: Request, form_token: Annotated[str, Form()] = "") -> None:
    """A form must carry the token of its session; it runs after the session is known.

    Raises:
        CrossSite: the token is missing or another session's.
    """
    session.current(request)
    if not session.form_is_ours(request, form_token):
        raise CrossSite("The form is from an older session. Load the page again and repeat it.")


OwnForm = Depends(check_form)
