"""Tasks: submit, list, read, curate."""

from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query
from fastapi.responses import Response
from pydantic import Field

from service.actions.curate import change_status
from service.actions.submit import submit
from service.api.dependencies import (
    PAGE,
    Curator,
    Cursor,
    Limit,
    Reader,
    ServicesHandle,
    StoreHandle,
    Submitter,
    problems,
)
from service.api.etag import require_match, tag_of
from service.api.idempotent import OnceHandle
from service.api.ids import TaskId
from service.api.task_filters import FiltersHandle, Sort
from service.api.task_models import HeldOut, SubmittedOut, TaskOut, TasksOut, submitted, summary, whole
from service.auth.principal import Principal
from service.errors import (
    BadCursor,
    Conflict,
    Forbidden,
    GatesMissing,
    Invalid,
    KeyReused,
    NotFound,
    PreconditionFailed,
    PreconditionRequired,
    SplitConflict,
    StoreBusy,
    TooLarge,
)
from service.store import exposure, tasks
from service.store.admission import prepare
from service.store.drafts import Strict, Tag, TaskDraft
from service.store.paging import Pager
from service.store.session import Store
from service.words import Scope, Split, TaskStatus

router = APIRouter(prefix="/tasks", tags=["tasks"])
COUNT_UP_TO = 10_000


class Reason(Strict):
    """Why; it stands in the event."""

    reason: Annotated[str, Field(min_length=1, max_length=1000)]


class TagsIn(Strict):
    tags: Annotated[list[Tag], Field(max_length=64)]


@router.post(
    "",
    operation_id="tasks_create",
    status_code=201,
    response_model=SubmittedOut | HeldOut,
    responses={200: {"model": SubmittedOut}, **problems(Invalid, SplitConflict, TooLarge, KeyReused, StoreBusy)},
)
def create_task(body: TaskDraft, caller: Submitter, services: ServicesHandle, once: OnceHandle) -> Response:
    """Submit a task: 201, and a job gates it. An exact duplicate answers 200 with `duplicate_of`."""
    prepared = prepare(body)
    with services.store.writing() as db:
        if again := once.replay(db):
            return again
        (found,) = submit(
            db, [prepared], actor=caller.key_id, rule=services.split_rule, may_split=caller.may(Scope.CURATE)
        )
        if found.duplicate_of is None:
            return once.keep(db, 201, submitted(found))
        if found.split == Split.HOLDOUT and not caller.may(Scope.HOLDOUT_READ):
            return once.keep(db, 200, HeldOut(status="held_for_review"))
        return once.keep(db, 200, submitted(found))


@router.get("", operation_id="tasks_list", responses=problems(Invalid, BadCursor))
def list_tasks(
    caller: Reader,
    services: ServicesHandle,
    filters: FiltersHandle,
    sort: Sort = "-created_at",
    cursor: Cursor = None,
    limit: Limit = PAGE,
    count: Annotated[bool, Query(description="Also count the matches, up to 10,000.")] = False,
) -> TasksOut:
    """Tasks by age. A filter given several times means any of its values; different filters narrow."""
    holdout = caller.may(Scope.HOLDOUT_READ)
    scope = {"list": "tasks", "filters": repr(filters), "sort": sort, "holdout": holdout}
    pager = Pager(services.settings.secret_bytes, scope, cursor, limit)
    with services.store.reading() as db:
        page = tasks.page(db, filters, pager, holdout=holdout, newest_first=sort == "-created_at")
        total = tasks.count(db, filters, holdout=holdout, at_most=COUNT_UP_TO) if count else None
        return TasksOut(items=[summary(row) for row in page.items], next=page.next, count=total)


@router.get("/{task_id}", operation_id="tasks_get", response_model=TaskOut, responses=problems(NotFound, Forbidden))
def get_task(
    task_id: TaskId,
    caller: Reader,
    store: StoreHandle,
    include: Annotated[Literal["answers"] | None, Query()] = None,
    version: Annotated[int | None, Query(ge=1)] = None,
) -> Response:
    """One task. `include=answers` needs `answers:read`; reads of holdouts and of answers are logged."""
    if include == "answers" and not caller.may(Scope.ANSWERS_READ):
        raise Forbidden("reading answers needs the scope answers:read")
    with store.reading() as db:
        task = tasks.get(db, task_id, holdout=caller.may(Scope.HOLDOUT_READ))
        found = tasks.whole(db, task, version, answers=include == "answers")
        answer, etag = whole(found), tag_of(task.row_version)
    if include == "answers" or task.split == Split.HOLDOUT:
        _expose(store, caller, task_id, found.version.version, "answers" if include else "task")
    return Response(answer.model_dump_json(), headers={"ETag": etag}, media_type="application/json")


@router.patch(
    "/{task_id}",
    operation_id="tasks_patch",
    response_model=TaskOut,
    responses=problems(NotFound, Invalid, PreconditionFailed, PreconditionRequired, StoreBusy),
)
def patch_task(
    task_id: TaskId,
    body: TagsIn,
    caller: Curator,
    store: StoreHandle,
    if_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Replace the tags of a task. Needs If-Match with the ETag of what was read, so that no edit is lost."""
    with store.writing() as db:
        task = tasks.lock(db, task_id, holdout=caller.may(Scope.HOLDOUT_READ))
        require_match(if_match, task.row_version)
        tasks.set_tags(db, task, body.tags, actor=caller.key_id)
        answer, etag = whole(tasks.whole(db, task)), tag_of(task.row_version)
        return Response(answer.model_dump_json(), headers={"ETag": etag}, media_type="application/json")


STATUS_PROBLEMS = problems(NotFound, Conflict, StoreBusy)


@router.post(
    "/{task_id}:activate", operation_id="tasks_activate", responses=problems(NotFound, GatesMissing, StoreBusy)
)
def activate(task_id: TaskId, body: Reason, caller: Curator, store: StoreHandle) -> TaskOut:
    """Serve the task. 409 with the missing and failed gates when its receipts do not suffice."""
    return _move(store, caller, task_id, TaskStatus.ACTIVE, body.reason)


@router.post("/{task_id}:quarantine", operation_id="tasks_quarantine", responses=STATUS_PROBLEMS)
def quarantine(task_id: TaskId, body: Reason, caller: Curator, store: StoreHandle) -> TaskOut:
    """Stop serving the task until it is looked at."""
    return _move(store, caller, task_id, TaskStatus.QUARANTINED, body.reason)


@router.post("/{task_id}:retire", operation_id="tasks_retire", responses=STATUS_PROBLEMS)
def retire(task_id: TaskId, body: Reason, caller: Curator, store: StoreHandle) -> TaskOut:
    """End the task for good; its history stays."""
    return _move(store, caller, task_id, TaskStatus.RETIRED, body.reason)


@router.post("/{task_id}:reject", operation_id="tasks_reject", responses=STATUS_PROBLEMS)
def reject(task_id: TaskId, body: Reason, caller: Curator, store: StoreHandle) -> TaskOut:
    """Refuse the task."""
    return _move(store, caller, task_id, TaskStatus.REJECTED, body.reason)


def _move(store: Store, caller: Principal, task_id: str, to: TaskStatus, reason: str) -> TaskOut:
    with store.writing() as db:
        holdout = caller.may(Scope.HOLDOUT_READ)
        task = change_status(db, task_id, to, actor=caller.key_id, reason=reason, holdout=holdout)
        return whole(tasks.whole(db, task))


def _expose(store: Store, caller: Principal, task_id: str, version: int, surface: str) -> None:
    with store.writing() as db:
        exposure.record(db, task_id, version, actor=caller.key_id, surface=surface)
