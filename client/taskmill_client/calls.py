"""Every call of the API, built once: the clients send what these functions build."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from taskmill_client import types as t
from taskmill_client.transport import Call, get, given, post

CHUNK_BYTES = 1 << 20

# --- tasks


def task_create(draft: t.TaskDraft, key: str | None) -> Call[t.Created]:
    return post("/v1/tasks", draft, key)


def task_get(task_id: str, answers: bool) -> Call[t.Task]:
    return get(f"/v1/tasks/{task_id}", include="answers" if answers else None)


def task_list(filters: Mapping[str, Any]) -> Call[t.Page[t.TaskSummary]]:
    return get("/v1/tasks", **{"limit": 200, **filters})


def task_part(task_id: str, part: str) -> Call[Any]:
    return get(f"/v1/tasks/{task_id}/{part}")


def task_move(task_id: str, verb: str, reason: str) -> Call[t.Task]:
    return post(f"/v1/tasks/{task_id}:{verb}", {"reason": reason})


def task_import(path: Path) -> Call[list[t.ImportLine]]:
    """The file is read in chunks and opened again for each try; a line imported twice is an exact duplicate."""

    def body() -> Iterator[bytes]:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk

    headers = {"Content-Type": "application/jsonl"} | ({"Content-Encoding": "gzip"} if path.suffix == ".gz" else {})
    return Call("POST", "/v1/tasks:import", body=body, headers=headers, decode=_lines)


def _lines(response: httpx.Response) -> list[t.ImportLine]:
    return [json.loads(line) for line in response.text.split("\n") if line.strip()]


# --- judging and running


def verify(item: t.VerifyItem, key: str | None) -> Call[t.Verdict]:
    return post("/v1/verify", item, key)


def verify_batch(items: Sequence[t.VerifyItem], key: str | None) -> Call[t.VerifyBatch]:
    return post("/v1/verify:batch", {"items": list(items)}, key)


def execute(request: t.ExecuteRequest, key: str | None) -> Call[t.Execution]:
    return post("/v1/execute", request, key)


# --- streams and leases


def stream_create(body: Mapping[str, Any]) -> Call[t.Stream]:
    return post("/v1/streams", body)


def stream_get(stream_id: str) -> Call[t.Stream]:
    return get(f"/v1/streams/{stream_id}")


def stream_list() -> Call[t.Page[t.Stream]]:
    return get("/v1/streams", limit=200)


def stream_lease(stream_id: str, n: int, policy_version: int, consumer: str, key: str | None) -> Call[t.Lease]:
    body = {"n": n, "policy_version": policy_version, "consumer": consumer}
    return post(f"/v1/streams/{stream_id}:lease", body, key)


def stream_checkpoint(stream_id: str) -> Call[t.CheckpointToken]:
    return get(f"/v1/streams/{stream_id}/checkpoint")


def stream_restore(stream_id: str, token: str, consumer: str) -> Call[t.Stream]:
    return post(f"/v1/streams/{stream_id}:restore", {"token": token, "consumer": consumer})


def stream_ordinals(stream_id: str, state: str | None) -> Call[t.Page[t.OrdinalRecord]]:
    return get(f"/v1/streams/{stream_id}/ordinals", state=state, limit=200)


def lease_extend(lease_id: str) -> Call[t.Extended]:
    return post(f"/v1/leases/{lease_id}:extend", {})


def lease_complete(lease_id: str, items: Sequence[t.Completion]) -> Call[t.CompletionResults]:
    return post(f"/v1/leases/{lease_id}:complete", {"items": list(items)})


def lease_release(lease_id: str, ordinals: Sequence[int] | None, reason: str) -> Call[Any]:
    items = None if ordinals is None else [{"ordinal": ordinal} for ordinal in ordinals]
    return post(f"/v1/leases/{lease_id}:release", {"items": items, "reason": reason})


# --- jobs


def job_create(kind: str, params: Mapping[str, Any], key: str | None) -> Call[t.Job]:
    return post("/v1/jobs", {"kind": kind, "params": dict(params)}, key)


def job_get(job_id: str) -> Call[t.Job]:
    return get(f"/v1/jobs/{job_id}")


def job_cancel(job_id: str) -> Call[t.Job]:
    return post(f"/v1/jobs/{job_id}:cancel", {})


def job_list(status: str | None, kind: str | None) -> Call[t.Page[t.Job]]:
    return get("/v1/jobs", status=status, kind=kind, limit=200)


# --- runs


def run_create(name: str, kind: str, policy: str, stream_id: str | None, config: Mapping[str, Any]) -> Call[t.Run]:
    return post(
        "/v1/runs", {"name": name, "kind": kind, "policy": policy, "stream_id": stream_id, "config": dict(config)}
    )


def run_get(run_id: str) -> Call[t.Run]:
    return get(f"/v1/runs/{run_id}")


def run_list() -> Call[t.Page[t.Run]]:
    return get("/v1/runs", limit=200)


def run_log(run_id: str, points: Sequence[t.Point], status: str | None, summary: Mapping[str, Any] | None) -> Call[Any]:
    return post(f"/v1/runs/{run_id}/metrics", given(points=list(points), status=status, summary=summary))


def run_metrics(run_id: str, name: str | None) -> Call[t.Page[t.Point]]:
    return get(f"/v1/runs/{run_id}/metrics", name=name, limit=200)


# --- the service


def stats(facet: str | None) -> Call[Any]:
    return get(f"/v1/stats/{facet}" if facet else "/v1/stats")


def verifiers() -> Call[Any]:
    return get("/v1/verifiers")


def version() -> Call[Any]:
    return get("/version")


def ready() -> Call[Any]:
    return get("/readyz")
