"""The thread of a worker's main process that keeps the queue of record in order.

It sweeps expired leases, feeds an embedded worker its jobs, sends lost hints again, ticks the periodic jobs, notes
that the worker is alive, and takes a job straight from the database when the broker has gone silent (D18).
"""

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from celery import Celery

from factory.hints import publish
from factory.runner import Handler, Runtime, run
from service.settings import Settings
from service.store import job_upkeep, jobs, workers
from service.store.session import Store
from service.words import Queue

FEED_AGAIN_S = 30.0
STOP_WAIT_S = 20.0
QUEUES = tuple(Queue)

PERIODIC: Mapping[str, tuple[float, str]] = {
    "housekeeping": (3600.0, "service.housekeeping"),
    "regate": (600.0, "factory.regate"),
}
"""Name of each periodic job, its period in seconds, and its kind."""

log = logging.getLogger("taskmill.upkeep")


class Parts(Protocol):
    """What the rescue needs of the process: the runtime that jobs run on."""

    def runtime(self) -> Runtime: ...


class Upkeep:
    """`start` it after the pool has forked; `stop` waits for what it is doing."""

    def __init__(self, settings: Settings, parts: Parts, handlers: Mapping[str, Handler], app: Celery) -> None:
        self._settings = settings
        self._parts = parts
        self._handlers = handlers
        self._app = app
        self._worker = f"{socket.gethostname()}:{os.getpid()}"
        self._fed: dict[str, float] = {}
        self._totals = {"requeued": 0, "dead": 0, "hinted": 0, "rescued": 0}
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="upkeep", daemon=True)
        self._rescue: threading.Thread | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End it. Idempotent; also when it never started."""
        self._ending.set()
        for thread in (self._thread, self._rescue):
            if thread is not None and thread.ident is not None:
                thread.join(timeout=STOP_WAIT_S)

    def _run(self) -> None:
        store = self._parts.runtime().store
        every_s = self._settings.job_poll_s if self._settings.embedded else self._settings.sweep_s
        swept_at = float("-inf")
        while True:
            if time.monotonic() - swept_at >= self._settings.sweep_s:
                self._safely(self._sweep, store)
                swept_at = time.monotonic()
            if self._settings.embedded:
                self._safely(self._feed, store)
            if self._ending.wait(every_s):
                break
        self._safely(self._leave, store)

    def _safely(self, act: Callable[[Store], None], store: Store) -> None:
        try:
            act(store)
        except Exception:
            log.exception("upkeep_failed what=%s", act.__name__)  # tried again at the next turn, as long as we live

    def _sweep(self, store: Store) -> None:
        with store.writing() as db:
            swept = job_upkeep.sweep(db)
            for name, (every_s, kind) in PERIODIC.items():
                job_upkeep.tick(db, name, every_s, kind=kind, params={})
            self._totals["requeued"] += len(swept.requeued)
            self._totals["dead"] += len(swept.dead)
            workers.seen(db, self._worker, self._totals)
            lost = {} if self._settings.embedded else job_upkeep.hint_again(db, QUEUES)
            waiting_s = job_upkeep.oldest_wait_s(db, QUEUES)
            # An embedded worker reads the database anyway: there only a pool that does nothing at all is stuck.
            stuck = not self._settings.embedded or job_upkeep.running(db) == 0
        for ids, what in ((swept.requeued, "requeued"), (swept.dead, "dead")):
            for job_id in ids:
                log.warning("job_%s id=%s", what, job_id)
        if stuck and waiting_s > self._settings.job_rescue_s:
            self._start_rescue(store)
        self._hint(lost)
        if waiting_s == 0:
            job_upkeep.truncate_wal(store)

    def _hint(self, lost: Mapping[str, Queue]) -> None:
        for job_id, queue in lost.items():
            try:
                publish(self._app, job_id, queue_of=queue, prefix=self._settings.queue_prefix)
            except Exception as error:  # noqa: BLE001 - whatever a broken broker raises: the database has the jobs
                log.warning("hints_not_sent left=%d why=%s", len(lost), type(error).__name__)
                return
            self._totals["hinted"] += 1

    def _feed(self, store: Store) -> None:
        """Embedded: give the pool the next due jobs, a few more than it can do at once, and never one twice a while."""
        room = 2 * self._settings.worker_processes
        with store.reading() as db:
            due = job_upkeep.due(db, QUEUES, limit=room)
        now = time.monotonic()
        self._fed = {job_id: at for job_id, at in self._fed.items() if job_id in due and now - at < FEED_AGAIN_S}
        for job_id in due:
            if job_id not in self._fed:
                publish(self._app, job_id, prefix=self._settings.queue_prefix)
                self._fed[job_id] = now

    def _start_rescue(self, store: Store) -> None:
        """Take one job in this process: the broker has gone silent, or a child died holding the pool's lock."""
        if self._rescue is not None and self._rescue.is_alive():
            return
        with store.writing() as db:
            found = jobs.claim_next(
                db,
                QUEUES,
                worker=self._worker,
                lease_s=self._settings.job_lease_s,
                waiting_s=self._settings.job_rescue_s,
            )
        for claim in found:
            self._totals["rescued"] += 1
            log.warning("job_rescued id=%s: its hint was not answered", claim.id)
            self._rescue = threading.Thread(target=self._do, args=(claim,), name="rescue", daemon=True)
            self._rescue.start()

    def _do(self, claim: Any) -> None:
        run(self._parts.runtime(), self._handlers, claim)

    def _leave(self, store: Store) -> None:
        with store.writing() as db:
            workers.gone(db, self._worker)
