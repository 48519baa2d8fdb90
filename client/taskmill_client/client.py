"""The sync client: `with Client(url, key) as client: ...`."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import httpx

from taskmill_client import calls
from taskmill_client import types as t
from taskmill_client.errors import WaitTimeout
from taskmill_client.transport import Call, Patience, Tries, headers, request

T = TypeVar("T")
ENDED = frozenset({"done", "failed", "dead", "cancelled"})


class _Resource:
    def __init__(self, client: "Client") -> None:
        self._send, self._pages = client.send, client.pages


class Tasks(_Resource):
    def create(self, draft: t.TaskDraft, *, idempotency_key: str | None = None) -> t.Created:
        return self._send(calls.task_create(draft, idempotency_key))

    def get(self, task_id: str, *, answers: bool = False) -> t.Task:
        """One task; `answers` adds reference, gold and nulls (scope `answers:read`, recorded as an exposure)."""
        return self._send(calls.task_get(task_id, answers))

    def list(self, **filters: Any) -> Iterator[t.TaskSummary]:
        """All tasks that match, page by page."""
        return self._pages(calls.task_list(filters))

    def import_jsonl(self, path: Path) -> Sequence[t.ImportLine]:
        """Send a JSONL file (.gz allowed); one answer for each line, at the end the summary."""
        return self._send(calls.task_import(path))

    def lineage(self, task_id: str) -> Any:
        return self._send(calls.task_part(task_id, "lineage"))

    def receipts(self, task_id: str) -> Iterator[Any]:
        return self._pages(calls.task_part(task_id, "receipts"))

    def attempts(self, task_id: str) -> Iterator[Any]:
        return self._pages(calls.task_part(task_id, "attempts"))

    def events(self, task_id: str) -> Iterator[Any]:
        return self._pages(calls.task_part(task_id, "events"))

    def activate(self, task_id: str, reason: str) -> t.Task:
        return self._send(calls.task_move(task_id, "activate", reason))

    def quarantine(self, task_id: str, reason: str) -> t.Task:
        return self._send(calls.task_move(task_id, "quarantine", reason))

    def retire(self, task_id: str, reason: str) -> t.Task:
        return self._send(calls.task_move(task_id, "retire", reason))

    def reject(self, task_id: str, reason: str) -> t.Task:
        return self._send(calls.task_move(task_id, "reject", reason))


class Streams(_Resource):
    def create(
        self,
        name: str,
        *,
        domains: Mapping[str, Any],
        policy: Mapping[str, Any],
        group_size: int,
        seed: int = 0,
        split: str = "train",
        max_lag: int = 8,
        ack: str = "complete",
    ) -> t.Stream:
        """The stream of this name: made, or found when the same body made it before."""
        body = {
            "name": name,
            "split": split,
            "domains": dict(domains),
            "policy": dict(policy),
            "group_size": group_size,
            "seed": seed,
            "max_lag": max_lag,
            "ack": ack,
        }
        return self._send(calls.stream_create(body))

    def get(self, stream_id: str) -> t.Stream:
        return self._send(calls.stream_get(stream_id))

    def list(self) -> Iterator[t.Stream]:
        return self._pages(calls.stream_list())

    def lease(
        self, stream_id: str, n: int, *, policy_version: int, consumer: str, idempotency_key: str | None = None
    ) -> t.Lease:
        """Up to `n` groups; the answer may be short, and says why."""
        return self._send(calls.stream_lease(stream_id, n, policy_version, consumer, idempotency_key))

    def checkpoint(self, stream_id: str) -> str:
        """The token of the present position: store it inside the trainer's checkpoint."""
        return (self._send(calls.stream_checkpoint(stream_id)))["token"]

    def restore(self, stream_id: str, token: str, *, consumer: str) -> t.Stream:
        """Go back to a token's position; every other consumer is fenced off."""
        return self._send(calls.stream_restore(stream_id, token, consumer))

    def ordinals(self, stream_id: str, state: str | None = None) -> Iterator[t.OrdinalRecord]:
        return self._pages(calls.stream_ordinals(stream_id, state))


class Leases(_Resource):
    def extend(self, lease_id: str) -> t.Extended:
        return self._send(calls.lease_extend(lease_id))

    def complete(self, lease_id: str, items: Sequence[t.Completion]) -> t.CompletionResults:
        """Acknowledge; each item is answered, and asking again changes nothing."""
        return self._send(calls.lease_complete(lease_id, items))

    def release(self, lease_id: str, ordinals: Sequence[int] | None = None, *, reason: str) -> Any:
        """Hand ordinals back (None: all); they are served again before anything new."""
        return self._send(calls.lease_release(lease_id, ordinals, reason))


