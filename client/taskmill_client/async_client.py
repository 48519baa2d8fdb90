"""The async client: `async with AsyncClient(url, key) as client: ...`."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
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
    def __init__(self, client: "AsyncClient") -> None:
        self._send, self._pages = client.send, client.pages


class Tasks(_Resource):
    async def create(self, draft: t.TaskDraft, *, idempotency_key: str | None = None) -> t.Created:
        return await self._send(calls.task_create(draft, idempotency_key))

    async def get(self, task_id: str, *, answers: bool = False) -> t.Task:
        """One task; `answers` adds reference, gold and nulls (scope `answers:read`, recorded as an exposure)."""
        return await self._send(calls.task_get(task_id, answers))

    def list(self, **filters: Any) -> AsyncIterator[t.TaskSummary]:
        """All tasks that match, page by page."""
        return self._pages(calls.task_list(filters))

    async def import_jsonl(self, path: Path) -> Sequence[t.ImportLine]:
        """Send a JSONL file (.gz allowed); one answer for each line, at the end the summary."""
        return await self._send(calls.task_import(path))

    async def lineage(self, task_id: str) -> Any:
        return await self._send(calls.task_part(task_id, "lineage"))

    def receipts(self, task_id: str) -> AsyncIterator[Any]:
        return self._pages(calls.task_part(task_id, "receipts"))

    def attempts(self, task_id: str) -> AsyncIterator[Any]:
        return self._pages(calls.task_part(task_id, "attempts"))

    def events(self, task_id: str) -> AsyncIterator[Any]:
        return self._pages(calls.task_part(task_id, "events"))

    async def activate(self, task_id: str, reason: str) -> t.Task:
        return await self._send(calls.task_move(task_id, "activate", reason))

    async def quarantine(self, task_id: str, reason: str) -> t.Task:
        return await self._send(calls.task_move(task_id, "quarantine", reason))

    async def retire(self, task_id: str, reason: str) -> t.Task:
        return await self._send(calls.task_move(task_id, "retire", reason))

    async def reject(self, task_id: str, reason: str) -> t.Task:
        return await self._send(calls.task_move(task_id, "reject", reason))


class Streams(_Resource):
    async def create(
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
        return await self._send(calls.stream_create(body))

    async def get(self, stream_id: str) -> t.Stream:
        return await self._send(calls.stream_get(stream_id))

    def list(self) -> AsyncIterator[t.Stream]:
        return self._pages(calls.stream_list())

    async def lease(
        self, stream_id: str, n: int, *, policy_version: int, consumer: str, idempotency_key: str | None = None
    ) -> t.Lease:
        """Up to `n` groups; the answer may be short, and says why."""
        return await self._send(calls.stream_lease(stream_id, n, policy_version, consumer, idempotency_key))

    async def checkpoint(self, stream_id: str) -> str:
        """The token of the present position: store it inside the trainer's checkpoint."""
        return (await self._send(calls.stream_checkpoint(stream_id)))["token"]

    async def restore(self, stream_id: str, token: str, *, consumer: str) -> t.Stream:
        """Go back to a token's position; every other consumer is fenced off."""
        return await self._send(calls.stream_restore(stream_id, token, consumer))

    def ordinals(self, stream_id: str, state: str | None = None) -> AsyncIterator[t.OrdinalRecord]:
        return self._pages(calls.stream_ordinals(stream_id, state))


class Leases(_Resource):
    async def extend(self, lease_id: str) -> t.Extended:
        return await self._send(calls.lease_extend(lease_id))

    async def complete(self, lease_id: str, items: Sequence[t.Completion]) -> t.CompletionResults:
        """Acknowledge; each item is answered, and asking again changes nothing."""
        return await self._send(calls.lease_complete(lease_id, items))

    async def release(self, lease_id: str, ordinals: Sequence[int] | None = None, *, reason: str) -> Any:
        """Hand ordinals back (None: all); they are served again before anything new."""
        return await self._send(calls.lease_release(lease_id, ordinals, reason))


