"""What is recorded about a task: lineage, receipts, attempts, events."""

from fastapi import APIRouter
from pydantic import BaseModel

from service.api.dependencies import PAGE, Cursor, Limit, Reader, ServicesHandle, StoreHandle, problems
from service.api.ids import TaskId
from service.api.task_models import EventOut, EventsOut, LineageOut, ParentOut, ReceiptOut, ReceiptsOut
from service.api.verdict_models import VerdictOut, verdict_out
from service.errors import BadCursor, NotFound
from service.store import attempts, events, lineage, receipts, tasks
from service.store.paging import Pager
from service.store.receipts import Judged
from service.store.tables import TaskParent
from service.words import Scope

router = APIRouter(prefix="/tasks/{task_id}", tags=["tasks"])


class AttemptOut(BaseModel):
    """One attempt with its verdict, without the response's text."""

    id: str
    policy: str | None
    policy_version: int | None
    run: str | None
    group_id: str | None
    tokens: int | None
    verdict: VerdictOut


class AttemptsOut(BaseModel):
    items: list[AttemptOut]
    next: str | None


@router.get("/lineage", operation_id="tasks_lineage", responses=problems(NotFound))
def get_lineage(task_id: TaskId, caller: Reader, store: StoreHandle) -> LineageOut:
    """Parents, children and origin."""
    holdout = caller.may(Scope.HOLDOUT_READ)
    with store.reading() as db:
        task = tasks.get(db, task_id, holdout=holdout)
        found = lineage.of_task(db, task, holdout=holdout)
        return LineageOut(
            family_id=task.family_id,
            origin=found.origin,
            parents=[_edge(edge, edge.parent_id, edge.parent_version) for edge in found.parents],
            children=[_edge(edge, edge.task_id, edge.version) for edge in found.children],
        )


@router.get("/receipts", operation_id="tasks_receipts", responses=problems(NotFound))
def get_receipts(task_id: TaskId, caller: Reader, store: StoreHandle) -> ReceiptsOut:
    """What each gate said of the newest version, oldest first."""
    with store.reading() as db:
        task = tasks.get(db, task_id, holdout=caller.may(Scope.HOLDOUT_READ))
        return ReceiptsOut(items=[_receipt(item) for item in receipts.of_task(db, task.id, task.version)], next=None)


@router.get("/attempts", operation_id="tasks_attempts", responses=problems(NotFound, BadCursor))
def get_attempts(
    task_id: TaskId, caller: Reader, services: ServicesHandle, cursor: Cursor = None, limit: Limit = PAGE
) -> AttemptsOut:
    """Attempts at the task with their verdicts, newest first."""
    pager = Pager(services.settings.secret_bytes, {"list": "attempts", "task": task_id}, cursor, limit)
    with services.store.reading() as db:
        tasks.get(db, task_id, holdout=caller.may(Scope.HOLDOUT_READ))
        page = attempts.of_task(db, task_id, pager)
        return AttemptsOut(items=[_attempt(row) for row in page.items], next=page.next)


@router.get("/events", operation_id="tasks_events", responses=problems(NotFound, BadCursor))
def get_events(
    task_id: TaskId, caller: Reader, services: ServicesHandle, cursor: Cursor = None, limit: Limit = PAGE
) -> EventsOut:
    """Every change of the task, newest first."""
    pager = Pager(services.settings.secret_bytes, {"list": "events", "subject": task_id}, cursor, limit)
    with services.store.reading() as db:
        tasks.get(db, task_id, holdout=caller.may(Scope.HOLDOUT_READ))
        page = events.of_subject(db, task_id, pager)
        names = EventOut.model_fields
        items = [EventOut.model_validate({name: getattr(row, name) for name in names}) for row in page.items]
        return EventsOut(items=items, next=page.next)


def _edge(edge: TaskParent, task_id: str, version: int) -> ParentOut:
    return ParentOut(task_id=task_id, version=version, op=edge.op, op_version=edge.op_version, seed=edge.seed)


def _receipt(item: Judged) -> ReceiptOut:
    row = item.receipt
    fields = {name: getattr(row, name) for name in ReceiptOut.model_fields if name != "current"}
    return ReceiptOut.model_validate(fields | {"current": item.current})


def _attempt(row: attempts.Recorded) -> AttemptOut:
    attempt = row.attempt
    return AttemptOut(
        id=attempt.id,
        policy=attempt.policy,
        policy_version=attempt.policy_version,
        run=attempt.run_id,
        group_id=attempt.group_id,
        tokens=attempt.tokens,
        verdict=verdict_out(row),
    )
