"""The composition root: settings → store → hints → sandbox → engine → app: what the service is made of."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from service.settings import Settings
from service.store.engine import make_engine
from service.store.migrate import current, head
from service.store.session import Store

if TYPE_CHECKING:
    from fastapi import FastAPI

# The pool holds a connection for each endpoint thread, and these for the health thread and start-up.
SPARE_CONNECTIONS = 4


@contextmanager
def open_store(settings: Settings) -> Iterator[Store]:
    """A store for one command, closed after it."""
    store = Store(
        make_engine(settings.sqlalchemy_url, pool_size=2, synchronous=settings.db_synchronous),
        writer_wait_s=settings.writer_wait_s,
    )
    try:
        yield store
    finally:
        store.close()


@contextmanager
def build_api(settings: Settings) -> "Iterator[FastAPI]":
    """The API with everything it uses; all of it is closed when the block ends."""
    from factory.hints import HintSender
    from sandbox.backends import make_backend
    from service.app import create_app
    from verifiers.engine import Engine

    broker = settings.broker_url
    hints = HintSender(broker.get_secret_value(), prefix=settings.queue_prefix) if broker else None
    store = Store(
        make_engine(
            settings.sqlalchemy_url,
            pool_size=settings.api_threads + SPARE_CONNECTIONS,
            synchronous=settings.db_synchronous,
        ),
        offer_hints=hints.offer if hints else lambda _: None,
        writer_wait_s=settings.writer_wait_s,
    )
    sandbox = make_backend(settings.sandbox_backend, settings.sandbox_boxes)
    engine = Engine(sandbox, settings.verify_workers)
    engine.warm()  # or the first answer that needs a worker would wait for its imports
    try:
        yield create_app(settings, store, engine, sandbox)
    finally:
        engine.close()
        sandbox.close()
        if hints:
            hints.close()
        store.close()


def serve_api(settings: Settings, listen_fd: int | None = None) -> int:
    """Run the API until it is told to stop; the exit code of the process."""
    import uvicorn

    from taskmill.logs import configure

    configure(settings)
    if not _at_head(settings):
        return 1
    with build_api(settings) as app:
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                host=settings.host,
                port=settings.port,
                fd=listen_fd,
                log_config=None,
                access_log=False,
                timeout_graceful_shutdown=2,  # an open stream would hold the shutdown for ever
                timeout_keep_alive=30,
            )
        )
        server.run()
        return 0 if server.started else 1


def serve_worker(settings: Settings) -> int:
    """Run a worker until it is told to stop; the exit code of the process."""
    from factory.worker import run_worker
    from taskmill.logs import configure

    configure(settings)
    return run_worker(settings) if _at_head(settings) else 1


def _at_head(settings: Settings) -> bool:
    """Whether the database is at the revision that this version needs; says what to do when it is not."""
    found, needed = current(settings.sqlalchemy_url), head()
    if found != needed:
        log = logging.getLogger("taskmill")
        log.error("the database is at revision %s, this version needs %s: run `taskmill db upgrade`", found, needed)
    return found == needed
