"""Changing a task's status from its page: the same law as the API, an event with the reason."""

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from service.actions.curate import change_status
from service.dashboard.guard import GuardedRoute
from service.dashboard.urls import page_url
from service.dashboard.viewers import Curator, OwnForm, StoreHandle
from service.words import Scope, TaskStatus

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


@router.post("/tasks/{task_id}/move", dependencies=[OwnForm])
def move_task(
    request: Request,
    viewer: Curator,
    store: StoreHandle,
    task_id: str,
    to: Annotated[TaskStatus, Form()],
    reason: Annotated[str, Form(min_length=1, max_length=1000)],
) -> Response:
    with store.writing() as db:
        holdout = viewer.may(Scope.HOLDOUT_READ)
        change_status(db, task_id, to, actor=viewer.key_id, reason=reason.strip(), holdout=holdout)
    return RedirectResponse(page_url(request, f"/tasks/{task_id}"), 303)