class Jobs(_Resource):
    async def create(self, kind: str, params: Mapping[str, Any], *, idempotency_key: str | None = None) -> t.Job:
        return await self._send(calls.job_create(kind, params, idempotency_key))

    async def get(self, job_id: str) -> t.Job:
        return await self._send(calls.job_get(job_id))

    async def cancel(self, job_id: str) -> t.Job:
        return await self._send(calls.job_cancel(job_id))

    def list(self, *, status: str | None = None, kind: str | None = None) -> AsyncIterator[t.Job]:
        return self._pages(calls.job_list(status, kind))

    async def wait(
        self, job_id: str, *, timeout_s: float = 600.0, on_progress: Callable[[t.Job], object] | None = None
    ) -> t.Job:
        """The job once it has ended, in whatever way; `on_progress` sees each state on the way.

        Raises:
            WaitTimeout: it had not ended after `timeout_s`.
        """
        end, pause_s = time.monotonic() + timeout_s, 0.1
        while (job := await self.get(job_id))["status"] not in ENDED:
            if on_progress:
                on_progress(job)
            if time.monotonic() + pause_s > end:
                raise WaitTimeout(f"job {job_id} is {job['status']} after {timeout_s:g} s")
            await asyncio.sleep(pause_s)
            pause_s = min(1.5 * pause_s, 1.0)
        if on_progress:
            on_progress(job)
        return job


class Runs(_Resource):
    async def create(
        self,
        name: str,
        *,
        policy: str,
        kind: str = "train",
        stream_id: str | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> t.Run:
        return await self._send(calls.run_create(name, kind, policy, stream_id, config or {}))

    async def get(self, run_id: str) -> t.Run:
        return await self._send(calls.run_get(run_id))

    def list(self) -> AsyncIterator[t.Run]:
        return self._pages(calls.run_list())

    async def log(
        self,
        run_id: str,
        points: Sequence[t.Point],
        *,
        status: str | None = None,
        summary: Mapping[str, Any] | None = None,
    ) -> Any:
        """Add points to the run's curves; a step posted again replaces its point."""
        return await self._send(calls.run_log(run_id, points, status, summary))

    def metrics(self, run_id: str, name: str | None = None) -> AsyncIterator[t.Point]:
        """The points of one curve, or of all, page by page."""
        return self._pages(calls.run_metrics(run_id, name))


class AsyncClient:
    """Talks to one service. Safe to share between tasks of one event loop; close it, or use `async with`."""

    def __init__(
        self,
        url: str,
        key: str = "",
        *,
        timeout_s: float = 60.0,
        patience: Patience | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._timeout_s, self._patience = timeout_s, patience or Patience()
        self._http = httpx.AsyncClient(base_url=url, headers=headers(key), transport=transport)
        self.tasks, self.streams, self.leases = Tasks(self), Streams(self), Leases(self)
        self.jobs, self.runs = Jobs(self), Runs(self)

    async def verify(self, item: t.VerifyItem, *, idempotency_key: str | None = None) -> t.Verdict:
        """Judge one response."""
        return await self.send(calls.verify(item, idempotency_key))

    async def verify_batch(
        self, items: Sequence[t.VerifyItem], *, idempotency_key: str | None = None
    ) -> list[t.Verdict]:
        """Judge up to 1,024 responses; order kept, an item that failed holds `problem`."""
        return (await self.send(calls.verify_batch(items, idempotency_key)))["items"]

    async def execute(self, body: t.ExecuteRequest, *, idempotency_key: str | None = None) -> t.Execution:
        """Run a program in the sandbox."""
        return await self.send(calls.execute(body, idempotency_key))

    async def stats(self, facet: str | None = None) -> Any:
        """The statistics record, or one facet of it."""
        return await self.send(calls.stats(facet))

    async def verifiers(self) -> Any:
        return await self.send(calls.verifiers())

    async def version(self) -> Any:
        return await self.send(calls.version())

    async def ready(self) -> Any:
        """The readiness checks; raises Unavailable, with the checks in `extra`, once the deadline has passed."""
        return await self.send(calls.ready())

    async def send(self, call: Call[T]) -> T:
        """Send a call until it is answered, refused or out of time.

        Raises:
            ApiError: the service refused, or still failed at the deadline.
            ConnectionLost: no answer came by the deadline.
        """
        tries = Tries(self._patience, self._timeout_s)
        while True:
            try:
                response = await self._http.request(**request(call, tries.timeout_s), content=_content(call))
            except httpx.TransportError as error:
                pause = tries.after_loss(error)
            else:
                again = tries.after(response)
                if again is None:
                    answer: T = call.decode(response)
                    return answer
                pause = again
            await asyncio.sleep(pause)

    async def pages(self, call: Call[t.Page[T]]) -> AsyncIterator[T]:
        """The items of a list, one page after another."""
        page = await self.send(call)
        while True:
            for item in page["items"]:
                yield item
            if not page.get("next"):
                return
            page = await self.send(call.page(str(page["next"])))

    async def aclose(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _content(call: Call[Any]) -> AsyncIterator[bytes] | None:
    if call.body is None:
        return None
    chunks = call.body()

    async def stream() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    return stream()
