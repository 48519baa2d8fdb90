"""Sends hints from processes that file jobs, in a thread of its own: a silent broker can block a publish for ever.

Not covered: delivery. A full queue or a broken broker drops hints; workers find the jobs in the database.
"""

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Sequence

from celery import Celery
from kombu.exceptions import OperationalError

from factory.celery_app import HINT_TASK, make_app, queue_name
from service.store.jobs import Hint
from service.words import Queue

CAPACITY = 1000
QUIET_S = 30.0  # one warning an outage, not one a hint

log = logging.getLogger("taskmill.hints")


class HintSender:
    """`offer` never blocks and never fails; one daemon thread sends what was offered."""

    def __init__(self, broker_url: str, *, prefix: str = "") -> None:
        self._broker_url = broker_url
        self._prefix = prefix
        self._waiting: queue.Queue[str | None] = queue.Queue(CAPACITY)
        self._dropped = 0
        self._warned_at = float("-inf")
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._send_all, name="hints", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """How many hints were not sent since the start."""
        return self._dropped

    def offer(self, ids: Sequence[str]) -> None:
        """Queue hints of these jobs; when the queue is full they are dropped and counted."""
        for job_id in ids:
            try:
                self._waiting.put_nowait(job_id)
            except queue.Full:
                self._dropped += 1

    def close(self, within_s: float = 2.0) -> None:
        """Stop after what is queued, or after `within_s` seconds: workers find the rest themselves."""
        self._closing.set()
        with contextlib.suppress(queue.Full):  # the thread looks at `_closing` too
            self._waiting.put_nowait(None)
        self._thread.join(timeout=within_s)

    def _send_all(self) -> None:
        app = make_app(self._broker_url, prefix=self._prefix)
        while True:
            try:
                job_id = self._waiting.get(timeout=1.0)
            except queue.Empty:
                job_id = None
            if job_id is not None:
                app = self._send(app, job_id)
            elif self._closing.is_set():
                app.close()
                return

    def _send(self, app: Celery, job_id: str) -> Celery:
        try:
            publish(app, job_id, prefix=self._prefix)
        except (OperationalError, OSError) as error:
            self._dropped += 1
            if time.monotonic() - self._warned_at > QUIET_S:
                self._warned_at = time.monotonic()
                log.warning("hints_not_sent: %s; workers find the jobs in the database", type(error).__name__)
            app.close()
            return make_app(self._broker_url, prefix=self._prefix)  # a broken connection is never used again
        return app


def publish(app: Celery, job_id: str, *, queue_of: Queue | None = None, prefix: str = "") -> None:
    """Send one hint now, with one retry.

    Raises:
        OperationalError, OSError: the broker did not take it.
    """
    queue_of = queue_of or (job_id.queue if isinstance(job_id, Hint) else Queue.CPU)
    app.send_task(
        HINT_TASK,
        args=[str(job_id)],
        queue=queue_name(queue_of, prefix),
        ignore_result=True,
        retry=True,
        retry_policy={"max_retries": 1, "interval_start": 0, "interval_step": 0.1, "interval_max": 0.1},
    )
