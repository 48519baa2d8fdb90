"""Training and evaluation runs: the list, and one run's curves, live while it runs."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

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
MOST_POINTS = 60_000
"""Points that one page draws; the curves beyond it are named, each with a link that draws it."""


class Loaded(NamedTuple):
    """Curves by name in the order of their steps, and the names of those that were left out."""

    metrics: Mapping[str, curves.Points]
    left_out: Sequence[str]


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
        loaded = points(db, run_id, q)
    href = partial(_step_href, request, run_id)
    context = _shown(request, run, loaded.metrics, step)
    context |= {"q": q, "others": curves.others(loaded.metrics, href, q), "left_out": loaded.left_out}
    return render(request, "run.html", context)


@router.get("/runs/{run_id}/part")
def run_part(request: Request, viewer: Reader, store: StoreHandle, run_id: str, step: int | None = None) -> Response:
    with store.reading() as db:
        run = runs.get(db, run_id)
        metrics = points(db, run_id).metrics
    return render(request, "run_part.html", _shown(request, run, metrics, step))


@router.get("/runs/{run_id}/live")
def run_live(request: Request, viewer: Reader, store: StoreHandle, run_id: str) -> Response:
    with store.reading() as db:
        run = runs.get(db, run_id)
        return JSONResponse({"mark": _mark(run), "live": run.status == RunStatus.RUNNING, "step": run.last_step})


def points(db: ReadSession, run_id: str, wanted: str = "") -> Loaded:
    """The curves of a run, those asked for by a part of their name first, as many as a page can hold."""
    counts = runs.curves(db, run_id)
    names = sorted(counts, key=lambda name: (not (wanted and wanted.lower() in name.lower()), curves.rank(name), name))
    total = 0
    kept: list[str] = []
    for name in names:
        total += counts[name]
        if kept and total > MOST_POINTS:
            break
        kept.append(name)
    found: dict[str, list[tuple[int, float]]] = {name: [] for name in kept}
    for point in runs.points(db, run_id, kept, None, 2 * MOST_POINTS) if kept else []:
        found[point.name].append((point.step, point.value))
    return Loaded(found, names[len(kept) :])


def summaries(db: ReadSession, found: list[Run]) -> list[dict[str, Any]]:
    """Rows of the list of runs, each with the curve that stands for it."""
    rows = []
    for run in found:
        curve = _headline(db, run.id)
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


def _headline(db: ReadSession, run_id: str) -> curves.Points:
    name = curves.headline(runs.curves(db, run_id))
    if name is None:
        return ()
    return [(point.step, point.value) for point in runs.points(db, run_id, [name], None, MOST_POINTS)]


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
