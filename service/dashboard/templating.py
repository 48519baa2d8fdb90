"""Templates: autoescape is on for every file, an undefined name is an error, and only this module renders."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from service.dashboard import session
from service.dashboard.assets import build
from service.dashboard.charts.ticks import compact
from service.dashboard.hostile_text import head, visible
from service.dashboard.number import moment
from service.dashboard.urls import page_url
from service.errors import Problem

THEMES = ("auto", "light", "dark")


@cache
def environment() -> Environment:
    """The one environment. `autoescape=True`: by file name alone, Jinja would leave some files unescaped."""
    made = Environment(
        loader=PackageLoader("service.dashboard", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"visible": visible, "head": head, "compact": compact, "moment": moment}
    made.filters |= {
        "pretty": partial(json.dumps, indent=2, ensure_ascii=False, sort_keys=True),
        "clock": _clock,
        "ago": _ago,
        "short": short_id,
    }
    return made


def render(request: Request, template: str, context: Mapping[str, Any], status: int = 200) -> HTMLResponse:
    """A page of ours."""
    return HTMLResponse(markup(request, template, context), status)


def markup(request: Request, template: str, context: Mapping[str, Any]) -> str:
    """A page, or a part of one, as text."""
    frame: Mapping[str, Any] = {
        "url": partial(page_url, request),
        "asset": lambda name: page_url(request, f"/static/{build()}/{name}"),
        "theme": theme(request),
        "form_token": session.form_token(request),
        "here": request.url.path.removeprefix(str(request.scope.get("root_path", ""))) or "/",
        "here_query": request.url.query,
        "now": datetime.now(UTC),
        "unisolated": request.app.state.services.settings.sandbox_backend == "unisolated",
        "viewer": getattr(request.state, "viewer", None),
    }
    return environment().get_template(template).render({**frame, **context})


def error_page(request: Request, problem: Problem) -> HTMLResponse:
    """A problem as a page, with its stable code."""
    return render(request, "error.html", {"problem": problem}, problem.status)


def theme(request: Request) -> str:
    chosen = request.cookies.get("tm_theme", "auto")
    return chosen if chosen in THEMES else "auto"


def short_id(value: str) -> str:
    """The last eight digits: the first ones are the time, and alike in one batch."""
    kind, _, digits = value.partition("_")
    return f"{kind}_…{digits[-8:]}" if len(digits) > 12 else value


def _clock(value: datetime | None) -> str:
    return value.astimezone(UTC).strftime("%H:%M:%S") if value else "—"


def _ago(value: datetime | None, now: datetime) -> str:
    if value is None:
        return "—"
    seconds = max(0.0, (now - value).total_seconds())
    for limit, size, unit in ((90, 1, "s"), (5400, 60, "min"), (129_600, 3600, "h")):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{seconds / 86_400:.0f} d ago"
