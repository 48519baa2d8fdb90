"""What is sent, what comes back, and that both clients have one surface."""

import gzip
import inspect
import json
from pathlib import Path
from typing import Any

import pytest

import taskmill_client
from taskmill_client import AsyncClient, Client, Patience, WaitTimeout
from taskmill_client import async_client as async_module
from taskmill_client import client as sync_module
from tests.client.conftest import Seen, Stub

QUICK = Patience(deadline_s=2, first_s=0.01, longest_s=0.02)


def _public(cls: type) -> dict[str, Any]:
    return {n: inspect.signature(f) for n, f in vars(cls).items() if not n.startswith("_") and inspect.isfunction(f)}


@pytest.mark.parametrize("name", ["Tasks", "Streams", "Leases", "Jobs", "Runs", "Client"])
def test_sync_and_async_have_one_surface(name: str) -> None:
    found = _public(getattr(sync_module, name))
    mirror = _public(getattr(async_module, "AsyncClient" if name == "Client" else name))
    assert {*found} == {("close" if key == "aclose" else key) for key in mirror}
    for key, signature in found.items():
        other = mirror["aclose" if key == "close" else key]
        assert list(signature.parameters) == list(other.parameters), key


def test_every_name_of_the_package_can_be_had() -> None:
    assert all(getattr(taskmill_client, name) for name in taskmill_client.__all__)
    with pytest.raises(AttributeError):
        _ = taskmill_client.Nothing


def test_what_each_call_sends(stub: Stub) -> None:
    """Method, path and body of every call of the contract."""
    stub.answer = _canned
    with Client(stub.url, "tm_key", patience=QUICK) as client:
        client.tasks.create({"domain": "d", "prompt": [], "verifier": {"name": "exact"}})
        client.tasks.get("task_1", answers=True)
        list(client.tasks.list(status="active", split="eval"))
        client.tasks.lineage("task_1")
        for part in (client.tasks.receipts, client.tasks.attempts, client.tasks.events):
            list(part("task_1"))
        for move in (client.tasks.activate, client.tasks.quarantine, client.tasks.retire, client.tasks.reject):
            move("task_1", "why")
        client.verify({"ref": "tm:task_1:1", "response": "4"})
        client.verify_batch([{"ref": "tm:task_1:1", "response": "4"}])
        client.execute({"language": "python", "code": ""})
        client.streams.create("s", domains={"d": 1}, policy={"kind": "uniform"}, group_size=8)
        client.streams.get("str_1")
        list(client.streams.list())
        client.streams.lease("str_1", 4, policy_version=2, consumer="me")
        assert client.streams.checkpoint("str_1") == "token"
        client.streams.restore("str_1", "token", consumer="me")
        list(client.streams.ordinals("str_1", "open"))
        client.leases.extend("lse_1")
        client.leases.complete("lse_1", [{"ordinal": 3, "verdict_ids": ["ver_1"]}])
        client.leases.release("lse_1", [3], reason="too_few_valid")
        client.jobs.create("factory.generate", {"n": 1})
        client.jobs.get("job_1")
        client.jobs.cancel("job_1")
        list(client.jobs.list(kind="factory.gate"))
        client.runs.create("r", policy="p")
        client.runs.get("run_1")
        list(client.runs.list())
        client.runs.log("run_1", [{"step": 1, "name": "x", "value": 2.0}], status="done", summary={"a": 1})
        list(client.runs.metrics("run_1", "x"))
        client.stats("overview")
        client.verifiers()
        client.version()
        client.ready()
    lines = [f"{seen.method} {seen.path}" for seen in stub.seen]
    assert lines == CALLS.split("\n")[1:-1]
    assert all(seen.headers["authorization"] == "Bearer tm_key" for seen in stub.seen)
    assert all("idempotency-key" in seen.headers for seen in stub.seen if seen.method == "POST")
    assert stub.seen[1].query == {"include": "answers"}
    released = next(seen for seen in stub.seen if seen.path.endswith(":release"))
    assert released.json == {"items": [{"ordinal": 3}], "reason": "too_few_valid"}


def _canned(seen: Seen) -> tuple[int, Any, dict[str, str]]:
    return 200, {"items": [], "next": None, "token": "token", "status": "done"}, {}


