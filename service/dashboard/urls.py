"""Addresses of pages: path only, under the path the server is mounted at. Never built from the Host header."""

from urllib.parse import quote, urlencode

from starlette.requests import Request

Value = str | int | None


def page_url(request: Request, path: str, /, **query: Value) -> str:
    """The address of a page of ours; parameters without a value are left out."""
    root = str(request.scope.get("root_path", "")).rstrip("/")
    pairs = [(key, str(value)) for key, value in query.items() if value not in (None, "")]
    return quote(root + path, safe="/:@-._~") + (f"?{urlencode(pairs)}" if pairs else "")


def local_path(wanted: str) -> str:
    """A path to go to after signing in; anything that could leave this server becomes `/`."""
    path = wanted.partition("?")[0]
    if not path.startswith("/") or path.startswith("//") or "\\" in wanted or any(c < " " for c in wanted):
        return "/"
    return wanted
