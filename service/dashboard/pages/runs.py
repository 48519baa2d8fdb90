"""Training and evaluation runs: the list, and one run's curves, live while it runs."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from service.dashboard import curves
from service.dashboard.charts.line import sparkline
from service.dashboard.guard import GuardedRoute
from service.dashboard.number import Number
from service.dashboard.templating import render
from service.dashboard.urls import page_url
from service.dashboard.viewers import Reader, StoreHandle
from service.store import runs
from service.store.session import ReadSession
from service.store.tables import Run
from service.words import RunStatus

PAGE = 50

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


@router.get("/runs")
def run_list(request: Request, viewer: Reader, store: StoreHandle, before: str = "") -> Response:
    with store.reading() as db:
        found = runs.page(db, before=before or None, limit=PAGE)
        rows = summaries(db, found)
    context: dict[str, Any] = {
        "runs": rows,
        "as_of": datetime.now(UTC),
        "first_url": page_url(request, "/runs") if before else "",
        "next_url": page_url(request, "/runs", before=found[-1].id) if len(found) == PAGE else "",
    }
    return render(request, "runs.html", context)


@router.get("/runs/{run_id}")
def run_page(
    request: Request, viewer: Reader, store: StoreHandle, run_id: str, step: int | None = None, q: str = ""
) -> Response:
    with store.reading() as db:
        run = runs.get(db, run_id)
        metrics = points(db, run_id)
    href = partial(_step_href, request, run_id)
    context = _shown(request, run, metrics, step) | {"q": q, "others": curves.others(metrics, href, q)}
    return render(request, "run.html", context)


@router.get("/runs/{run_id}/part")
def run_part(request: Request, viewer: Reader, store: StoreHandle, run_id: str, step: int | None = None) -> Response:
    with store.reading() as db:
        run = runs.get(db, run_id)
        metrics = points(db, run_id)
    return render(request, "run_part.html", _shown(request, run, metrics, step))


@router.get("/runs/{run_id}/live")
def run_live(request: Request, viewer: Reader, store: StoreHandle, run_id: str) -> Response:
    with store.reading() as db:
        run = runs.get(db, run_id)
        return JSONResponse({"mark": _mark(run), "live": run.status == RunStatus.RUNNING, "step": run.last_step})


def points(db: ReadSession, run_id: str) -> Mapping[str, curves.Points]:
    """Every curve of a run, by name, in the order of its steps."""
    found: dict[str, list[tuple[int, float]]] = {}
    for point in runs.metrics(db, run_id):
        found.setdefault(point.name, []).append((point.step, point.value))
    return found


def summaries(db: ReadSession, found: list[Run]) -> list[dict[str, Any]]:
    """Rows of the list of runs, each with the curve that stands for it."""
    rows = []
    for run in found:
        curve = curves.headline(points(db, run.id))
        label = f"{run.name}: reward {curve[0][1]:.3f} to {curve[-1][1]:.3f}" if curve else run.name
        rows.append(
            {
                "id": run.id,
                "name": run.name,
                "kind": run.kind,
                "status": run.status,
                "policy": run.policy,
                "last_step": run.last_step,
                "created_at": run.created_at,
                "last_value": curve[-1][1] if curve else None,
                "spark": sparkline([value for _, value in curve], label=label),
            }
        )
    return rows


def _shown(request: Request, run: Run, metrics: Mapping[str, curves.Points], step: int | None) -> dict[str, Any]:
    now = datetime.now(UTC)
    href = partial(_step_href, request, run.id)
    steps = sorted({at for curve in metrics.values() for at, _ in curve})
    before = [at for at in steps if step is not None and at < step]
    after = [at for at in steps if step is not None and at > step]
    return {
        "run": run,
        "running": run.status == RunStatus.RUNNING,
        "as_of": now,
        "tiles": _tiles(run, metrics, now),
        "panels": curves.panels(metrics, href),
        "summary": [(name, str(value)) for name, value in run.summary.items() if isinstance(value, str | int | float)],
        "step": step,
        "values": curves.at_step(metrics, step) if step is not None else [],
        "previous_url": href(before[-1]) if before else "",
        "next_url": href(after[0]) if after else "",
        "mark": _mark(run),
        "live_url": page_url(request, f"/runs/{run.id}/live"),
        "part_url": page_url(request, f"/runs/{run.id}/part", step=step),
    }


TILES = (
    ("reward, mean", "reward/mean", False),
    ("effective share", "group/effective_share", True),
    ("verified", "outcome/verified_frac", True),
    ("tokens per second", "perf/tokens_per_s", False),
)


def _tiles(run: Run, metrics: Mapping[str, curves.Points], now: datetime) -> list[tuple[str, Number, str]]:
    scope = f"run {run.name}"
    found = [("step", Number(run.last_step, now, scope=scope, reason="no point yet"), "last reported")]
    for name, metric, percent in TILES:
        if curve := metrics.get(metric):
            beside = f"from {Number(curve[0][1], now, percent=percent).text}"
            found.append(
                (name, Number(curve[-1][1], now, scope=f"{scope}, step {curve[-1][0]}", percent=percent), beside)
            )
    return found


def _step_href(request: Request, run_id: str, step: int) -> str:
    return page_url(request, f"/runs/{run_id}", step=step) + "#step"


def _mark(run: Run) -> str:
    return f"{run.updated_at.timestamp():.6f}-{run.status}-{run.last_step}"
