"""Tasks over HTTP: submission, duplicates, lists, answers that stay home, curation."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.store import jobs
from service.store.session import Store
from service.words import Scope
from tests.service.conftest import MakeClient, a_task


def test_a_new_task_is_created_and_its_gate_job_filed(client: TestClient, store: Store) -> None:
    answer = client.post("/v1/tasks", json=a_task())
    assert answer.status_code == 201, answer.text
    body = answer.json()
    assert body["status"] == "pending"
    assert body["ref"] == f"tm:{body['id']}:1"
    with store.reading() as db:
        (job,) = [row for row in jobs.page(db, limit=10) if row.kind == "factory.gate"]
        assert job.params == {"task_ids": [body["id"]]}


def test_an_exact_duplicate_is_named_and_adds_its_source(client: TestClient) -> None:
    first = client.post("/v1/tasks", json=a_task()).json()
    other = a_task(source={"uri": "https://example.org/other", "licence": "CC0-1.0"}, tags=["again"])
    again = client.post("/v1/tasks", json=other)
    assert again.status_code == 200
    assert again.json()["duplicate_of"] == first["id"]
    sources = client.get(f"/v1/tasks/{first['id']}").json()["sources"]
    assert [source["uri"] for source in sources] == ["https://example.org/six", "https://example.org/other"]


def test_sixteen_writers_of_one_body_make_one_task(client: TestClient) -> None:
    """D30."""
    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(lambda _: client.post("/v1/tasks", json=a_task()), range(16)))
    assert sorted(answer.status_code for answer in answers) == [200] * 15 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1


WRONG = [
    ("/verifier/name", a_task(verifier={"name": "no_such", "params": {}})),
    ("/source/licence", a_task(source={"uri": "https://example.org"})),
    ("/colour", a_task(colour="red")),
    ("/features/x", json.dumps(a_task(features={"x": float("nan")}))),
    ("/reference/answer", json.dumps(a_task(reference={"answer": float("inf")}))),
    ("/prompt/0/content", a_task(prompt=[{"role": "user", "content": "a\0b"}])),
    ("/prompt", a_task(prompt=[])),
    ("/domain", a_task(domain="Not A Domain")),
    ("/limits/wall_s", a_task(limits={"wall_s": 0})),
    ("/parents/0/task_id", a_task(parents=[{"task_id": "task_0", "version": 1, "op": "x", "op_version": "1"}])),
    ("/verifier/params", a_task(verifier={"name": "exact", "params": {"no_such": 1}})),
    ("/reference", a_task(reference={})),
    ("/environment/network", a_task(environment={"network": "full"})),
]


@pytest.mark.parametrize(("pointer", "body"), WRONG, ids=[pointer for pointer, _ in WRONG])
def test_a_wrong_task_is_refused_with_the_field_and_the_rule(client: TestClient, pointer: str, body: Any) -> None:
    content = body if isinstance(body, str) else json.dumps(body)
    answer = client.post("/v1/tasks", content=content, headers={"Content-Type": "application/json"})
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found = {error["pointer"]: error["message"] for error in answer.json()["errors"]}
    assert any(where.startswith(pointer) for where in found), found
    assert all(found.values())


@pytest.mark.parametrize("size", [9, 20, 40])
def test_a_prompt_that_is_too_large_is_named(client: TestClient, size: int) -> None:
    """9 MB passes the body's limit and breaks the prompt's; 20 MB breaks the body's; 40 MB is not read whole."""
    answer = client.post("/v1/tasks", json=a_task(prompt=[{"role": "user", "content": "x" * size * 2**20}]))
    assert answer.status_code in {413, 422}
    assert answer.headers["content-type"] == "application/problem+json"
    (error,) = answer.json()["errors"]
    assert error["pointer"] == "/prompt"
    assert "bytes" in error["message"]


def test_answers_stay_home(client: TestClient, client_of: MakeClient) -> None:
    """Law 3: no read without `answers:read` holds the reference; with it, the read is asked for by name."""
    made = client.post("/v1/tasks", json=a_task(reference={"answer": "zanzibar"}, gold=["zanzibar"])).json()
    reader = client_of(Scope.TASKS_READ)
    for path in ("", "/lineage", "/receipts", "/attempts", "/events"):
        assert "zanzibar" not in reader.get(f"/v1/tasks/{made['id']}{path}").text
    assert "zanzibar" not in reader.get("/v1/tasks").text
    assert reader.get(f"/v1/tasks/{made['id']}?include=answers").status_code == 403
    seen = client.get(f"/v1/tasks/{made['id']}?include=answers").json()
    assert seen["answers"]["reference"] == {"answer": "zanzibar"}


