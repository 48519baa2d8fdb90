"""The person who looks at a page: the key behind the session, read anew on every request."""

from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Form
from starlette.requests import Request

from service.auth.principal import Principal
from service.dashboard import session
from service.dashboard.guard import CrossSite
from service.errors import Forbidden
from service.store import keys
from service.store.session import Store
from service.words import Scope


def store_of(request: Request) -> Store:
    found: Store = request.app.state.services.store
    return found


def load_viewer(request: Request, key_id: str) -> Principal:
    """The holder of the key with this id.

    Raises:
        SignInNeeded: the key is gone, revoked or expired.
    """
    with store_of(request).reading() as db:
        key = keys.by_id(db, key_id)
        if key is None:
            raise session.SignInNeeded
        return Principal(key.id, key.name, frozenset(key.scopes))


def needs(scope: Scope) -> Callable[[Request], Principal]:
    """A dependency: the viewer, who holds this scope."""

    def check(request: Request) -> Principal:
        viewer = load_viewer(request, session.current(request).key_id)
        request.state.viewer = viewer
        if not viewer.may(scope):
            raise Forbidden(f"This page needs a key with the scope {scope}; the key {viewer.name!r} lacks it.")
        return viewer

    return check


Reader = Annotated[Principal, Depends(needs(Scope.TASKS_READ))]
Curator = Annotated[Principal, Depends(needs(Scope.CURATE))]
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
