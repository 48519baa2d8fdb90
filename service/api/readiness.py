"""Readiness: a thread looks each second whether the parts answer, so that `/readyz` costs no request anything.

The same thread writes when keys were last used: what a request need not wait for.
"""

import contextlib
import threading
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import structlog

from sandbox.contract import Backend, Limits, SandboxError
from service.auth.last_used import LastUsed
from service.errors import StoreBusy
from service.store import health
from service.store.session import Store

log = structlog.get_logger("readiness")
EVERY_S = 1.0
WORKER_SILENT = timedelta(seconds=60)


class Check(NamedTuple):
    """One part: whether it is well, whether readiness needs it, and what was seen."""

    ok: bool
    needed: bool
    detail: str


class Readiness:
    """The newest checks. Use as a context manager around the life of the app."""

    def __init__(self, store: Store, sandbox: Backend, last_used: LastUsed) -> None:
        self._store = store
        self._sandbox = sandbox
        self._last_used = last_used
        self._checks: dict[str, Check] = {"start": Check(False, True, "not looked yet")}
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="readiness", daemon=True)

    @property
    def checks(self) -> dict[str, Check]:
        return self._checks

    @property
    def ready(self) -> bool:
        return all(check.ok for check in self._checks.values() if check.needed)

    def __enter__(self) -> "Readiness":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join(timeout=10)
        with contextlib.suppress(StoreBusy):
            self._last_used.write(self._store)

    def _run(self) -> None:
        isolation = self._isolation()
        while not self._ending.is_set():
            try:
                self._checks = {"sandbox": isolation, **self._database()}
                with contextlib.suppress(StoreBusy):  # then the next second writes it
                    self._last_used.write(self._store)
            except Exception as error:  # noqa: BLE001 - whatever breaks the look is what there is to report
                log.warning("readiness_failed", error=type(error).__name__)
                self._checks = {"database": Check(False, True, type(error).__name__), "sandbox": isolation}
            self._ending.wait(EVERY_S)

    def _isolation(self) -> Check:
        """One box, made and closed. `taskmill sandbox doctor` tries every language; that takes seconds."""
        try:
            self._sandbox.create(Limits()).close()
        except SandboxError as error:
            return Check(False, False, str(error))
        name = self._sandbox.name
        return Check(name != "unisolated", False, name)

    def _database(self) -> dict[str, Check]:
        try:
            with self._store.reading() as db:
                found = health.look(db)
        except StoreBusy:
            return {"database": Check(False, True, "busy")}
        silent = found.worker_seen_at is None or datetime.now(UTC) - found.worker_seen_at > WORKER_SILENT
        seen = found.worker_seen_at.isoformat() if found.worker_seen_at else "never: start `taskmill worker`"
        return {
            "database": Check(True, True, "answers"),
            "migrations": Check(found.at_head, True, found.revision or "none: run `taskmill db upgrade`"),
            "worker": Check(not silent, False, f"last seen {seen}"),
        }
