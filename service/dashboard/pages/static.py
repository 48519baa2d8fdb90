"""Our own style sheet, scripts and icon. Nothing else is ever loaded by a page."""

from fastapi import APIRouter
from starlette.responses import Response

from service.dashboard.assets import build, contents
from service.dashboard.guard import GuardedRoute
from service.errors import NotFound

TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
YEAR_S = 31_536_000

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


@router.get("/static/{build_hash}/{name}")
def static(build_hash: str, name: str) -> Response:
    content = contents().get(name)
    if content is None:
        raise NotFound("There is no such file.")
    kind = TYPES.get(name[name.rfind(".") :], "application/octet-stream")
    age = f"public, max-age={YEAR_S}, immutable" if build_hash == build() else "no-cache"
    return Response(content, media_type=kind, headers={"Cache-Control": age})


@router.get("/favicon.ico")
def favicon() -> Response:
    return Response(
        contents()["icon.svg"], media_type=TYPES[".svg"], headers={"Cache-Control": "public, max-age=86400"}
    )
