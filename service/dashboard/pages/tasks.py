"""The list of tasks: filters in the address, facets beside it, keyset pages."""

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from service.auth.principal import Principal
from service.dashboard import filters
from service.dashboard.facets import facets
from service.dashboard.filters import TaskFilter
from service.dashboard.guard import GuardedRoute
from service.dashboard.record import load
from service.dashboard.templating import render
from service.dashboard.urls import page_url
from service.dashboard.viewers import Reader, StoreHandle
from service.store import tasks
from service.store.ids import PATTERN
from service.store.paging import Page, Pager
from service.store.tasks import Listed
from service.words import Scope, Split, TaskStatus
from verifiers.registry import VERIFIERS

PAGE = 50

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


@router.get("/tasks")
def task_list(request: Request, viewer: Reader, store: StoreHandle, cursor: str = "") -> Response:
    chosen = filters.read(request.query_params)
    if chosen.q.startswith("task_") and PATTERN.fullmatch(chosen.q):
        return RedirectResponse(page_url(request, f"/tasks/{chosen.q}"), 303)
    holdout = viewer.may(Scope.HOLDOUT_READ)
    with store.reading() as db:
        found = tasks.page(db, chosen.for_store(), _pager(request, chosen, holdout, cursor), holdout=holdout)
        counted = load(db, viewer)
    context: dict[str, Any] = {
        "tasks": [_row(one) for one in found.items],
        "as_of": datetime.now(UTC),
        "filters": chosen,
        "active": bool(chosen.chosen),
        "facets": facets(request, counted, chosen),
        "counted_at": counted.as_of,
        "count_method": counted.method,
        "domains": list(counted.counts("tasks", "by_domain")),
    }
    return render(request, "tasks.html", context | _choices(viewer) | _pages(request, chosen, cursor, found))


def _row(one: Listed) -> dict[str, Any]:
    task = one.task
    names = ("id", "domain", "status", "split", "verifier", "generator", "licence", "updated_at")
    return {name: getattr(task, name) for name in names} | {"prompt_head": one.prompt_head}


def _choices(viewer: Principal) -> dict[str, Any]:
    """What the selects offer; whoever may not read holdouts is not offered them."""
    splits = [one for one in Split if one is not Split.HOLDOUT or viewer.may(Scope.HOLDOUT_READ)]
    return {"statuses": list(TaskStatus), "splits": splits, "verifiers": sorted(VERIFIERS)}


def _pager(request: Request, chosen: TaskFilter, holdout: bool, cursor: str) -> Pager:
    secret = request.app.state.services.settings.secret_bytes
    return Pager(secret, {"page": "tasks", "holdout": holdout, **chosen.chosen}, cursor or None, PAGE)


def _pages(request: Request, chosen: TaskFilter, cursor: str, page: Page[Listed]) -> dict[str, str]:
    return {
        "first_url": page_url(request, "/tasks", **chosen.chosen) if cursor else "",
        "next_url": page_url(request, "/tasks", **chosen.chosen, cursor=page.next) if page.next else "",
    }
