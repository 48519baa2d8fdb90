"""When a call is sent again, with what, and what an answer outside 2xx becomes."""

import socket
import subprocess
import sys
import threading
import time

import pytest

from taskmill_client import ApiError, AsyncClient, Client, ConnectionLost, Patience, TaskmillError
from taskmill_client.errors import (
    Conflict,
    Forbidden,
    Invalid,
    LeaseExpired,
    LeaseSuperseded,
    NotFound,
    RateLimited,
    SnapshotMismatch,
    StaleConsumer,
    TooLarge,
    Unauthenticated,
    Unavailable,
)
from tests.client.conftest import Stub, problem

QUICK = Patience(deadline_s=2, first_s=0.01, longest_s=0.02)


@pytest.mark.parametrize("failure", [problem(s, "x") for s in (429, 502, 503, 504)] + [(503, b"<html>", {})])
def test_passing_failures_are_tried_again_with_the_same_key(stub: Stub, failure: tuple[int, object, dict]) -> None:
    stub.script = [failure, failure, (200, {"id": "job_1"}, {})]
    with Client(stub.url, patience=QUICK) as client:
        assert client.jobs.create("k", {})["id"] == "job_1"
    keys = {seen.headers["idempotency-key"] for seen in stub.seen}
    assert len(stub.seen) == 3
    assert len(keys) == 1


def test_two_calls_have_two_keys_and_a_given_key_is_sent(stub: Stub) -> None:
    with Client(stub.url, patience=QUICK) as client:
        client.jobs.create("k", {})
        client.jobs.create("k", {})
        client.jobs.create("k", {}, idempotency_key="mine")
    first, second, third = (seen.headers["idempotency-key"] for seen in stub.seen)
    assert first != second
    assert third == "mine"


def test_a_409_is_waited_for_only_with_retry_after(stub: Stub) -> None:
    """The first try of the key still runs; any other conflict is final."""
    running = problem(409, "idempotency_in_flight", {"Retry-After": "0"})
    stub.script = [running, (200, {"id": "a"}, {}), problem(409, "conflict")]
    with Client(stub.url, patience=QUICK) as client:
        assert client.verify({"response": "1"})["id"] == "a"
        with pytest.raises(Conflict):
            client.verify({"response": "1"})
    assert len(stub.seen) == 3


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (400, "bad_json", Invalid),
        (401, "unauthenticated", Unauthenticated),
        (403, "forbidden", Forbidden),
        (404, "not_found", NotFound),
        (409, "conflict", Conflict),
        (409, "lease_expired", LeaseExpired),
        (409, "lease_superseded", LeaseSuperseded),
        (409, "stale_consumer", StaleConsumer),
        (409, "snapshot_mismatch", SnapshotMismatch),
        (413, "too_large", TooLarge),
        (422, "invalid", Invalid),
        (418, "teapot", ApiError),
        (500, "internal", Unavailable),
    ],
)
def test_other_failures_are_errors_at_once(stub: Stub, status: int, code: str, expected: type[ApiError]) -> None:
    errors = [{"pointer": "/domain", "code": "unknown", "message": "there is no such domain"}]
    stub.script = [problem(status, code, errors=errors)]
    with Client(stub.url, patience=QUICK) as client, pytest.raises(expected) as caught:
        client.stats()
    assert type(caught.value) is expected
    assert (caught.value.status, caught.value.code, caught.value.detail) == (status, code, f"it is {code}")
    assert caught.value.errors[0].pointer == "/domain"
    assert "there is no such domain" in str(caught.value)
    assert len(stub.seen) == 1


def test_retry_after_is_the_least_pause(stub: Stub) -> None:
    stub.script = [problem(429, "rate_limited", {"Retry-After": "0.3"})]
    start = time.monotonic()
    with Client(stub.url, patience=QUICK) as client:
        client.stats()
    assert time.monotonic() - start >= 0.3


def test_all_tries_together_end_at_the_deadline(stub: Stub) -> None:
    stub.answer = lambda seen: problem(429, "rate_limited")
    start = time.monotonic()
    patience = Patience(deadline_s=0.4, first_s=0.05, longest_s=0.1)
    with Client(stub.url, patience=patience) as client, pytest.raises(RateLimited):
        client.stats()
    assert time.monotonic() - start < 1.0
    assert len(stub.seen) > 2


def test_an_absent_service_is_waited_for_then_named() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with (
            Client(url, patience=Patience(0.2, 0.02, 0.05)) as client,
            pytest.raises(ConnectionLost, match="no answer"),
        ):
            client.version()


async def test_the_async_client_gives_up_too() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        async with AsyncClient(url, patience=Patience(0.2, 0.02, 0.05)) as client:
            with pytest.raises(ConnectionLost):
                await client.version()


def test_a_service_that_dies_in_the_answer_is_asked_again_with_the_same_key() -> None:
    """The connection breaks after the request was read: what happened is unknown, so the key decides."""
    keys: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for last in (False, True):
                connection, _ = server.accept()
                with connection:
                    head = connection.recv(65536)
                    keys.extend(row for row in head.split(b"\r\n") if row.lower().startswith(b"idempotency-key"))
                    if last:
                        connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"id": "job_1"}')

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with Client(f"http://127.0.0.1:{server.getsockname()[1]}", patience=QUICK) as client:
            assert client.jobs.create("k", {})["id"] == "job_1"
        thread.join(timeout=5)
    assert len(keys) == 2
    assert len(set(keys)) == 1


def test_a_key_that_cannot_be_a_header_is_refused_before_it_is_sent() -> None:
    with pytest.raises(TaskmillError):
        Client("http://127.0.0.1:1", "tm_key\n")


def test_importing_costs_little_more_than_httpx() -> None:
    """H7: within 30 ms of httpx itself, the best of five each; asyncio stays out."""
    code = "import time; s = time.perf_counter(); import {}; print(time.perf_counter() - s)"

    def cost(name: str) -> float:
        command = [sys.executable, "-c", f"import httpx; {code.format(name)}"]
        return min(float(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout) for _ in range(5))

    assert cost("taskmill_client") < 0.030


def test_importing_loads_no_heavy_module() -> None:
    code = "import sys, taskmill_client; print([m for m in ('pydantic', 'torch', 'sqlalchemy') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60, text=True)
    assert found.stdout.strip() == "[]"
