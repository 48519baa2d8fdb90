"""`POST /v1/execute`: run a program in a box of its own."""

from typing import Annotated

import anyio.to_thread
from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import BaseModel, Field

from sandbox.contract import ExecRequest, ExecResult
from service.api.dependencies import Executor, Services, ServicesHandle, problems
from service.api.idempotent import Once, OnceHandle
from service.errors import InFlight, Invalid, KeyReused, SandboxDown, UnsupportedLanguage
from service.store.drafts import Strict, TaskLimits

router = APIRouter(tags=["execute"])


class ExecuteIn(Strict):
    """`files` and `fetch` are paths relative to the work directory, which is cwd and HOME."""

    any_text = frozenset(("code", "stdin", "files", "args", "fetch"))

    language: Annotated[str, Field(min_length=1, max_length=32)]
    code: str
    files: Annotated[dict[str, str], Field(max_length=64)] = {}
    stdin: str = ""
    args: Annotated[list[str], Field(max_length=256)] = []
    limits: TaskLimits = TaskLimits()
    image: Annotated[str, Field(max_length=200)] = "python"
    fetch: Annotated[list[str], Field(max_length=64)] = []


class ArtefactOut(BaseModel):
    """A file asked for with `fetch`; `refused` says why there is no content."""

    path: str
    size: int
    content_base64: str | None
    refused: str | None


class ExecuteOut(BaseModel):
    """How the program ended. Exactly one of `exit_code`, `signal` is set when it ended by itself."""

    status: str
    stage: str
    exit_code: int | None
    signal: int | None
    stdout: str
    stderr: str
    stdout_truncated: bool
    stderr_truncated: bool
    wall_s: float
    cpu_s: float
    memory_mb: float
    processes: int
    limits_enforced: dict[str, str]
    artefacts: list[ArtefactOut]
    phases: dict[str, float]
    evidence: list[str]
    backend: str
    image: str
    retryable: bool


@router.post(
    "/execute",
    operation_id="execute_run",
    response_model=ExecuteOut,
    responses=problems(Invalid, UnsupportedLanguage, SandboxDown, KeyReused, InFlight),
)
async def run(body: ExecuteIn, caller: Executor, services: ServicesHandle, once: OnceHandle) -> Response:
    """Run one program to its end or its limits. Whatever it does is a status; our own failure is a problem."""
    if once.named and (again := await anyio.to_thread.run_sync(_reserve, services, once)):
        return again
    request = ExecRequest(**body.model_dump(exclude={"limits"}), limits=body.limits.for_sandbox())
    try:
        result = await anyio.to_thread.run_sync(services.sandbox.run, request, limiter=services.judging)
    except Exception:
        if once.named:
            await anyio.to_thread.run_sync(_forget, services, once)
        raise
    answer = _answer(result)
    if not once.named:
        return Response(answer.model_dump_json(), media_type="application/json")
    return await anyio.to_thread.run_sync(_keep, services, once, answer)


def _reserve(services: Services, once: Once) -> Response | None:
    with services.store.writing() as db:
        return once.replay(db)


def _forget(services: Services, once: Once) -> None:
    with services.store.writing() as db:
        once.forget(db)


def _keep(services: Services, once: Once, answer: ExecuteOut) -> Response:
    with services.store.writing() as db:
        return once.keep(db, 200, answer)


def _answer(result: ExecResult) -> ExecuteOut:
    fields = {name: getattr(result, name) for name in ExecuteOut.model_fields if name not in {"artefacts", "evidence"}}
    fields |= {"limits_enforced": dict(result.limits_enforced), "phases": dict(result.phases)}
    artefacts = [
        ArtefactOut(path=a.path, size=a.size, content_base64=a.content_base64, refused=a.refused)
        for a in result.artefacts
    ]
    return ExecuteOut(**fields, artefacts=artefacts, evidence=list(result.evidence))
