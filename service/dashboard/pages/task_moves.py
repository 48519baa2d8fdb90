"""Changing a task's status from its page: the same law as the API, an event with the reason."""

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from service.dashboard.guard import GuardedRoute
from service.dashboard.urls import page_url
from service.dashboard.viewers import Curator, OwnForm, StoreHandle
from service.errors import GatesMissing
from service.store import receipts, tasks
from service.store.required_gates import current_key
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
        task = tasks.get(db, task_id, holdout=viewer.may(Scope.HOLDOUT_READ))
        key = None
        if to is TaskStatus.ACTIVE:
            standing = receipts.standing(db, task)
            if standing.missing or standing.failed:
                unmet = ", ".join([*standing.missing, *standing.failed])
                raise GatesMissing(f"The task cannot be active: it lacks a current pass of {unmet}.")
            key = current_key(task.task_type, task.verifier)
        tasks.move(db, task, to, actor=viewer.key_id, reason=reason.strip(), receipts_key=key)
    return RedirectResponse(page_url(request, f"/tasks/{task_id}"), 303)
