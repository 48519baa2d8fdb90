"""Background jobs: file one, follow it, ask it to stop."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from service.api.dependencies import PAGE, Curator, Cursor, Limit, Reader, ServicesHandle, StoreHandle, problems
from service.api.idempotent import OnceHandle
from service.api.ids import JobId
from service.errors import BadCursor, InFlight, Invalid, KeyReused, NotFound, StoreBusy
from service.store import jobs
from service.store.drafts import Strict
from service.store.paging import Pager
from service.words import JobStatus, Queue

router = APIRouter(tags=["jobs"])


class JobIn(Strict):
    """What to do: a kind and its params. `factory.generate`, `factory.gate` and `factory.regate` are kinds."""

    kind: Annotated[str, Field(max_length=64, examples=["factory.generate"])]
    params: dict[str, Any] = Field({}, examples=[{"generator": "math.add", "accepted": 100, "seed": 0}])


class JobError(BaseModel):
    code: str
    detail: str


class JobOut(BaseModel):
    """A job. `progress` is a share from 0 to 1; `counts` grow while it runs; `result` says why it stopped."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    kind: str
    params: dict[str, Any]
    queue: Queue
    status: JobStatus
    progress: float
    counts: dict[str, Any]
    cursor: dict[str, Any]
    result: dict[str, Any] | None
    error: JobError | None
    attempts: int
    retries: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    cancel_requested: bool


class JobList(BaseModel):
    items: list[JobOut]
    next: str | None


@router.post(
    "/jobs",
    operation_id="jobs_create",
    status_code=202,
    response_model=JobOut,
    responses=problems(Invalid, InFlight, KeyReused, StoreBusy),
)
def create(body: JobIn, caller: Curator, store: StoreHandle, once: OnceHandle) -> Response:
    """File a job; a worker does it as soon as one is free."""
    with store.writing() as db:
        if again := once.replay(db):
            return again
        job_id = jobs.file(db, body.kind, body.params, actor=caller.key_id)
        answer = JobOut.model_validate(jobs.get(db, job_id))
        return once.keep(db, 202, answer, {"Location": f"/v1/jobs/{job_id}"})


@router.get("/jobs", operation_id="jobs_list", responses=problems(BadCursor, Invalid))
def listing(
    caller: Reader,
    services: ServicesHandle,
    status: Annotated[list[JobStatus] | None, Query()] = None,
    kind: Annotated[list[str] | None, Query(max_length=20)] = None,
    cursor: Cursor = None,
    limit: Limit = PAGE,
) -> JobList:
    """Jobs, newest first. Repeated parameters are alternatives."""
    scope = {"list": "jobs", "status": sorted(status or []), "kind": sorted(kind or [])}
    pager = Pager(services.settings.secret_bytes, scope, cursor, limit)
    before = (pager.after() or [None])[0]
    with services.store.reading() as db:
        rows = jobs.page(db, statuses=status or (), kinds=kind or (), before=before, limit=limit + 1)
        page = pager.page(rows, lambda job: [job.id])
        return JobList(items=[JobOut.model_validate(job) for job in page.items], next=page.next)


@router.get("/jobs/{job_id}", operation_id="jobs_get", responses=problems(NotFound))
def get(job_id: JobId, caller: Reader, store: StoreHandle) -> JobOut:
    """One job."""
    with store.reading() as db:
        return JobOut.model_validate(jobs.get(db, job_id))


@router.post(
    "/jobs/{job_id}:cancel",
    operation_id="jobs_cancel",
    status_code=202,
    response_model=JobOut,
    responses=problems(NotFound, InFlight, KeyReused, StoreBusy),
)
def cancel(job_id: JobId, caller: Curator, store: StoreHandle, once: OnceHandle) -> Response:
    """Ask a job to stop: a waiting one at once, a running one at its next safe point. An ended one stays as it is."""
    with store.writing() as db:
        if again := once.replay(db):
            return again
        return once.keep(db, 202, JobOut.model_validate(jobs.cancel(db, job_id)))
