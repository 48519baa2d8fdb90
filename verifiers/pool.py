"""Killable workers for verifiers whose work on hostile text cannot be bounded from inside.

One thread for each worker hands out chunks of cases and keeps the deadline. A case's clock starts when its worker can
begin it; waiting before that is queue time and never charged to the answer. A worker that is over the deadline is
killed, and only the case that it was judging is touched: if the reference, judged as an answer, passes in a fresh
worker, the answer was the cause (`failed`), else we were (`verifier_error`).
"""

import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from verifiers.canonical import content_hash
from verifiers.contract import Case, Cost, Finding, Outcome
from verifiers.registry import VERIFIERS
from verifiers.template import Template, Worker, WorkerLost
from verifiers.wire import decode_finding, encode_case, receive, send_cases

DEADLINE_S = 1.0
STARVED_DEADLINE_S = 4.0
"""A worker that the host kept waiting has this long: host load must not become a reward."""
STARVED_STEP_S = 0.1
CPU_SHARE = 0.4
"""A worker that got less than this share of the deadline as CPU time was starved."""
SELF_CHECK_S = 0.4
QUEUE_S = 30.0
RECYCLE_AFTER = 2_000
CHUNK = 16
IDLE_S = 30.0
_CHECKS_KEPT = 4_096


class Answer(NamedTuple):
    """What a worker found in one case, and what it took."""

    finding: Finding
    cost: Cost


@dataclass(eq=False)
class _Item:
    case: Case
    queued_at: float
    done: "Future[Answer]" = field(default_factory=Future)
    losses: int = 0

    def settle(self, finding: Finding, began: float, verify_ms: float = 0.0, cpu_ms: float = 0.0) -> None:
        if not self.done.done():
            self.done.set_result(Answer(finding, Cost(max(began - self.queued_at, 0.0) * 1e3, verify_ms, cpu_ms)))


