"""Routes that judge or run: nothing of the store is held meanwhile, and a repeated request does not run twice."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select

from service.store.session import Store
from service.store.tables import Attempt, Idempotency
from tests.conftest import wait_until
from tests.service.conftest import a_task

SLOW = {"language": "python", "code": "import time; time.sleep(1.5); print('done')"}


def _reserved(store: Store) -> bool:
    with store.reading() as db:
        return db.scalar(select(func.count()).select_from(Idempotency)) == 1


def test_a_running_program_holds_no_connection_and_no_turn(client: TestClient, store: Store) -> None:
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(client.post, "/v1/execute", json=SLOW)
        free = 0
        while not running.done():
            free += store.engine.pool.checkedout() == 0  # type: ignore[attr-defined]
            client.get("/livez")
        assert running.result().json()["stdout"] == "done\n"
    assert free > 0


def test_a_program_still_running_is_in_flight_and_then_replayed(client: TestClient, store: Store) -> None:
    headers = {"Idempotency-Key": "slow"}
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(client.post, "/v1/execute", json=SLOW, headers=headers)
        wait_until(lambda: _reserved(store))
        early = client.post("/v1/execute", json=SLOW, headers=headers)
        first = running.result(timeout=30)
    assert (early.status_code, early.json()["code"]) == (409, "idempotency_in_flight")
    assert early.headers["retry-after"]
    again = client.post("/v1/execute", json=SLOW, headers=headers)
    assert again.json() == first.json(), "not even the measured times differ: it ran once"
    assert again.headers["idempotency-replayed"] == "true"


def test_a_refused_program_frees_its_key(client: TestClient) -> None:
    headers = {"Idempotency-Key": "refused"}
    wrong = client.post("/v1/execute", json={"language": "cobol", "code": ""}, headers=headers)
    assert wrong.status_code == 422
    assert client.post("/v1/execute", json={"language": "cobol", "code": ""}, headers=headers).json()["code"] != (
        "idempotency_in_flight"
    )


def test_an_unknown_task_frees_its_key(client: TestClient) -> None:
    body, headers = {"task_id": "task_" + "0" * 32, "response": "42"}, {"Idempotency-Key": "unknown"}
    for _ in range(2):
        assert client.post("/v1/verify", json=body, headers=headers).status_code == 404


@pytest.mark.parametrize("count", [16])
def test_concurrent_duplicates_of_a_verification_are_judged_once(client: TestClient, store: Store, count: int) -> None:
    ref = client.post("/v1/tasks", json=a_task()).json()["ref"]
    body, headers = {"ref": ref, "response": "42"}, {"Idempotency-Key": "many"}
    start = threading.Barrier(count)

    def ask(_: int) -> tuple[int, str]:
        start.wait(timeout=10)
        answer = client.post("/v1/verify", json=body, headers=headers)
        return answer.status_code, answer.json().get("id", answer.json().get("code"))

    with ThreadPoolExecutor(count) as threads:
        answers = list(threads.map(ask, range(count)))
    done = {said for status, said in answers if status == 200}
    assert len(done) == 1
    assert {said for status, said in answers if status != 200} <= {"idempotency_in_flight"}
    with store.reading() as db:
        assert db.scalar(select(func.count()).select_from(Attempt)) == 1


def test_a_replay_is_written_beside_the_original(client: TestClient) -> None:
    ref = client.post("/v1/tasks", json=a_task()).json()["ref"]
    first = client.post("/v1/verify", json={"ref": ref, "response": "41"}).json()
    found = client.post(f"/v1/verdicts/{first['id']}:replay").json()
    assert found["agrees"] is True
    assert found["original"]["id"] == first["id"]
    assert found["replay"]["replay_of"] == first["id"]
    assert client.get(f"/v1/verdicts/{found['replay']['id']}").json()["outcome"] == first["outcome"]
    attempts = client.get(f"/v1/tasks/{ref.split(':')[1]}/attempts").json()["items"]
    assert [row["verdict"]["id"] for row in attempts] == [first["id"]], "a replay is no attempt"


def test_an_inline_task_is_replayed_too(client: TestClient) -> None:
    task = {"verifier": {"name": "exact"}, "reference": {"answer": "42"}}
    first = client.post("/v1/verify", json={"task": task, "response": "42"}).json()
    assert first["task"] is None
    assert client.post(f"/v1/verdicts/{first['id']}:replay").json()["agrees"] is True


def test_artefacts_come_back_with_what_was_refused(client: TestClient) -> None:
    code = "import os, pathlib; pathlib.Path('a').write_text('x'); os.symlink('/etc/passwd', 'l')"
    body = {"language": "python", "code": code, "fetch": ["a", "l", "none"]}
    found = {row["path"]: row for row in client.post("/v1/execute", json=body).json()["artefacts"]}
    assert found["a"]["content_base64"] == "eA=="
    assert found["l"]["content_base64"] is None
    assert found["l"]["refused"]
    assert found["none"]["content_base64"] is None
    assert not Path("a").exists()
