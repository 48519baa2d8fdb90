"""Keys, scopes, problems, health, idempotency on the wire."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from service.auth.keys import new_token, well_formed
from service.words import Scope
from tests.service.conftest import MakeClient, a_task

PUBLIC = {"/livez", "/readyz", "/metrics", "/version", "/v1/openapi.json"}


def _operations(app: FastAPI) -> list[tuple[str, str]]:
    return [(method, path) for path, item in app.openapi()["paths"].items() for method in item]


def test_every_route_needs_a_key_but_health(app: FastAPI, client_of: MakeClient) -> None:
    client_of()
    anonymous = TestClient(app, raise_server_exceptions=False)
    for method, path in _operations(app):
        if path in PUBLIC or not path.startswith("/v1"):
            continue
        filled = path.replace("{task_id}", "task_" + "0" * 32).replace("{verdict_id}", "ver_" + "0" * 32)
        answer = anonymous.request(method, filled.replace("{", "").replace("}", ""), json={})
        assert answer.status_code in {401, 404, 422}, (method, path, answer.text)
        if answer.status_code == 401:
            assert "www-authenticate" in answer.headers


@pytest.mark.parametrize("token", ["", "tm_short", new_token()[:-1] + "!", new_token()])
def test_wrong_keys_open_nothing(client: TestClient, token: str) -> None:
    answer = client.get("/v1/tasks", headers={"Authorization": f"Bearer {token}"})
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert not token or token not in answer.text


def test_a_typo_in_a_key_is_seen_without_a_query() -> None:
    token = new_token()
    assert well_formed(token)
    for place in range(3, len(token)):
        changed = token[:place] + ("a" if token[place] != "a" else "b") + token[place + 1 :]
        assert not well_formed(changed)


def test_keys_are_made_listed_and_revoked(client: TestClient, client_of: MakeClient) -> None:
    made = client.post("/v1/keys", json={"name": "trainer", "scopes": ["train", "verify"]}).json()
    assert made["key"].startswith("tm_")
    assert made["key"] not in client.get("/v1/keys").text
    other = {"Authorization": f"Bearer {made['key']}"}
    assert client.get("/v1/tasks", headers=other).status_code == 403
    assert client.delete(f"/v1/keys/{made['id']}").status_code == 204
    assert client.get("/v1/tasks", headers=other).status_code == 401
    assert client_of(Scope.TASKS_READ).get("/v1/keys").status_code == 403


def test_sixteen_concurrent_duplicates_get_one_answer(client: TestClient) -> None:
    headers = {"Idempotency-Key": "k"}
    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(lambda _: client.post("/v1/tasks", json=a_task(), headers=headers), range(16)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.text for answer in answers}) == 1


def test_readiness_names_its_checks(client: TestClient) -> None:
    from tests.conftest import wait_until

    wait_until(lambda: client.get("/readyz").status_code == 200)
    checks = client.get("/readyz").json()["checks"]
    assert checks["migrations"]["ok"]
    assert checks["sandbox"]["ok"]
    assert client.get("/livez").text == "ok\n"
    assert "verifiers" in client.get("/version").json()
    client.get("/v1/tasks")
    metrics = client.get("/metrics").text
    assert 'route="/v1/tasks"' in metrics


def test_a_problem_leads_to_its_page_and_carries_the_trace(client: TestClient) -> None:
    answer = client.get("/v1/tasks?cursor=x", headers={"X-Request-Id": "trace-1"})
    body = answer.json()
    assert body["trace_id"] == "trace-1" == answer.headers["x-request-id"]
    assert set(body) >= {"type", "title", "status", "detail", "instance", "code", "errors", "trace_id"}
    assert "Start again without it" in client.get(body["type"]).text


def test_bodies_must_be_json(client: TestClient) -> None:
    broken = client.post("/v1/tasks", content=b"{", headers={"Content-Type": "application/json"})
    assert (broken.status_code, broken.json()["code"]) == (400, "bad_json")
    plain = client.post("/v1/tasks", content=b"{}", headers={"Content-Type": "text/plain"})
    assert (plain.status_code, plain.json()["code"]) == (415, "wrong_media_type")
    large = client.post("/v1/keys", content=b"x" * (2**20 + 1), headers={"Content-Type": "application/json"})
    assert (large.status_code, large.json()["code"]) == (413, "too_large")


def test_authorised_answers_are_not_stored_by_caches(client: TestClient) -> None:
    assert client.get("/v1/tasks").headers["cache-control"] == "no-store"