CALLS = """
POST /v1/tasks
GET /v1/tasks/task_1
GET /v1/tasks
GET /v1/tasks/task_1/lineage
GET /v1/tasks/task_1/receipts
GET /v1/tasks/task_1/attempts
GET /v1/tasks/task_1/events
POST /v1/tasks/task_1:activate
POST /v1/tasks/task_1:quarantine
POST /v1/tasks/task_1:retire
POST /v1/tasks/task_1:reject
POST /v1/verify
POST /v1/verify:batch
POST /v1/execute
POST /v1/streams
GET /v1/streams/str_1
GET /v1/streams
POST /v1/streams/str_1:lease
GET /v1/streams/str_1/checkpoint
POST /v1/streams/str_1:restore
GET /v1/streams/str_1/ordinals
POST /v1/leases/lse_1:extend
POST /v1/leases/lse_1:complete
POST /v1/leases/lse_1:release
POST /v1/jobs
GET /v1/jobs/job_1
POST /v1/jobs/job_1:cancel
GET /v1/jobs
POST /v1/runs
GET /v1/runs/run_1
GET /v1/runs
POST /v1/runs/run_1/metrics
GET /v1/runs/run_1/metrics
GET /v1/stats/overview
GET /v1/verifiers
GET /version
GET /readyz
"""


def test_lists_follow_their_cursor_and_keep_their_filters(stub: Stub) -> None:
    stub.script = [
        (200, {"items": [{"id": "a"}, {"id": "b"}], "next": "c1"}, {}),
        (200, {"items": [{"id": "c"}], "next": None}, {}),
    ]
    with Client(stub.url, patience=QUICK) as client:
        assert [row["id"] for row in client.tasks.list(split="eval")] == ["a", "b", "c"]
    assert [seen.query for seen in stub.seen] == [
        {"limit": "200", "split": "eval"},
        {"limit": "200", "split": "eval", "cursor": "c1"},
    ]


async def test_the_async_client_does_the_same(stub: Stub) -> None:
    stub.script = [
        (503, {}, {}),
        (200, {"items": [{"id": "a"}], "next": "c1"}, {}),
        (200, {"items": [{"id": "b"}], "next": None}, {}),
    ]
    async with AsyncClient(stub.url, "tm_key", patience=QUICK) as client:
        assert [row["id"] async for row in client.tasks.list()] == ["a", "b"]


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_is_streamed_and_opened_again_for_each_try(stub: Stub, tmp_path: Path, packed: bool) -> None:
    lines = b"\n".join(json.dumps({"n": n, "fill": "x" * 1000}).encode() for n in range(3000))
    path = tmp_path / ("tasks.jsonl.gz" if packed else "tasks.jsonl")
    path.write_bytes(gzip.compress(lines) if packed else lines)
    answer = b'{"line": 1, "status": "created", "id": "task_1"}\n{"summary": {"created": 1}}\n'
    stub.script = [(503, {}, {"Retry-After": "0"}), (200, answer, {})]
    with Client(stub.url, patience=QUICK) as client:
        rows = client.tasks.import_jsonl(path)
    assert [*rows] == [{"line": 1, "status": "created", "id": "task_1"}, {"summary": {"created": 1}}]
    bodies = [seen.body for seen in stub.seen]
    assert bodies == [path.read_bytes()] * 2
    assert stub.seen[1].headers["content-type"] == "application/jsonl"
    assert stub.seen[1].headers.get("content-encoding") == ("gzip" if packed else None)


async def test_the_async_client_streams_a_file_too(stub: Stub, tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(b'{"a": 1}\n')
    stub.script = [(200, b'{"summary": {}}\n', {})]
    async with AsyncClient(stub.url, patience=QUICK) as client:
        assert [*await client.tasks.import_jsonl(path)] == [{"summary": {}}]
    assert stub.seen[0].body == b'{"a": 1}\n'


def test_waiting_for_a_job_shows_each_state_and_ends_with_it(stub: Stub) -> None:
    stub.script = [(200, {"id": "job_1", "status": status}, {}) for status in ("queued", "running", "dead")]
    states: list[str] = []
    with Client(stub.url, patience=QUICK) as client:
        job = client.jobs.wait("job_1", timeout_s=5, on_progress=lambda job: states.append(job["status"]))
    assert job["status"] == "dead"
    assert states == ["queued", "running", "dead"]


def test_waiting_has_an_end(stub: Stub) -> None:
    stub.answer = lambda seen: (200, {"id": "job_1", "status": "running"}, {})
    with Client(stub.url, patience=QUICK) as client, pytest.raises(WaitTimeout, match="running"):
        client.jobs.wait("job_1", timeout_s=0.15)
