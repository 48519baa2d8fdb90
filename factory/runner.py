"""Runs one job: claim, let its handler make step after step, commit each step guarded by the token, finish.

A handler is a generator function: it yields steps and returns the job's result. A step is a function that writes at
most 500 rows and answers where the job then stands; it is committed together with the cursor, or not at all. Between
steps the handler may be stopped, so what it computes there must be repeatable.
"""

import logging
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from sandbox.contract import SandboxUnavailable
from service.errors import Problem, StoreBusy
from service.settings import Settings
from service.store import jobs
from service.store.jobs import Claim, LeaseLost
from service.store.session import Store, WriteSession
from service.words import JobStatus
from verifiers.contract import Case, Verdict
from verifiers.engine import Engine

BEATS_PER_LEASE = 6
BUSY_PATIENCE_S = 30.0

log = logging.getLogger("taskmill.jobs")
T = TypeVar("T")


class JobFailed(Exception):
    """The job cannot succeed, however often it is tried: its params are wrong, its source is not there."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class Outage(Exception):
    """Something of ours is down. The job is handed back and tried again later; it costs no attempt."""


class Progress(NamedTuple):
    """Where the job stands after a step."""

    cursor: Mapping[str, Any]
    counts: Mapping[str, Any]
    progress: float | None = None


Step = Callable[[WriteSession], Progress]
Steps = Generator[Step, None, Mapping[str, Any]]


class Why(StrEnum):
    """Why a job is to stop before its end."""

    LOST = "lost"
    CANCELLED = "cancelled"
    DRAINING = "draining"


class Stopped(Exception):
    """Raised inside a handler at its next safe point."""

    def __init__(self, why: Why) -> None:
        super().__init__(why)
        self.why = why


class Runtime(NamedTuple):
    """What a worker process lends to its jobs. `engine` builds the engine when it is first asked for."""

    store: Store
    engine: Callable[[], Engine]
    worker: str
    lease_s: float
    settings: Settings
    draining: Callable[[], bool] = lambda: False


@dataclass(frozen=True)
class Work:
    """A claimed job in the hands of its handler."""

    claim: Claim
    runtime: Runtime
    _lease: "_Lease"

    @property
    def store(self) -> Store:
        return self.runtime.store

    def safe_point(self) -> None:
        """Call it in long computations.

        Raises:
            Stopped: the lease is lost, somebody cancelled the job, or the worker is to end.
        """
        if self._lease.why is not None:
            raise Stopped(self._lease.why)
        if self.runtime.draining():
            raise Stopped(Why.DRAINING)


class Judging:
    """The engine, with a safe point between small batches: a stop does not wait for hundreds of boxes."""

    AT_ONCE = 32

    def __init__(self, work: Work) -> None:
        self._work = work

    def verify_many(self, cases: Sequence[Case]) -> list[Verdict]:
        """The verdicts, in their order.

        Raises:
            Stopped: as `Work.safe_point`.
        """
        engine = self._work.runtime.engine()
        verdicts: list[Verdict] = []
        for start in range(0, len(cases), self.AT_ONCE):
            self._work.safe_point()
            verdicts += engine.verify_many(cases[start : start + self.AT_ONCE])
        return verdicts


Handler = Callable[[Work], Steps]


def run_by_id(runtime: Runtime, handlers: Mapping[str, Handler], job_id: str) -> bool:
    """Do the job a hint names; False when there is nothing to do, which is no error."""

    def take(db: WriteSession) -> Claim | None:
        return jobs.claim(db, job_id, worker=runtime.worker, lease_s=runtime.lease_s)

    claim = patiently(runtime.store, take)
    if claim is None:
        return False
    run(runtime, handlers, claim)
    return True


def run(runtime: Runtime, handlers: Mapping[str, Handler], claim: Claim) -> None:
    """Do a claimed job to its end, whatever that is; nothing is raised for anything in the job."""
    log.info("job_claimed id=%s kind=%s token=%d attempt=%d", claim.id, claim.kind, claim.token, claim.attempts)
    started = time.monotonic()
    with _Lease(runtime, claim) as lease:
        try:
            ended = _advance(Work(claim, runtime, lease), handlers)
        except LeaseLost:
            ended = "lost"  # whoever has it now goes on from its cursor
        except Exception:
            log.exception("job_end_not_recorded id=%s", claim.id)  # the lease runs out, and a sweep finds it
            ended = "unrecorded"
    log.info("job_left id=%s kind=%s how=%s seconds=%.2f", claim.id, claim.kind, ended, time.monotonic() - started)


def _advance(work: Work, handlers: Mapping[str, Handler]) -> str:
    claim, store = work.claim, work.store
    try:
        result, status = _drive(work, handlers)
    except Stopped as stopped:
        if stopped.why is Why.LOST:
            raise LeaseLost(claim.id) from stopped
        code = str(stopped.why)
        patiently(store, lambda db: jobs.hand_back(db, claim.id, claim.token, code=code))
        return code
    except (Outage, SandboxUnavailable, StoreBusy) as error:
        detail = f"{type(error).__name__}: {error}"
        patiently(store, lambda db: jobs.hand_back(db, claim.id, claim.token, code="outage", detail=detail))
        return "outage"
    except (JobFailed, Problem) as error:
        code, detail = error.code, error.detail
        patiently(store, lambda db: jobs.fail(db, claim.id, claim.token, code=code, detail=detail))
        return "failed"
    except LeaseLost:
        raise
    except Exception as error:  # the boundary: a fault of a handler ends its attempt, not its worker
        log.exception("job_crashed id=%s kind=%s", claim.id, claim.kind)
        detail = f"{type(error).__name__}: {error}"
        patiently(store, lambda db: jobs.crashed(db, claim.id, claim.token, code="crashed", detail=detail))
        return "crashed"
    patiently(store, lambda db: jobs.finish(db, claim.id, claim.token, result=result, status=status))
    return str(status)


class _Ended(NamedTuple):
    result: Mapping[str, Any]
    status: JobStatus


def _drive(work: Work, handlers: Mapping[str, Handler]) -> _Ended:
    handler = handlers.get(work.claim.kind)
    if handler is None:
        raise JobFailed("unknown_kind", f"this worker does no {work.claim.kind} jobs")
    steps = handler(work)
    try:
        step = next(steps)
        while True:
            work.safe_point()
            _commit(work, step)
            work.safe_point()
            step = next(steps)
    except StopIteration as end:
        return _Ended(end.value or {}, JobStatus.DONE)
    except Stopped as stopped:
        if stopped.why is Why.CANCELLED:
            return _Ended({"stop_reason": "cancelled"}, JobStatus.CANCELLED)
        raise
    finally:
        steps.close()


def _commit(work: Work, step: Step) -> None:
    claim = work.claim

    def write(db: WriteSession) -> None:
        at = step(db)
        jobs.step(db, claim.id, claim.token, cursor=at.cursor, counts=at.counts, progress=at.progress)

    patiently(work.store, write)


def patiently(store: Store, write: Callable[[WriteSession], T]) -> T:
    """One transaction, tried again while other writers hold the store.

    Raises:
        StoreBusy: it was held for half a minute.
    """
    for attempt in Retrying(
        retry=retry_if_exception_type(StoreBusy),
        wait=wait_random_exponential(multiplier=0.05, max=2),
        stop=stop_after_delay(BUSY_PATIENCE_S),
        reraise=True,
    ):
        with attempt, store.writing() as db:
            return write(db)
    raise StoreBusy


class _Lease:
    """Extends the lease from a thread while the job runs, and notices when the job is to stop."""

    def __init__(self, runtime: Runtime, claim: Claim) -> None:
        self.why: Why | None = None
        self._runtime = runtime
        self._claim = claim
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"lease-{claim.id[-6:]}", daemon=True)

    def __enter__(self) -> "_Lease":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(timeout=BUSY_PATIENCE_S)

    def _beat(self) -> None:
        lease_s, claim = self._runtime.lease_s, self._claim
        held_until = time.monotonic() + lease_s
        while not self._ended.wait(lease_s / BEATS_PER_LEASE):
            try:
                with self._runtime.store.writing() as db:
                    extended = jobs.extend(db, claim.id, claim.token, lease_s=lease_s)
            except Exception:  # noqa: BLE001 - the boundary of the thread: it must outlive any outage of the database
                log.warning("lease_not_extended id=%s", claim.id)
                if time.monotonic() > held_until:
                    self.why = Why.LOST
                continue
            held_until = time.monotonic() + lease_s
            if not extended.held:
                self.why = Why.LOST
            elif extended.cancel_requested and self.why is None:
                self.why = Why.CANCELLED
