"""What stands before and around every page: host names, same-origin writes, headers, errors as pages.

A route of the dashboard is a `GuardedRoute`; nothing of this can be forgotten on one of them.

Not covered: a program on this machine that holds a valid key or cookie, and the API under `/v1`, which takes no cookie.
"""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from service.dashboard import session
from service.dashboard.templating import error_page
from service.dashboard.urls import page_url
from service.errors import Forbidden, Invalid, NotFound, Problem
from service.settings import Settings

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # no-referrer would send `Origin: null` with our own forms
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class HostRefused(Problem):
    """The request names a host that this server does not answer to (the defence against DNS rebinding)."""

    status, code, title = 421, "host_refused", "This host name is not allowed"


class CrossSite(Forbidden):
    """The form was not sent from a page of this server."""

    code, title = "cross_site", "The form came from another site"


class GuardedRoute(APIRoute):
    """A route whose answer is always guarded: also a refusal and an error carry the headers."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        inner = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            try:
                check_host(request)
                check_origin(request)
                response = await inner(request)
            except session.SignInNeeded:
                response = _to_sign_in(request)
            except Problem as problem:
                response = error_page(request, problem)
            except RequestValidationError:
                response = error_page(request, Invalid("A field of the form or of the address is missing or wrong."))
            except HTTPException as error:
                response = error_page(request, _problem(error))
            session.renew(request, response)
            for name, value in HEADERS.items():
                response.headers[name] = value
            response.headers.setdefault("Cache-Control", "private, no-cache")
            return response

        return guarded


def check_host(request: Request) -> None:
    """Refuse a Host that is not on the list: a foreign name that resolves to this machine is an attack.

    Raises:
        HostRefused: with the setting to change.
    """
    settings: Settings = request.app.state.services.settings
    own = {settings.host.lower(), *(name.strip().lower() for name in settings.allowed_hosts.split(","))}
    name = hostname(request.headers.get("host", ""))
    if name not in LOOPBACK | own or not name:
        raise HostRefused(
            f"This server does not answer to the host name {name!r}. If the name is yours, set "
            f"TASKMILL_ALLOWED_HOSTS={name or 'your.host.name'} and start the server again."
        )


def hostname(host: str) -> str:
    """The name in a Host header, without port and brackets, in lower case."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.rpartition(":")[0].lower() if host.count(":") == 1 else host.lower()


def check_origin(request: Request) -> None:
    """Refuse a write that another site could have caused.

    `same-site` is refused too: a page on another port of this machine is same-site, so the cookie would come along.

    Raises:
        CrossSite: the browser says, or cannot say, that the form is not ours.
    """
    if request.method in SAFE:
        return
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        if site == "same-origin":
            return
        raise CrossSite(f"The browser calls this request {site!r}; only same-origin is taken.")
    if request.headers.get("origin") == f"{request.url.scheme}://{request.url.netloc}":
        return
    raise CrossSite("Neither Sec-Fetch-Site nor Origin shows that the form came from this server.")


def _to_sign_in(request: Request) -> Response:
    wanted = request.url.path.removeprefix(request.scope.get("root_path", ""))
    if request.url.query:
        wanted += f"?{request.url.query}"
    if request.method not in SAFE or wanted == "/":
        return RedirectResponse(page_url(request, "/login"), 303)
    return RedirectResponse(page_url(request, "/login", next=wanted), 303)


def _problem(error: HTTPException) -> Problem:
    return NotFound() if error.status_code == 404 else Invalid(str(error.detail))
