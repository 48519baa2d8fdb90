"""Jobs and workers: what waits, runs, failed; who is there to do it."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from service.dashboard.guard import GuardedRoute
from service.dashboard.templating import render
from service.dashboard.urls import page_url
from service.dashboard.viewers import Reader, StoreHandle
from service.store import jobs, workers
from service.store.session import ReadSession
from service.store.tables import Job
from service.words import JobStatus

ALIVE_S = 30.0
PAGE = 50
GATE = re.compile(r"G\d+")

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


@router.get("/jobs")
def job_list(
    request: Request, viewer: Reader, store: StoreHandle, status: str = "", kind: str = "", before: str = ""
) -> Response:
    context = _listed(request, store, status, kind, before)
    return render(request, "jobs.html", context)


@router.get("/jobs/part")
def job_list_part(
    request: Request, viewer: Reader, store: StoreHandle, status: str = "", kind: str = "", before: str = ""
) -> Response:
    return render(request, "jobs_part.html", _listed(request, store, status, kind, before))


@router.get("/jobs/live")
def job_list_live(
    request: Request, viewer: Reader, store: StoreHandle, status: str = "", kind: str = "", before: str = ""
) -> Response:
    with store.reading() as db:
        found = _page(db, status, kind, before)
        return JSONResponse({"mark": _mark(found, workers.alive(db, within_s=ALIVE_S)), "live": True})


@router.get("/jobs/{job_id}")
def job_page(request: Request, viewer: Reader, store: StoreHandle, job_id: str) -> Response:
    return render(request, "job.html", _one(request, store, job_id))


@router.get("/jobs/{job_id}/part")
def job_part(request: Request, viewer: Reader, store: StoreHandle, job_id: str) -> Response:
    return render(request, "job_part.html", _one(request, store, job_id))


@router.get("/jobs/{job_id}/live")
def job_live(request: Request, viewer: Reader, store: StoreHandle, job_id: str) -> Response:
    with store.reading() as db:
        job = jobs.get(db, job_id)
        return JSONResponse({"mark": _mark([job], []), "live": job.finished_at is None})


def _listed(request: Request, store: StoreHandle, status: str, kind: str, before: str) -> dict[str, Any]:
    with store.reading() as db:
        found = _page(db, status, kind, before)
        alive = workers.alive(db, within_s=ALIVE_S)
        filters = {"status": status, "kind": kind}
        return {
            "jobs": found,
            "workers": alive,
            "as_of": datetime.now(UTC),
            "filters": filters,
            "statuses": list(JobStatus),
            "kinds": sorted(jobs.KINDS),
            "mark": _mark(found, alive),
            "live_url": page_url(request, "/jobs/live", **filters, before=before),
            "part_url": page_url(request, "/jobs/part", **filters, before=before),
            "first_url": page_url(request, "/jobs", **filters) if before else "",
            "next_url": page_url(request, "/jobs", **filters, before=found[-1].id) if len(found) == PAGE else "",
        }


def _one(request: Request, store: StoreHandle, job_id: str) -> dict[str, Any]:
    with store.reading() as db:
        job = jobs.get(db, job_id)
        return {
            "job": job,
            "as_of": datetime.now(UTC),
            "gates": gates(job.counts),
            "counts": [(name, value) for name, value in job.counts.items() if not isinstance(value, Mapping)],
            "groups": {
                name: value
                for name, value in job.counts.items()
                if isinstance(value, Mapping) and not GATE.fullmatch(name)
            },
            "mark": _mark([job], []),
            "live_url": page_url(request, f"/jobs/{job_id}/live"),
            "part_url": page_url(request, f"/jobs/{job_id}/part"),
        }


def gates(counts: Mapping[str, Any]) -> list[tuple[str, Mapping[str, float]]]:
    """What each gate found, in the order of the gates: the counts of a job that are named after one."""
    named = [(name, found) for name, found in counts.items() if GATE.fullmatch(name) and isinstance(found, Mapping)]
    return sorted(named, key=lambda item: int(item[0][1:]))


def _page(db: ReadSession, status: str, kind: str, before: str) -> list[Job]:
    known = [JobStatus(status)] if status in set(JobStatus) else []
    return jobs.page(db, statuses=known, kinds=[kind] if kind else [], before=before or None, limit=PAGE)


def _mark(found: list[Job], alive: list[Any]) -> str:
    """Changes when anything shown changes; a worker's heartbeat alone does not count."""
    parts = [f"{job.id}{job.status}{job.progress:.3f}{job.attempts}{job.counts}" for job in found]
    return f"{sha256(chr(10).join(parts).encode()).hexdigest()[:16]}-{len(alive)}"
