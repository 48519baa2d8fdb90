"""Holdouts: for a key without `holdout:read` they do not exist, on no surface; every read of one is noted."""

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from service.store.session import Store
from service.store.tables import Exposure
from service.words import Scope
from tests.service.conftest import MakeClient, a_task

SECRET = "zanzibar"


@pytest.fixture
def held(client: TestClient) -> dict[str, Any]:
    """A holdout task with a judged attempt; `verdict` is the attempt's."""
    body = a_task(split="holdout", reference={"answer": SECRET}, gold=[SECRET], tags=["held"])
    made: dict[str, Any] = client.post("/v1/tasks", json=body).json()
    assert made["split"] == "holdout"
    made["verdict"] = client.post("/v1/verify", json={"ref": made["ref"], "response": "no"}).json()["id"]
    made["body"] = body
    return made


@pytest.fixture
def stranger(client_of: MakeClient) -> TestClient:
    """A client that may do everything but read holdouts."""
    return client_of(*(scope for scope in Scope if scope not in {Scope.HOLDOUT_READ, Scope.ADMIN}))


def _surfaces(held: dict[str, Any]) -> list[tuple[str, str, Any]]:
    path, reason = f"/v1/tasks/{held['id']}", {"reason": "r"}
    return [
        *(("GET", path + end, None) for end in ("", "?include=answers", "?version=1")),
        *(("GET", f"{path}/{end}", None) for end in ("lineage", "receipts", "attempts", "events")),
        ("PATCH", path, {"tags": []}),
        *(("POST", f"{path}:{verb}", reason) for verb in ("activate", "quarantine", "retire", "reject")),
        ("POST", "/v1/verify", {"ref": held["ref"], "response": SECRET}),
        ("POST", "/v1/verify", {"task_id": held["id"], "response": SECRET}),
        ("GET", f"/v1/verdicts/{held['verdict']}", None),
        ("POST", f"/v1/verdicts/{held['verdict']}:replay", None),
    ]


def test_no_surface_knows_of_it(stranger: TestClient, held: dict[str, Any]) -> None:
    """The answer is what it would be for an id that never was, but for the id."""
    never = json.loads(
        json.dumps(held).replace(held["id"], "task_" + "0" * 32).replace(held["verdict"], "ver_" + "0" * 32)
    )
    for (method, path, body), (_, other, other_body) in zip(_surfaces(held), _surfaces(never), strict=True):
        answer = stranger.request(method, path, json=body)
        assert answer.status_code == 404, (method, path, answer.text)
        assert "etag" not in answer.headers
        unknown = stranger.request(method, other, json=other_body).json()
        assert answer.json()["code"] == unknown["code"]
        told = answer.json()["detail"].replace(held["id"], "ID").replace(held["verdict"], "ID")
        assert told == unknown["detail"].replace(never["id"], "ID").replace(never["verdict"], "ID")


def test_lists_and_batches_pass_over_it(stranger: TestClient, held: dict[str, Any]) -> None:
    for query in ("", "?split=holdout", "?tag=held", f"?family={held['family_id']}", "?q=6*7", "?status=pending"):
        assert stranger.get(f"/v1/tasks{query}").json()["items"] == []
    assert stranger.get("/v1/tasks?count=true").json()["count"] == 0
    items = [{"ref": held["ref"], "response": "x"}, {"task_id": held["id"], "response": "x"}]
    answers = stranger.post("/v1/verify:batch", json={"items": items}).json()["items"]
    assert [item["problem"]["status"] for item in answers] == [404, 404]


def test_a_duplicate_of_it_is_held_without_a_name(stranger: TestClient, held: dict[str, Any]) -> None:
    again = {name: value for name, value in held["body"].items() if name != "split"}
    assert stranger.post("/v1/tasks", json=again).json() == {"status": "held_for_review"}
    lines = f"{json.dumps(again)}\n{json.dumps(a_task())}\n"
    answer = stranger.post("/v1/tasks:import", content=lines, headers={"Content-Type": "application/jsonl"})
    first, second, last = (json.loads(line) for line in answer.text.splitlines())
    assert held["id"] not in answer.text
    assert held["family_id"] not in answer.text
    assert first["held_for_review"] is True
    assert second["status"] == 201
    assert last["summary"]["held_for_review"] == 1


def test_every_read_of_it_is_noted(client: TestClient, held: dict[str, Any], store: Store) -> None:
    for query in ("", "", "?include=answers"):
        assert client.get(f"/v1/tasks/{held['id']}{query}").status_code == 200
    with store.reading() as db:
        seen = db.scalars(select(Exposure.surface).where(Exposure.task_id == held["id"]).order_by(Exposure.id)).all()
    assert seen == ["task", "task", "answers"]


def test_answers_of_any_task_are_noted_and_plain_reads_are_not(client: TestClient, store: Store) -> None:
    made = client.post("/v1/tasks", json=a_task(split="train")).json()
    client.get(f"/v1/tasks/{made['id']}")
    client.get(f"/v1/tasks/{made['id']}?include=answers")
    with store.reading() as db:
        assert [row.surface for row in db.scalars(select(Exposure))] == ["answers"]
