"""Signing in with a key or a one-time link, signing out, and the choice of theme."""

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from service.auth.keys import fingerprint
from service.dashboard import session
from service.dashboard.guard import GuardedRoute
from service.dashboard.templating import THEMES, render
from service.dashboard.urls import local_path, page_url
from service.dashboard.viewers import OwnForm, StoreHandle, load_viewer
from service.errors import InFlight
from service.store import idempotency, keys
from service.store.session import Store

NOT_STORED = {"Cache-Control": "no-store"}
YEAR_S = 31_536_000

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


@router.get("/login")
def login(request: Request, store: StoreHandle, t: str = "", next: str = "/") -> Response:
    if not t:
        return _form(request, next)
    if "prefetch" in request.headers.get("sec-purpose", ""):
        return _form(request, next)  # a browser that guesses ahead must not use the link up
    link = session.read_link(request, t)
    if link is None or not _first_use(store, link):
        return _form(request, next, "This link has been used or has run out. `taskmill up` prints a new one.", 403)
    load_viewer(request, link.key_id)
    return _opened(request, link.key_id, "/")


@router.post("/login")
def sign_in(
    request: Request, store: StoreHandle, key: Annotated[str, Form()] = "", next: Annotated[str, Form()] = "/"
) -> Response:
    secret = request.app.state.services.settings.secret_bytes
    with store.reading() as db:
        row = keys.find(db, fingerprint(secret, key.strip()))
        found = row.id if row else None
    if found is None:
        return _form(request, next, "No such key, or it has been revoked or has expired.", 401)
    return _opened(request, found, local_path(next))


@router.post("/logout", dependencies=[OwnForm])
def sign_out(request: Request) -> Response:
    response = RedirectResponse(page_url(request, "/login"), 303, NOT_STORED)
    session.close(request, response)
    return response


@router.post("/theme")
def choose_theme(request: Request, theme: Annotated[str, Form()], back: Annotated[str, Form()] = "/") -> Response:
    path, _, query = local_path(back).partition("?")
    target = page_url(request, path) + (f"?{query}" if query else "")
    response = RedirectResponse(target, 303)
    chosen = theme if theme in THEMES else THEMES[0]
    response.set_cookie(
        "tm_theme", chosen, max_age=YEAR_S, httponly=True, samesite="strict", path=page_url(request, "/")
    )
    return response


def _form(request: Request, wanted: str, refusal: str = "", status: int = 200) -> Response:
    response = render(request, "login.html", {"next": local_path(wanted), "refusal": refusal}, status)
    response.headers.update(NOT_STORED)
    return response


def _opened(request: Request, key_id: str, wanted: str) -> Response:
    path, _, query = wanted.partition("?")
    target = page_url(request, path) + (f"?{query}" if query else "")
    response = RedirectResponse(target, 303, NOT_STORED)
    session.open_for(request, response, key_id)
    return response


def _first_use(store: Store, link: session.Link) -> bool:
    """Remembered in the store, so that one use is one use over restarts and several processes."""
    key = idempotency.Key(link.key_id, "dashboard link", link.mark, link.mark)
    try:
        with store.writing() as db:
            return idempotency.begin(db, key, lease_s=2 * session.LINK_S, ttl_s=2 * session.LINK_S) is None
    except InFlight:
        return False
