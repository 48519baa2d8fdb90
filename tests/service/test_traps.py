"""Traps of services like this one, each with its symptom. Real sockets where a test client would hide it."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import BaseModel
from sqlalchemy import event, func, select

from sandbox.contract import Backend
from service.api.dependencies import ServicesHandle
from service.app import create_app
from service.auth.issue import issue_key
from service.settings import Settings
from service.store import events
from service.store.session import Store, WriteSession
from service.store.tables import Job, Task
from service.words import Scope
from tests.conftest import wait_until
from tests.service.conftest import MakeClient, a_task
from tests.service.served import served
from verifiers.engine import Engine


@pytest.fixture
def key(settings: Settings, store: Store) -> dict[str, str]:
    return _key(settings, store)


def _key(settings: Settings, store: Store) -> dict[str, str]:
    """Headers of a key that may do everything."""
    with store.writing() as db:
        made = issue_key(db, name="t", scopes=[str(scope) for scope in Scope], secret=settings.secret_bytes)
    return {"Authorization": f"Bearer {made.token}"}


def _count(store: Store, table: type[Any]) -> int:
    with store.reading() as db:
        return db.scalar(select(func.count()).select_from(table)) or 0


@contextmanager
def _writing_elsewhere(store: Store) -> Iterator[WriteSession]:
    """A write transaction of another thread, open until the block ends."""
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with store.writing() as db:
            events.record(db, "held", "test.held", "t")
            db.flush()
            held.set()
            done.wait(timeout=30)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(timeout=10)
    try:
        yield
    finally:
        done.set()
        thread.join(timeout=10)


def test_commit_failure_is_5xx(client: TestClient, store: Store) -> None:
    """D1: a commit that fails is never answered with 2xx, and leaves no row and no job."""

    def refuse(_: object) -> None:
        raise RuntimeError("the disk is full")

    event.listen(store.engine, "commit", refuse)
    try:
        answer = client.post("/v1/tasks", json=a_task())
    finally:
        event.remove(store.engine, "commit", refuse)
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "disk" not in answer.text
    assert (_count(store, Task), _count(store, Job)) == (0, 0)


def test_what_is_answered_201_can_be_read_at_once(app: FastAPI, key: dict[str, str]) -> None:
    """D1, over real sockets."""
    with served(app) as url, httpx.Client(base_url=url, headers=key) as client:
        for number in range(20):
            made = client.post("/v1/tasks", json=a_task(reference={"answer": str(number)}))
            assert made.status_code == 201
            assert client.get(f"/v1/tasks/{made.json()['id']}").status_code == 200


def test_disconnect_then_retry_replays(app: FastAPI, key: dict[str, str], store: Store) -> None:
    """D8: a client that hangs up does not stop the work; its retry gets the first answer."""
    body = json.dumps(a_task()).encode()
    with served(app) as url:
        host, port = url.removeprefix("http://").split(":")
        head = (
            f"POST /v1/tasks HTTP/1.1\r\nHost: {host}\r\nAuthorization: {key['Authorization']}\r\n"
            f"Content-Type: application/json\r\nIdempotency-Key: gone\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection((host, int(port)), timeout=5) as gone:
            gone.sendall(head.encode() + body)
        wait_until(lambda: _count(store, Task) == 1)
        with httpx.Client(base_url=url, headers=key | {"Idempotency-Key": "gone"}) as client:
            answer = client.post("/v1/tasks", json=a_task())
        assert answer.status_code == 201
        assert answer.headers["Idempotency-Replayed"] == "true"
        assert _count(store, Task) == 1


def test_disconnect_returns_connections(app: FastAPI, key: dict[str, str], store: Store) -> None:
    """D8: fifty clients that leave before their answer cost no connection for long."""
    with served(app) as url:
        host, port = url.removeprefix("http://").split(":")
        request = f"GET /v1/tasks HTTP/1.1\r\nHost: {host}\r\nAuthorization: {key['Authorization']}\r\n\r\n".encode()
        for _ in range(50):
            with socket.create_connection((host, int(port)), timeout=5) as gone:
                gone.sendall(request)
        wait_until(lambda: store.engine.pool.checkedout() == 0)  # type: ignore[attr-defined]
        assert httpx.get(f"{url}/v1/tasks", headers=key).status_code == 200


def test_livez_with_threadpool_exhausted(
    settings: Settings, sqlite_store: Store, engine: Engine, backend: Backend
) -> None:
    """D11: liveness answers while every thread waits for a turn to write, which SQLite alone makes them do."""
    store, app, key = sqlite_store, create_app(settings, sqlite_store, engine, backend), _key(settings, sqlite_store)
    with served(app) as url, ThreadPoolExecutor(settings.api_threads + 8) as threads, _writing_elsewhere(store):
        waiting = [
            threads.submit(httpx.post, f"{url}/v1/tasks", json=a_task(), headers=key, timeout=30)
            for _ in range(settings.api_threads + 8)
        ]
        time.sleep(0.05)
        took = []
        with httpx.Client(base_url=url) as client:
            for _ in range(10):
                started = time.perf_counter()
                assert client.get("/livez").status_code == 200
                took.append(time.perf_counter() - started)
        assert not all(future.done() for future in waiting)
        assert sorted(took)[5] < 0.25


def test_reads_do_not_wait_for_the_writer(client_of: MakeClient, store: Store) -> None:
    """D5: nor does the first read of a key, which notes that the key was used."""
    fresh, used = client_of(Scope.TASKS_READ), client_of(Scope.TASKS_READ)
    used.get("/v1/tasks")
    with _writing_elsewhere(store):
        for client in (fresh, used):
            started = time.perf_counter()
            assert client.get("/v1/tasks").status_code == 200
            assert time.perf_counter() - started < 2.0  # a waiting one would take the five seconds of a turn


def test_the_use_of_a_key_is_noted(client: TestClient, client_of: MakeClient) -> None:
    client_of(Scope.TASKS_READ, name="noted").get("/v1/tasks")
    wait_until(lambda: all(key["last_used_at"] for key in client.get("/v1/keys").json()["items"]))


def test_burst_over_pool_size(app: FastAPI, settings: Settings, key: dict[str, str]) -> None:
    """D12: four times as many requests as threads; none meets an empty pool."""
    count = 4 * settings.api_threads
    with served(app) as url, httpx.Client(base_url=url, headers=key, timeout=30) as client:
        client.post("/v1/tasks", json=a_task())
        with ThreadPoolExecutor(32) as threads:
            answers = list(threads.map(lambda _: client.get("/v1/tasks").status_code, range(count)))
    assert answers == [200] * count


def test_livez_under_import(app: FastAPI, key: dict[str, str]) -> None:
    """D10: an import of some megabytes keeps the event loop free."""
    lines = [json.dumps(a_task(reference={"answer": str(n)}, tags=["x" * 60] * 1)).encode() for n in range(2000)]
    pad = json.dumps(a_task(prompt=[{"role": "user", "content": "y" * 100_000}])).encode()
    body = b"\n".join([*lines, *[pad.replace(b"yyyy", b"%04d" % n, 1) for n in range(60)]])
    with served(app) as url, ThreadPoolExecutor(1) as threads, httpx.Client(base_url=url) as client:
        headers = key | {"Content-Type": "application/jsonl"}
        work = threads.submit(httpx.post, f"{url}/v1/tasks:import", content=body, headers=headers, timeout=50)
        took = []
        while not work.done():
            started = time.perf_counter()
            assert client.get("/livez").status_code == 200
            took.append(time.perf_counter() - started)
            time.sleep(0.01)
        assert work.result().status_code == 200
        assert sorted(took)[len(took) // 2] < 0.25


class Demanding(BaseModel):
    """An answer that no row of the test satisfies."""

    number: int


def test_bad_response_model_rolls_back(app: FastAPI, client: TestClient, store: Store) -> None:
    """D36: an answer that cannot be built is a 500, and nothing is stored."""

    def endpoint(services: ServicesHandle) -> Demanding:
        with services.store.writing() as db:
            events.record(db, "x", "test.demanding", "t")
            return Demanding.model_validate({"number": "none"})

    app.add_api_route("/v1/demanding", endpoint, methods=["POST"])
    assert client.post("/v1/demanding", json={}).status_code == 500
    with store.reading() as db:
        assert events.data_of(db, "x", "test.demanding") == []


def test_head_is_get_without_a_body(client: TestClient) -> None:
    made = client.post("/v1/tasks", json=a_task()).json()
    for path in ("/livez", "/v1/tasks", f"/v1/tasks/{made['id']}"):
        answer = client.head(path)
        assert (answer.status_code, answer.content) == (200, b"")
        assert answer.headers["content-length"] == client.get(path).headers["content-length"]
    assert client.head("/v1/tasks/task_" + "0" * 32).status_code == 404