def test_a_holdout_does_not_exist_for_others(client: TestClient, client_of: MakeClient) -> None:
    made = client.post("/v1/tasks", json=a_task(split="holdout")).json()
    assert made["split"] == "holdout"
    reader = client_of(Scope.TASKS_READ, Scope.TASKS_WRITE, Scope.VERIFY, Scope.CURATE)
    for path in ("", "/lineage", "/receipts", "/attempts", "/events"):
        assert reader.get(f"/v1/tasks/{made['id']}{path}").status_code == 404
    assert reader.get("/v1/tasks").json()["items"] == []
    assert reader.get("/v1/tasks?count=true").json()["count"] == 0
    assert reader.post("/v1/verify", json={"ref": made["ref"], "response": "42"}).status_code == 404
    assert reader.post(f"/v1/tasks/{made['id']}:retire", json={"reason": "x"}).status_code == 404
    assert reader.post("/v1/tasks", json=a_task()).json() == {"status": "held_for_review"}


def test_a_requested_split_needs_a_curator(client_of: MakeClient) -> None:
    made = client_of(Scope.TASKS_WRITE).post("/v1/tasks", json=a_task(split="holdout")).json()
    assert made["split"] != "holdout"


def test_pages_join_to_the_whole_and_a_foreign_cursor_is_refused(client: TestClient) -> None:
    ids = [client.post("/v1/tasks", json=a_task(reference={"answer": str(n)})).json()["id"] for n in range(7)]
    seen, cursor = [], None
    while True:
        page = client.get(
            "/v1/tasks", params={"limit": 3, "sort": "created_at"} | ({"cursor": cursor} if cursor else {})
        )
        seen += [item["id"] for item in page.json()["items"]]
        if (cursor := page.json()["next"]) is None:
            break
        last = cursor
    assert seen == ids
    refused = client.get("/v1/tasks", params={"limit": 3, "sort": "-created_at", "cursor": last})
    assert (refused.status_code, refused.json()["code"]) == (400, "bad_cursor")


def test_filters_narrow_and_typos_are_errors(client: TestClient) -> None:
    client.post("/v1/tasks", json=a_task(tags=["one"]))
    client.post("/v1/tasks", json=a_task(domain="text.words", reference={"answer": "b"}, tags=["two"]))
    for query, count in [
        ("domain=math", 1),
        ("domain=math&domain=text", 2),
        ("tag=two", 1),
        ("status=active", 0),
        ("q=6*7", 2),
        ("q=6*8", 0),
        ("licence=MIT&domain=text", 1),
    ]:
        assert len(client.get(f"/v1/tasks?{query}").json()["items"]) == count, query
    refused = client.get("/v1/tasks?domian=math")
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/query/domian"


def test_the_status_machine_and_its_events(client: TestClient) -> None:
    made = client.post("/v1/tasks", json=a_task()).json()
    path = f"/v1/tasks/{made['id']}"
    refused = client.post(f"{path}:activate", json={"reason": "please"})
    assert (refused.status_code, refused.json()["code"]) == (409, "gates_missing")
    assert refused.json()["missing"] == ["G0", "G1", "G2", "G3"]
    assert client.post(f"{path}:quarantine", json={"reason": "odd"}).json()["status"] == "quarantined"
    assert client.post(f"{path}:retire", json={"reason": "done"}).json()["status"] == "retired"
    assert client.post(f"{path}:quarantine", json={"reason": "back"}).status_code == 409
    events = client.get(f"{path}/events").json()["items"]
    assert [event["kind"] for event in events] == ["task.retired", "task.quarantined", "task.submitted"]
    assert events[1]["reason"] == "odd"
    assert client.post("/v1/tasks", json=a_task()).status_code == 201, "a retired task is no duplicate of anything"


def test_two_editors_lose_no_update(client: TestClient) -> None:
    made = client.post("/v1/tasks", json=a_task()).json()
    path = f"/v1/tasks/{made['id']}"
    etag = client.get(path).headers["etag"]
    assert client.patch(path, json={"tags": ["a"]}).status_code == 428
    changed = client.patch(path, json={"tags": ["b", "a", "b"]}, headers={"If-Match": etag})
    assert changed.json()["tags"] == ["a", "b"] == client.get(path).json()["tags"]
    assert changed.headers["etag"] == client.get(path).headers["etag"] != etag
    assert [row["tags"] for row in client.get("/v1/tasks?tag=b").json()["items"]] == [["a", "b"]]
    assert client.patch(path, json={"tags": ["b"]}, headers={"If-Match": etag}).status_code == 412


@pytest.mark.parametrize("path", ["/v1/tasks/x:nonsense", "/v1/tasks/task_1", "/v1/nothing", "/v1/tasks/x/y/z"])
def test_unknown_paths_are_problems(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code in {404, 405, 422}
    assert answer.headers["content-type"] == "application/problem+json"
