"""The catalogue of problems: each has a code of its own, a page, and one form on the wire."""

import json
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from sandbox.contract import SandboxUnavailable
from service.errors import Problem
from service.problem_details import every_problem
from tests.service.conftest import a_task

pytestmark = pytest.mark.parametrize("store", ["sqlite"], indirect=True)
MEMBERS = {"type", "title", "status", "detail", "instance", "code", "errors", "trace_id"}


def _kinds(base: type[Problem]) -> list[type[Problem]]:
    return [base, *(kind for item in base.__subclasses__() for kind in _kinds(item))]


def test_every_code_is_of_one_kind_and_has_a_page(client: TestClient) -> None:
    kinds = _kinds(Problem)
    assert len(every_problem()) == len(kinds), "two kinds share a code"
    for kind in kinds:
        assert kind.status in {400, 401, 403, 404, 405, 409, 412, 413, 415, 421, 422, 428, 429, 500, 503}
        assert (kind.status == 503) <= (kind.retry_after_s is not None), kind
        page = client.get(f"/problems/{kind.code}")
        assert page.status_code == 200
        assert kind.title in page.text
    assert client.get("/problems/none").status_code == 404


def test_every_refusal_has_the_same_form(client: TestClient) -> None:
    made = client.post("/v1/tasks", json=a_task()).json()
    path = f"/v1/tasks/{made['id']}"
    json_type = {"Content-Type": "application/json"}
    refusals: list[tuple[int, Any]] = [
        (400, client.post("/v1/tasks", content=b"{", headers=json_type)),
        (400, client.get("/v1/tasks?cursor=x")),
        (401, client.get("/v1/tasks", headers={"Authorization": "Bearer x"})),
        (404, client.get("/v1/tasks/task_" + "1" * 32)),
        (404, client.get("/v1/tasks/x:nonsense")),
        (404, client.get("/v1/none")),
        (405, client.delete("/v1/tasks")),
        (405, client.post(f"{path}:nonsense", json={})),
        (409, client.post(f"{path}:activate", json={"reason": "r"})),
        (412, client.patch(path, json={"tags": []}, headers={"If-Match": '"9"'})),
        (413, client.post("/v1/keys", content=b"x" * (2**20 + 1), headers=json_type)),
        (415, client.post("/v1/tasks", content=b"{}", headers={"Content-Type": "text/plain"})),
        (415, client.post("/v1/tasks:import", content=b"{}", headers={"Content-Type": "text/csv"})),
        (422, client.get("/v1/tasks?limit=0")),
        (422, client.post("/v1/tasks", json={})),
        (428, client.patch(path, json={"tags": []})),
    ]
    for status, answer in refusals:
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        body = answer.json()
        assert body.keys() >= MEMBERS
        assert (body["status"], body["instance"]) == (status, answer.request.url.path)
        assert body["code"] in every_problem()
        assert body["trace_id"] == answer.headers["x-request-id"]
        assert all(error.keys() == {"pointer", "code", "message"} for error in body["errors"])


def test_a_failure_of_ours_says_nothing_of_itself(
    app: FastAPI, client: TestClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor does the log hold the values around it: they may be keys and references."""

    def broken() -> None:
        secret = "-".join(("hush", "hush"))
        raise RuntimeError(f"with {len(secret)} characters")

    app.add_api_route("/v1/broken", broken)
    answer = client.get("/v1/broken")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "characters" not in answer.text
    logged = "".join(capsys.readouterr())
    assert "RuntimeError" in logged
    assert "hush-hush" not in logged


def test_a_sandbox_that_is_down_is_503(app: FastAPI, client: TestClient) -> None:
    def down() -> None:
        raise SandboxUnavailable("no user namespaces here")

    app.add_api_route("/v1/down", down)
    answer = client.get("/v1/down")
    assert (answer.status_code, answer.json()["code"]) == (503, "sandbox_unavailable")
    assert answer.headers["retry-after"]
    assert "user namespaces" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/v1/verify", "/v1/verify:batch", "/v1/tasks", "/v1/execute", "/v1/keys"])
@pytest.mark.parametrize("body", ["[]", '"text"', "null", "1", "{}", '{"colour": 1}', "[" * 2000, '{"a": 1e999}'])
def test_no_body_is_a_failure_of_ours(client: TestClient, path: str, body: str) -> None:
    answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in {400, 422}, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    if answer.status_code == 422:
        assert answer.json()["errors"]


def test_a_prompt_of_twenty_megabytes_is_named(client: TestClient) -> None:
    huge = json.dumps(a_task(prompt=[{"role": "user", "content": "x" * 20_000_000}]))
    answer = client.post("/v1/tasks", content=huge, headers={"Content-Type": "application/json"})
    assert 400 <= answer.status_code < 500
    (error,) = answer.json()["errors"]
    assert error["pointer"] == "/prompt"
    assert "bytes" in error["message"]
