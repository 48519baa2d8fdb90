"""One task: its prompt and facts, its attempts, receipts, provenance and events, each at its own address.

References, gold answers and tests are never read here. A holdout task is not there for a key without `holdout:read`;
for one with it, each view is an exposure event and is not cached.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from service.auth.principal import Principal
from service.dashboard.charts.bars import Part, stack
from service.dashboard.charts.chart import Chart
from service.dashboard.guard import GuardedRoute
from service.dashboard.hostile_text import MOST
from service.dashboard.outcomes import OUTCOME_TONES
from service.dashboard.templating import render
from service.dashboard.urls import page_url
from service.dashboard.viewers import Reader, StoreHandle
from service.store import attempts, events, exposure, lineage, receipts, tasks
from service.store.attempts import Recorded
from service.store.ids import task_ref
from service.store.paging import Page, Pager
from service.store.required_gates import required
from service.store.session import Store
from service.store.tables import Task
from service.words import Scope, Split, TaskStatus

PAGE = 50
MOVE_NAMES = {
    TaskStatus.ACTIVE: "Activate",
    TaskStatus.QUARANTINED: "Quarantine",
    TaskStatus.REJECTED: "Reject",
    TaskStatus.RETIRED: "Retire",
}

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


@router.get("/tasks/{task_id}")
def task_page(request: Request, viewer: Reader, store: StoreHandle, task_id: str) -> Response:
    with store.reading() as db:
        task = tasks.get(db, task_id, holdout=viewer.may(Scope.HOLDOUT_READ))
        version = tasks.whole(db, task).version
        tags = tasks.tags_of(db, task_id)
        missing = receipts.standing(db, task)
    may_move = viewer.may(Scope.CURATE)
    context: dict[str, Any] = {
        "prompt": version.prompt,
        "most": MOST,
        "verifier_params": _text(version.verifier.get("params")),
        "environment": version.environment,
        "files": version.environment.get("files", {}),
        "limits": limits_text(version.limits),
        "features": version.features,
        "tags": tags,
        "moves": moves(task) if may_move else [],
        "unmet": [*missing.missing, *missing.failed],
    }
    return _answer(request, store, viewer, task, "task.html", context)


@router.get("/tasks/{task_id}/attempts")
def task_attempts(request: Request, viewer: Reader, store: StoreHandle, task_id: str, cursor: str = "") -> Response:
    with store.reading() as db:
        task = tasks.get(db, task_id, holdout=viewer.may(Scope.HOLDOUT_READ))
        found = attempts.of_task(db, task_id, _pager(request, task_id, "attempts", cursor))
    context = {"attempts": [_attempt(row) for row in found.items], "outcomes": outcome_chart(found.items)}
    context |= _pages(request, f"/tasks/{task_id}/attempts", cursor, found)
    return _answer(request, store, viewer, task, "task_attempts.html", context)


@router.get("/tasks/{task_id}/receipts")
def task_receipts(request: Request, viewer: Reader, store: StoreHandle, task_id: str) -> Response:
    with store.reading() as db:
        task = tasks.get(db, task_id, holdout=viewer.may(Scope.HOLDOUT_READ))
        found = receipts.of_task(db, task_id, task.version)
    context = {"receipts": found, "required": required(task.task_type)}
    return _answer(request, store, viewer, task, "task_receipts.html", context)


@router.get("/tasks/{task_id}/provenance")
def task_provenance(request: Request, viewer: Reader, store: StoreHandle, task_id: str) -> Response:
    holdout = viewer.may(Scope.HOLDOUT_READ)
    with store.reading() as db:
        task = tasks.get(db, task_id, holdout=holdout)
        sources = tasks.whole(db, task).sources
        found = lineage.of_task(db, task, holdout=holdout)
    context: dict[str, Any] = {
        "sources": sources,
        "origin": found.origin,
        "parents": [
            {"id": one.parent_id, "op": one.op, "op_version": one.op_version, "seed": one.seed} for one in found.parents
        ],
        "children": [{"id": one.task_id, "op": one.op} for one in found.children],
    }
    return _answer(request, store, viewer, task, "task_provenance.html", context)


@router.get("/tasks/{task_id}/events")
def task_events(request: Request, viewer: Reader, store: StoreHandle, task_id: str, cursor: str = "") -> Response:
    with store.reading() as db:
        task = tasks.get(db, task_id, holdout=viewer.may(Scope.HOLDOUT_READ))
        found = events.of_subject(db, task_id, _pager(request, task_id, "events", cursor))
    context = {"events": found.items} | _pages(request, f"/tasks/{task_id}/events", cursor, found)
    return _answer(request, store, viewer, task, "task_events.html", context)


def moves(task: Task) -> list[dict[str, str]]:
    """What the status machine allows from here, in the order of the buttons."""
    allowed = tasks.MOVES[TaskStatus(task.status)]
    return [{"to": str(to), "name": name} for to, name in MOVE_NAMES.items() if to in allowed]


def outcome_chart(rows: Sequence[Recorded]) -> Chart:
    """How the attempts on this page came out."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.verdict.outcome] = counts.get(row.verdict.outcome, 0) + 1
    parts = [Part(word.replace("_", " "), counts[word], tone) for word, tone in OUTCOME_TONES.items() if word in counts]
    return stack(parts, noun="attempts")


def limits_text(limits: Mapping[str, Any]) -> str:
    """Limits with their units, which stand at the end of their names: `wall 10 s, memory 512 MB`."""
    units = {"s": "s", "mb": "MB", "kb": "kB"}
    parts = []
    for name, value in limits.items():
        if value is None:
            continue
        stem, _, unit = name.rpartition("_")
        parts.append(f"{stem} {value:g} {units[unit]}" if unit in units else f"{name} {value:g}")
    return ", ".join(parts)


def _answer(
    request: Request, store: Store, viewer: Principal, task: Task, template: str, context: Mapping[str, Any]
) -> Response:
    shared = {"task": task, "ref": task_ref(task.id, task.version), "as_of": datetime.now(UTC)}
    response = render(request, template, shared | dict(context))
    if task.split == Split.HOLDOUT:
        with store.writing() as db:
            exposure.record(db, task.id, task.version, actor=viewer.key_id, surface=f"dashboard:{template}")
        response.headers["Cache-Control"] = "no-store"
    return response


def _attempt(row: Recorded) -> dict[str, Any]:
    attempt, verdict = row
    response = attempt.response
    return {
        "id": attempt.id,
        "policy": attempt.policy,
        "policy_version": attempt.policy_version,
        "tokens": attempt.tokens,
        "created_at": attempt.created_at,
        "response": response if isinstance(response, str) else _text(response),
        "verdict_id": verdict.id,
        "outcome": verdict.outcome,
        "reward": verdict.reward,
        "code": verdict.code,
        "detail": verdict.detail,
        "extracted": verdict.extracted,
        "verifier": verdict.verifier,
        "verifier_version": verdict.verifier_version,
    }


def _text(value: Any) -> str | None:
    return json.dumps(value, ensure_ascii=False, indent=1) if value else None


def _pager(request: Request, task_id: str, name: str, cursor: str) -> Pager:
    secret = request.app.state.services.settings.secret_bytes
    return Pager(secret, {"page": f"task {name}", "task": task_id}, cursor or None, PAGE)


def _pages(request: Request, path: str, cursor: str, page: Page[Any]) -> dict[str, str]:
    return {
        "first_url": page_url(request, path) if cursor else "",
        "next_url": page_url(request, path, cursor=page.next) if page.next else "",
    }
