"""The overview: is the wheel turning, and what needs me?"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from service.dashboard import needs
from service.dashboard.charts.bars import Bar, Part, bars, stack
from service.dashboard.charts.chart import Chart
from service.dashboard.charts.funnel import Refusal, Stage, funnel
from service.dashboard.charts.histogram import Bin, histogram
from service.dashboard.guard import GuardedRoute
from service.dashboard.number import Number
from service.dashboard.outcomes import OUTCOME_TONES
from service.dashboard.pages.runs import summaries
from service.dashboard.record import Record, load
from service.dashboard.templating import render
from service.dashboard.urls import page_url
from service.dashboard.viewers import Reader, StoreHandle
from service.store import runs, workers
from service.words import TaskStatus
from verifiers.contract import Outcome

LAST_RUNS = 5
DOMAINS = 10
STATUS_TONES = {
    TaskStatus.ACTIVE: "tone-8",
    TaskStatus.PENDING: "tone-7",
    TaskStatus.QUARANTINED: "tone-5",
    TaskStatus.REJECTED: "tone-6",
    TaskStatus.RETIRED: "tone-4",
}

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


class Tile(NamedTuple):
    """One figure of the first row."""

    name: str
    number: Number
    href: str
    beside: str


@router.get("/")
def overview(request: Request, viewer: Reader, store: StoreHandle) -> Response:
    return render(request, "overview.html", _context(request, viewer, store))


def _context(request: Request, viewer: Reader, store: StoreHandle) -> dict[str, Any]:
    now = datetime.now(UTC)
    with store.reading() as db:
        record = load(db, viewer)
        alive = len(workers.alive(db, within_s=needs.SILENT_S))
        outcomes = record.counts("attempts", "by_outcome")
        wanted = [_addressed(request, need) for need in needs.needs(db, outcomes)]
        last = summaries(db, runs.page(db, limit=LAST_RUNS))
    return {
        "as_of": record.as_of,
        "method": record.method,
        "tiles": _tiles(request, record, outcomes, Number(alive, now, scope="seen within 30 s")),
        "needs": wanted,
        "by_status": _by_status(request, record),
        "by_domain": _by_domain(request, record),
        "funnel": _funnel(request, record),
        "outcomes": _outcomes(outcomes),
        "difficulty": difficulty(record),
        "runs": last,
    }


def _tiles(request: Request, record: Record, outcomes: Mapping[str, float], alive: Number) -> list[Tile]:
    def tasks(status: str) -> Tile:
        href = page_url(request, "/tasks", status=status)
        return Tile(f"{status} tasks", record.number("tasks", "by_status", status), href, "")

    invalid = sum(n for name, n in outcomes.items() if not Outcome(name).valid)
    rate = record.number("attempts", "pass_rate", percent=True)
    return [
        tasks(TaskStatus.ACTIVE),
        tasks(TaskStatus.PENDING),
        tasks(TaskStatus.REJECTED),
        Tile("attempts", record.number("attempts", "total"), "", ""),
        Tile("pass rate", rate, "", f"of valid ones; {invalid:,.0f} invalid"),
        Tile("zero-variance groups", record.number("signal", "zero_variance_share", percent=True), "", ""),
        Tile("jobs waiting", record.number("jobs", "queued"), page_url(request, "/jobs", status="queued"), ""),
        Tile("workers", alive, page_url(request, "/jobs"), ""),
    ]


def _by_status(request: Request, record: Record) -> Chart:
    counts = record.counts("tasks", "by_status")
    parts = [
        Part(status, counts.get(status, 0), tone, page_url(request, "/tasks", status=status))
        for status, tone in STATUS_TONES.items()
        if counts.get(status)
    ]
    return stack(parts, noun="tasks", height=22)


def _by_domain(request: Request, record: Record) -> Chart:
    counts = record.counts("tasks", "by_domain")
    items = [Bar(name, n, page_url(request, "/tasks", domain=name)) for name, n in list(counts.items())[:DOMAINS]]
    rest = sum(list(counts.values())[DOMAINS:])
    if rest:
        items.append(Bar(f"{len(counts) - DOMAINS} other domains", rest, page_url(request, "/tasks"), "tone-7"))
    return bars(items, noun="tasks")


def _funnel(request: Request, record: Record) -> Chart:
    counts = record.counts("tasks", "by_status")
    submitted = sum(counts.values())
    pending = counts.get(TaskStatus.PENDING, 0)
    rejects = record.counts("flow", "rejected_by_gate")
    refused = tuple(
        Refusal(gate, int(n), page_url(request, "/tasks", status=TaskStatus.REJECTED)) for gate, n in rejects.items()
    )
    stages = [
        Stage("submitted", int(submitted), page_url(request, "/tasks")),
        Stage("gated", int(submitted - pending), page_url(request, "/tasks"), refused),
        Stage("active", int(counts.get(TaskStatus.ACTIVE, 0)), page_url(request, "/tasks", status=TaskStatus.ACTIVE)),
    ]
    return funnel(stages, noun="tasks")


def _outcomes(outcomes: Mapping[str, float]) -> Chart:
    parts = [Part(one.replace("_", " "), outcomes[one], tone) for one, tone in OUTCOME_TONES.items() if one in outcomes]
    return stack(parts, noun="attempts", height=18)


def difficulty(record: Record) -> Chart:
    """Tasks by their estimated pass rate, over all domains, for the policy lineage with the most tasks measured."""
    lineages = record.facet("difficulty").get("by_lineage", {})
    sums: dict[str, list[int]] = {}
    for lineage, domains in lineages.items():
        columns = zip(*(found["pass_rate_histogram"]["counts"] for found in domains.values()), strict=True)
        sums[lineage] = [sum(column) for column in columns]
    lineage = max(sums, key=lambda name: sum(sums[name]), default="")
    counts = sums.get(lineage, [])
    bins = [Bin(f"{edge * 100 // len(counts)} %", n) for edge, n in enumerate(counts)]
    return histogram(bins, title=f"Estimated pass rate for {lineage or 'a policy'}", noun="measured tasks", height=130)


def _addressed(request: Request, need: needs.Need) -> dict[str, str]:
    href = page_url(request, need.path, **need.query) if need.path else ""
    return {"tone": need.tone, "what": need.what, "why": need.why, "fix": need.fix, "href": href}
