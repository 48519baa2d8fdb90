"""Runs: what a trainer reports of itself, and the curves that the dashboard draws."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, Field

from service.api.dependencies import PAGE, Cursor, Limit, ServicesHandle, Trainer, problems
from service.errors import BadCursor, Invalid, NotFound, StoreBusy
from service.store import events, runs
from service.store.drafts import Strict
from service.store.jobs import clock
from service.store.paging import Pager
from service.store.runs import Point, PointRecord
from service.store.tables import Run
from service.stream.contract import Count
from service.words import RunStatus

router = APIRouter(tags=["runs"])

RunId = Annotated[str, Path(pattern=r"^run_[0-9a-f]{32}$")]
MAX_POINTS = 10_000
POINTS_PAGE = 5000


class RunIn(Strict):
    name: Annotated[str, Field(min_length=1, max_length=120)]
    kind: Literal["train", "eval"] = "train"
    policy: Annotated[str, Field(min_length=1, max_length=120)]
    stream_id: Annotated[str, Field(max_length=40)] | None = None
    config: dict[str, Any] = Field(default_factory=dict)


class RunOut(BaseModel):
    """`last_step` is the largest step of the newest report; a resumed run may step back."""

    id: str
    name: str
    kind: str
    policy: str
    stream_id: str | None
    config: dict[str, Any]
    status: str
    summary: dict[str, Any]
    last_step: int | None
    created_at: str
    updated_at: str
    finished_at: str | None


class RunPage(BaseModel):
    items: list[RunOut]
    next: str | None


class PointIn(Strict):
    step: Count
    name: Annotated[str, Field(pattern=r"^[\w.:/@ -]{1,120}$")]
    value: float


class MetricsIn(Strict):
    """Points, and how the run stands. A point of a step reported before replaces it."""

    points: Annotated[list[PointIn], Field(default_factory=list, max_length=MAX_POINTS)]
    status: RunStatus | None = None
    summary: dict[str, Any] | None = None


class PointOut(BaseModel):
    step: int
    name: str
    value: float
    at: str


class PointPage(BaseModel):
    items: list[PointOut]
    next: str | None


@router.post("/runs", operation_id="runs_create", status_code=201, responses=problems(Invalid, StoreBusy))
def create(body: RunIn, caller: Trainer, services: ServicesHandle, response: Response) -> RunOut:
    with services.store.writing() as db:
        made = runs.create(db, **body.model_dump(), actor=caller.key_id, now=clock(db))
        events.record(db, made.id, "run.created", caller.key_id, data={"name": made.name, "kind": made.kind})
        response.headers["Location"] = f"/v1/runs/{made.id}"
        return _run_out(made)


@router.get("/runs", operation_id="runs_list", responses=problems(BadCursor))
def list_(caller: Trainer, services: ServicesHandle, cursor: Cursor = None, limit: Limit = PAGE) -> RunPage:
    """Runs, newest first."""
    pager = Pager(services.settings.secret_bytes, {"list": "runs"}, cursor, limit)
    before = pager.after()
    with services.store.reading() as db:
        rows = runs.page(db, before=before[0] if before else None, limit=limit + 1)
    page = pager.page(rows, lambda row: [row.id])
    return RunPage(items=[_run_out(row) for row in page.items], next=page.next)


@router.get("/runs/{run_id}", operation_id="runs_get", responses=problems(NotFound))
def get(run_id: RunId, caller: Trainer, services: ServicesHandle) -> RunOut:
    with services.store.reading() as db:
        return _run_out(runs.get(db, run_id))


@router.post("/runs/{run_id}/metrics", operation_id="runs_report", responses=problems(NotFound, Invalid, StoreBusy))
def report(run_id: RunId, body: MetricsIn, caller: Trainer, services: ServicesHandle) -> RunOut:
    """Add points to a run's curves, in any order and any number of times."""
    last_step = max((point.step for point in body.points), default=None)
    with services.store.writing() as db:
        now = clock(db)
        moved = runs.move(db, run_id, last_step=last_step, status=body.status, summary=body.summary, now=now)
        runs.add_points(db, run_id, [Point(point.step, point.name, point.value) for point in body.points], now)
        if body.status is not None:
            events.record(db, run_id, f"run.{body.status}", caller.key_id)
        return _run_out(moved)


@router.get("/runs/{run_id}/metrics", operation_id="runs_metrics", responses=problems(NotFound, BadCursor))
def metrics(
    run_id: RunId,
    caller: Trainer,
    services: ServicesHandle,
    name: Annotated[list[str] | None, Query(max_length=100)] = None,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=POINTS_PAGE)] = POINTS_PAGE,
) -> PointPage:
    """The points of one curve, some or all, by name and step."""
    names = sorted(set(name or []))
    pager = Pager(services.settings.secret_bytes, {"list": "points", "of": run_id, "names": names}, cursor, limit)
    after = pager.after()
    with services.store.reading() as db:
        runs.get(db, run_id)
        rows = runs.points(db, run_id, names, (after[0], after[1]) if after else None, limit + 1)
    page = pager.page(rows, lambda row: [row.name, row.step])
    return PointPage(items=[_point_out(row) for row in page.items], next=page.next)


def _run_out(run: Run) -> RunOut:
    return RunOut(
        id=run.id,
        name=run.name,
        kind=run.kind,
        policy=run.policy,
        stream_id=run.stream_id,
        config=run.config,
        status=run.status,
        summary=run.summary,
        last_step=run.last_step,
        created_at=run.created_at.isoformat(),
        updated_at=run.updated_at.isoformat(),
        finished_at=run.finished_at.isoformat() if run.finished_at else None,
    )


def _point_out(point: PointRecord) -> PointOut:
    return PointOut(step=point.step, name=point.name, value=point.value, at=point.at.isoformat())
