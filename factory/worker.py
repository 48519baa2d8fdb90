"""The worker process: a prefork pool that does jobs, and a thread that keeps the queue of record in order.

The main process holds the Celery consumer and the upkeep thread and does no job, save in a rescue (D18). Each forked
child makes its own store, sandbox and engine when it first needs them: nothing of them survives a fork (D21).
"""

import contextlib
import logging
import mmap
import os
import socket
import warnings
from collections.abc import Mapping
from typing import Any

from celery import Celery, signals
from celery.exceptions import SecurityWarning

from factory.celery_app import HINT_TASK, make_app, queue_name
from factory.registry import HANDLERS
from factory.runner import Handler, Runtime, run_by_id
from factory.upkeep import Upkeep
from sandbox.contract import Backend
from service.settings import Settings
from service.store.engine import make_engine
from service.store.session import Store
from service.words import Queue
from verifiers.engine import Engine

log = logging.getLogger("taskmill.worker")


class Draining:
    """A flag in memory that forked children share: once raised, running jobs are handed back."""

    def __init__(self) -> None:
        self._byte = mmap.mmap(-1, 1)

    def raise_flag(self) -> None:
        self._byte[0] = 1

    def __call__(self) -> bool:
        return self._byte[0] == 1


class ProcessParts:
    """The store, sandbox and engine of this process, made when they are first asked for, remade after a fork."""

    def __init__(self, settings: Settings, draining: Draining) -> None:
        self._settings = settings
        self._draining = draining
        self._pid = 0
        self._runtime: Runtime | None = None
        self._sandbox: Backend | None = None
        self._engine: Engine | None = None
        self._inherited: list[object] = []

    def runtime(self) -> Runtime:
        if self._pid != os.getpid() or self._runtime is None:
            # The parent's objects are kept, never closed or collected: closing them would speak on its connections.
            self._inherited += [self._runtime, self._sandbox, self._engine]
            self._sandbox = self._engine = None
            self._pid = os.getpid()
            self._runtime = Runtime(
                store=open_store(self._settings),
                engine=self.engine,
                worker=f"{socket.gethostname()}:{self._pid}",
                lease_s=self._settings.job_lease_s,
                settings=self._settings,
                draining=self._draining,
            )
        return self._runtime

    def engine(self) -> Engine:
        """The engine of this process. Boxes and verifier processes are counted for each process, as in the API."""
        if self._engine is None:
            from sandbox.backends import make_backend  # here: the main process and text-only jobs never need it

            settings = self._settings
            self._sandbox = make_backend(settings.sandbox_backend, settings.sandbox_boxes)
            # A verdict may need two boxes at once: more threads than pairs would only wait for each other.
            self._engine = Engine(self._sandbox, max(1, min(settings.verify_workers, settings.sandbox_boxes // 2)))
        return self._engine

    def close(self) -> None:
        """End what this process started; what it inherited is left alone."""
        if self._pid != os.getpid():
            return
        if self._engine is not None:
            self._engine.close()
        if self._sandbox is not None:
            self._sandbox.close()
        if self._runtime is not None:
            self._runtime.store.close()
        self._engine = self._sandbox = self._runtime = None


def open_store(settings: Settings) -> Store:
    """A store for one process: a job, its lease's thread, and one to spare."""
    engine = make_engine(settings.sqlalchemy_url, pool_size=4, synchronous=settings.db_synchronous)
    return Store(engine, writer_wait_s=settings.writer_wait_s)


def run_worker(settings: Settings, handlers: Mapping[str, Handler] = HANDLERS) -> int:
    """Work until SIGTERM or SIGINT: running jobs then stop at their next safe point and are handed back.

    The answer is the exit code of the process.
    """
    draining = Draining()
    parts = ProcessParts(settings, draining)
    broker = settings.broker_url.get_secret_value() if settings.broker_url else None
    app = make_app(broker, prefix=settings.queue_prefix)
    register(app, parts, handlers)
    upkeep = Upkeep(settings, parts, handlers, app)
    warnings.filterwarnings("ignore", category=SecurityWarning)  # of root and pickle: we accept JSON alone
    with _signals(draining, upkeep, parts):
        worker = app.Worker(
            pool_cls="prefork",
            concurrency=settings.worker_processes,
            queues=[queue_name(queue, settings.queue_prefix) for queue in Queue],
            hostname=f"taskmill-{os.getpid()}@{socket.gethostname()}",
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
            loglevel=settings.log_level.upper(),
            quiet=True,
        )
        worker.start()
    upkeep.stop()
    parts.close()
    return int(worker.exitcode or 0)


def register(app: Celery, parts: ProcessParts, handlers: Mapping[str, Handler]) -> None:
    """Give the app its only task: do the job that a hint names."""

    def hint(job_id: str) -> None:
        run_by_id(parts.runtime(), handlers, job_id)

    app.task(hint, name=HINT_TASK, ignore_result=True)


@contextlib.contextmanager
def _signals(draining: Draining, upkeep: Upkeep, parts: ProcessParts) -> Any:
    """The upkeep starts when the first children are forked; draining starts with the first signal to end."""

    def ready(**_: Any) -> None:
        upkeep.start()

    def ending(**_: Any) -> None:
        draining.raise_flag()

    def child_ends(**_: Any) -> None:
        parts.close()

    wired = (
        (signals.worker_ready, ready),
        (signals.worker_shutting_down, ending),
        (signals.worker_process_shutdown, child_ends),
    )
    for signal, receiver in wired:
        signal.connect(receiver, weak=False)
    try:
        yield
    finally:
        for signal, receiver in wired:
            signal.disconnect(receiver)
