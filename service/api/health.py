"""Health: alive, ready, metrics, version. None of them touches the store in the request."""

from importlib.metadata import version as installed
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from prometheus_client import generate_latest

from service.errors import NotReady
from service.store.required_gates import GATE_VERSIONS
from verifiers.registry import VERIFIERS

router = APIRouter(tags=["health"])


@router.get("/livez", operation_id="health_live")
async def livez() -> PlainTextResponse:
    """The process answers."""
    return PlainTextResponse("ok\n")


@router.get("/readyz", operation_id="health_ready", response_model=None)
async def readyz(request: Request) -> JSONResponse:
    """Every needed part is well; 503 names the one that is not."""
    readiness = request.app.state.readiness
    checks = {name: check._asdict() for name, check in readiness.checks.items()}
    if not readiness.ready:
        broken = ", ".join(name for name, check in readiness.checks.items() if check.needed and not check.ok)
        raise NotReady(f"not ready: {broken}", checks=checks)
    return JSONResponse({"ready": True, "checks": checks})


@router.get("/metrics", operation_id="health_metrics")
async def metrics(request: Request) -> Response:
    """Prometheus metrics of this process."""
    return Response(generate_latest(request.app.state.registry), media_type="text/plain; version=0.0.4")


@router.get("/version", operation_id="health_version")
async def version() -> dict[str, Any]:
    """Versions that verdicts and receipts depend on."""
    return {
        "taskmill": installed("taskmill"),
        "verifiers": {name: verifier.version for name, verifier in sorted(VERIFIERS.items())},
        "gates": dict(GATE_VERSIONS),
    }