class Pool:
    """Worker processes, started when the first case comes. Usable from any thread."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._template = Template()
        self._queue: deque[_Item] = deque()
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._causes: dict[str, bool] = {}

    def run(self, cases: Sequence[Case]) -> list[Answer]:
        """The answers of cases, in their order. A long batch is queued by slices, so its own length is no wait."""
        answers: list[Answer] = []
        slice_size = 2 * CHUNK * self._workers
        for start in range(0, len(cases), slice_size):
            items = [_Item(case, time.monotonic()) for case in cases[start : start + slice_size]]
            self._put(items)
            answers += [item.done.result(timeout=QUEUE_S + slice_size * STARVED_DEADLINE_S) for item in items]
        return answers

    def warm(self) -> None:
        """Start what the first case would wait for. Not needed; a service calls it when it starts."""
        self._template.warm()

    def close(self) -> None:
        """End every worker. Idempotent. Cases still queued are void."""
        with self._changed:
            self._closed = True
            left, self._queue = list(self._queue), deque()
            self._changed.notify_all()
        for item in left:
            item.settle(_void("the pool is closed"), time.monotonic())
        for thread in self._threads:
            thread.join(timeout=QUEUE_S)
        self._template.close()

    def _put(self, items: Sequence[_Item]) -> None:
        with self._changed:
            if self._closed:
                for item in items:
                    item.settle(_void("the pool is closed"), item.queued_at)
                return
            while len(self._threads) < self._workers:
                thread = threading.Thread(target=self._dispatch, name="tm-pool", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._queue.extend(items)
            self._changed.notify_all()

    def _dispatch(self) -> None:
        """One thread's life: take a chunk, have it judged, again."""
        worker: Worker | None = None
        while chunk := self._take():
            try:
                worker = self._judge(worker, chunk)
            except Exception as error:  # noqa: BLE001 the boundary: a fault of ours voids this chunk, never the pool
                _drop(worker)
                worker = None
                for item in chunk:
                    item.settle(_void(type(error).__name__), time.monotonic())
            if worker is not None and worker.judged >= RECYCLE_AFTER:
                _drop(worker)
                worker = None
        if worker is not None:
            worker.kill()

    def _take(self) -> list[_Item]:
        """The next chunk; empty when the pool is closed. Small when little is queued, so that all workers get some."""
        with self._changed:
            while not self._queue:
                if self._closed:
                    return []
                self._changed.wait(timeout=IDLE_S)
            size = max(1, min(CHUNK, len(self._queue) // self._workers))
            return [self._queue.popleft() for _ in range(min(size, len(self._queue)))]

    def _judge(self, worker: Worker | None, chunk: list[_Item]) -> Worker | None:
        """Have a chunk judged; whatever a lost worker left undone goes back to the head of the queue."""
        now = time.monotonic()
        waiting = deque(item for item in chunk if not _late(item, now))
        if not waiting:
            return worker
        try:
            worker = worker or self._template.fork()
            if not _sent(worker, waiting):
                return worker
            while waiting:
                self._one(worker, waiting)
            return worker
        except WorkerLost as error:
            if worker is None:
                for item in waiting:
                    item.settle(_void(str(error)), now)
                return None
            worker.kill()
        self._back(waiting)
        return None

    def _one(self, worker: Worker, waiting: "deque[_Item]") -> None:
        """Wait for the first of the waiting cases.

        Raises:
            WorkerLost: the worker was killed or has died; its case is settled or still waiting.
        """
        item, began = waiting[0], time.monotonic()
        try:
            reply = _reply(worker, DEADLINE_S)
        except TimeoutError as error:
            worker.kill()
            waiting.popleft()
            took = (time.monotonic() - began) * 1e3
            item.settle(self._blamed(item.case, "deadline"), began, took)
            raise WorkerLost("over the deadline") from error
        except (EOFError, OSError) as error:
            item.losses += 1
            if item.losses > 1:  # once may be an accident of the host; twice is the case
                waiting.popleft()
                item.settle(self._blamed(item.case, "deadline"), began)
            raise WorkerLost("the worker died") from error
        waiting.popleft()
        worker.judged += 1
        if reply.get("memory"):
            item.settle(self._blamed(item.case, "too_complex"), began, (time.monotonic() - began) * 1e3)
            raise WorkerLost("out of memory")
        item.settle(decode_finding(reply["finding"]), began, reply["verify_ms"], reply["cpu_ms"])

    def _back(self, waiting: "deque[_Item]") -> None:
        with self._changed:
            if self._closed:
                for item in waiting:
                    item.settle(_void("the pool is closed"), item.queued_at)
                return
            self._queue.extendleft(reversed(waiting))
            self._changed.notify_all()

    def _blamed(self, case: Case, code: str) -> Finding:
        """Whose fault a lost worker was: the answer's, if the reference passes as an answer in a fresh worker."""
        gold = getattr(VERIFIERS[case.verifier], "gold_case", None)
        if gold is None:
            return Finding(Outcome.FAILED, code, "judging the answer took too much")
        key = content_hash([case.verifier, case.params, case.reference])
        if (passes := self._causes.get(key)) is None:
            passes = self._passes(gold(case))
            if len(self._causes) >= _CHECKS_KEPT:
                self._causes.clear()
            self._causes[key] = passes
        if passes:
            return Finding(Outcome.FAILED, code, "judging the answer took too much")
        return Finding(Outcome.VERIFIER_ERROR, "crash", "the reference cannot be judged in time")

    def _passes(self, case: Case) -> bool:
        worker: Worker | None = None
        try:
            worker = self._template.fork()
            send_cases(worker.link, [encode_case(case)])
            reply = _reply(worker, SELF_CHECK_S)
        except (WorkerLost, TimeoutError, EOFError, OSError):
            return False
        finally:
            if worker is not None:
                worker.kill()
        return "finding" in reply and decode_finding(reply["finding"]).outcome is Outcome.VERIFIED


def _drop(worker: Worker | None) -> None:
    if worker is not None:
        worker.kill()


def _late(item: _Item, now: float) -> bool:
    if now - item.queued_at <= QUEUE_S:
        return False
    item.settle(Finding(Outcome.VERIFIER_ERROR, "queue_timeout", "no worker was free in time"), now)
    return True


def _sent(worker: Worker, waiting: "deque[_Item]") -> bool:
    """Send the chunk; a case that is not JSON is settled as ours and the rest are tried again."""
    encoded = []
    for item in list(waiting):
        try:
            encoded.append(encode_case(item.case))
        except (TypeError, ValueError, RecursionError):
            waiting.remove(item)
            item.settle(_void("the case is not plain JSON"), time.monotonic())
    if not encoded:
        return False
    try:
        worker.link.settimeout(DEADLINE_S + STARVED_DEADLINE_S)
        send_cases(worker.link, encoded)
    except OSError as error:
        raise WorkerLost("the worker died") from error
    return True


def _reply(worker: Worker, deadline_s: float) -> dict[str, Any]:
    """The worker's next reply. A worker that the host starved of CPU gets more time.

    Raises:
        TimeoutError: the deadline passed. EOFError, OSError: the worker is gone.
    """
    began, cpu, wait_s = time.monotonic(), worker.cpu_seconds(), deadline_s
    while True:
        worker.link.settimeout(wait_s)
        try:
            reply: dict[str, Any] = receive(worker.link)
            return reply
        except TimeoutError:
            used = worker.cpu_seconds()
            starved = cpu is not None and used is not None and used - cpu < CPU_SHARE * deadline_s
            if not starved or time.monotonic() - began >= STARVED_DEADLINE_S:
                raise
        wait_s = STARVED_STEP_S


def _void(detail: str) -> Finding:
    return Finding(Outcome.VERIFIER_ERROR, "crash", detail)