class Jobs(_Resource):
    def create(self, kind: str, params: Mapping[str, Any], *, idempotency_key: str | None = None) -> t.Job:
        return self._send(calls.job_create(kind, params, idempotency_key))

    def get(self, job_id: str) -> t.Job:
        return self._send(calls.job_get(job_id))

    def cancel(self, job_id: str) -> t.Job:
        return self._send(calls.job_cancel(job_id))

    def list(self, *, status: str | None = None, kind: str | None = None) -> Iterator[t.Job]:
        return self._pages(calls.job_list(status, kind))

    def wait(
        self, job_id: str, *, timeout_s: float = 600.0, on_progress: Callable[[t.Job], object] | None = None
    ) -> t.Job:
        """The job once it has ended, in whatever way; `on_progress` sees each state on the way.

        Raises:
            WaitTimeout: it had not ended after `timeout_s`.
        """
        end, pause_s = time.monotonic() + timeout_s, 0.1
        while (job := self.get(job_id))["status"] not in ENDED:
            if on_progress:
                on_progress(job)
            if time.monotonic() + pause_s > end:
                raise WaitTimeout(f"job {job_id} is {job['status']} after {timeout_s:g} s")
            time.sleep(pause_s)
            pause_s = min(1.5 * pause_s, 1.0)
        if on_progress:
            on_progress(job)
        return job


class Runs(_Resource):
    def create(
        self,
        name: str,
        *,
        policy: str,
        kind: str = "train",
        stream_id: str | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> t.Run:
        return self._send(calls.run_create(name, kind, policy, stream_id, config or {}))

    def get(self, run_id: str) -> t.Run:
        return self._send(calls.run_get(run_id))

    def list(self) -> Iterator[t.Run]:
        return self._pages(calls.run_list())

    def log(
        self,
        run_id: str,
        points: Sequence[t.Point],
        *,
        status: str | None = None,
        summary: Mapping[str, Any] | None = None,
    ) -> Any:
        """Add points to the run's curves; a step posted again replaces its point."""
        return self._send(calls.run_log(run_id, points, status, summary))

    def metrics(self, run_id: str, name: str | None = None) -> Iterator[t.Point]:
        """The points of one curve, or of all, page by page."""
        return self._pages(calls.run_metrics(run_id, name))


class Client:
    """Talks to one service. Safe to share between threads; close it, or use `with`."""

    def __init__(
        self,
        url: str,
        key: str = "",
        *,
        timeout_s: float = 60.0,
        patience: Patience | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._timeout_s, self._patience = timeout_s, patience or Patience()
        self._http = httpx.Client(base_url=url, headers=headers(key), transport=transport)
        self.tasks, self.streams, self.leases = Tasks(self), Streams(self), Leases(self)
        self.jobs, self.runs = Jobs(self), Runs(self)

    def verify(self, item: t.VerifyItem, *, idempotency_key: str | None = None) -> t.Verdict:
        """Judge one response."""
        return self.send(calls.verify(item, idempotency_key))

    def verify_batch(self, items: Sequence[t.VerifyItem], *, idempotency_key: str | None = None) -> list[t.Verdict]:
        """Judge up to 1,024 responses; order kept, an item that failed holds `problem`."""
        return (self.send(calls.verify_batch(items, idempotency_key)))["items"]

    def execute(self, body: t.ExecuteRequest, *, idempotency_key: str | None = None) -> t.Execution:
        """Run a program in the sandbox."""
        return self.send(calls.execute(body, idempotency_key))

    def stats(self, facet: str | None = None) -> Any:
        """The statistics record, or one facet of it."""
        return self.send(calls.stats(facet))

    def verifiers(self) -> Any:
        return self.send(calls.verifiers())

    def version(self) -> Any:
        return self.send(calls.version())

    def ready(self) -> Any:
        """The readiness checks; raises Unavailable, with the checks in `extra`, once the deadline has passed."""
        return self.send(calls.ready())

    def send(self, call: Call[T]) -> T:
        """Send a call until it is answered, refused or out of time.

        Raises:
            ApiError: the service refused, or still failed at the deadline.
            ConnectionLost: no answer came by the deadline.
        """
        tries = Tries(self._patience, self._timeout_s)
        while True:
            try:
                response = self._http.request(**request(call, tries.timeout_s), content=_content(call))
            except httpx.TransportError as error:
                pause = tries.after_loss(error)
            else:
                again = tries.after(response)
                if again is None:
                    answer: T = call.decode(response)
                    return answer
                pause = again
            time.sleep(pause)

    def pages(self, call: Call[t.Page[T]]) -> Iterator[T]:
        """The items of a list, one page after another."""
        page = self.send(call)
        while True:
            yield from page["items"]
            if not page.get("next"):
                return
            page = self.send(call.page(str(page["next"])))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _content(call: Call[Any]) -> Iterator[bytes] | None:
    return call.body() if call.body is not None else None
