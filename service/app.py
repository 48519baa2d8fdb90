"""The FastAPI app: every router of the service, problems for every failure, limits, logs and metrics around it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio.to_thread
from anyio import CapacityLimiter
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from sandbox.contract import Backend
from service.api import (
    execute,
    health,
    imports,
    jobs,
    keys,
    leases,
    problem_handlers,
    problem_pages,
    runs,
    stats,
    streams,
    task_records,
    tasks,
    verdicts,
    verifiers,
    verify,
)
from service.api.dependencies import Services
from service.api.readiness import Readiness
from service.auth.last_used import LastUsed
from service.dashboard.router import router as dashboard
from service.middleware import BodyLimit, HeadAsGet, PlainQuery, RequestContext
from service.settings import Settings
from service.store.session import Store
from verifiers.engine import Engine

JUDGING_THREADS = 16
"""Requests that may be judged at once; the engine and the sandbox have bounds of their own behind it."""

RESOURCES = (
    imports,
    tasks,
    task_records,
    verify,
    verdicts,
    verifiers,
    execute,
    streams,
    leases,
    jobs,
    runs,
    stats,
    keys,
)


def create_app(settings: Settings, store: Store, engine: Engine, sandbox: Backend) -> FastAPI:
    """The service as an ASGI app. Nothing is opened here: store, engine and sandbox belong to the caller."""
    registry = CollectorRegistry()
    services = Services(settings, store, engine, sandbox, CapacityLimiter(JUDGING_THREADS), LastUsed())
    readiness = Readiness(store, sandbox, services.last_used)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = settings.api_threads
        with readiness:
            yield

    app = FastAPI(
        title="Taskmill",
        version="1",
        summary="Task factory and verifiable-reward data service",
        lifespan=lifespan,
        docs_url=None,  # its scripts come from elsewhere, and everything here works offline
        redoc_url=None,
        openapi_url="/v1/openapi.json",
    )
    app.state.services = services
    app.state.readiness = readiness
    app.state.registry = registry
    problem_handlers.install(app)
    for resource in RESOURCES:
        app.include_router(resource.router, prefix="/v1")
    app.include_router(health.router)
    app.include_router(problem_pages.router)
    app.include_router(dashboard)
    app.add_middleware(BodyLimit)
    app.add_middleware(PlainQuery)
    app.add_middleware(RequestContext, registry=registry)
    app.add_middleware(HeadAsGet)
    return app
