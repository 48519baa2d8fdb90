"""Streams, leases and ordinals over HTTP."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from service.store.ids import new_id
from service.store.session import Store
from service.store.tables import Attempt, Difficulty, Exposure, Lease
from service.words import Scope, Split
from tests.service.conftest import MakeClient
from tests.service.stream.made import set_tasks

AddTasks = Callable[..., list[str]]
BODY: dict[str, Any] = {"name": "s", "domains": {"a": 1}, "policy": {"kind": "uniform"}, "group_size": 2}


def stream_of(client: TestClient, **changes: Any) -> dict[str, Any]:
    answer = client.post("/v1/streams", json=BODY | changes)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def lease_of(client: TestClient, stream: dict[str, Any], n: int, key: str | None = None, **changes: Any) -> Any:
    headers = {"Idempotency-Key": key} if key else {}
    body = {"n": n, "policy_version": 0, "consumer": "t"} | changes
    return client.post(f"/v1/streams/{stream['id']}:lease", json=body, headers=headers)


def test_a_stream_is_made_once_and_found_by_an_equal_request(client: TestClient, tasks: AddTasks) -> None:
    tasks({"a": 3})
    stream = stream_of(client)
    assert stream["snapshot_count"] == 3
    assert (stream["lineage"], stream["generation"], stream["max_lag"], stream["ack"]) == ("s", 0, 8, "complete")
    again = client.post("/v1/streams", json=BODY)
    assert (again.status_code, again.json()) == (200, stream)
    other = client.post("/v1/streams", json=BODY | {"seed": 5})
    assert (other.status_code, other.json()["code"]) == (409, "conflict")
    assert "seed" in other.json()["detail"]
    assert client.get(f"/v1/streams/{stream['id']}").json() == stream
    assert client.get("/v1/streams").json() == {"items": [stream], "next": None}


def test_equal_requests_at_once_make_one_stream(client: TestClient, tasks: AddTasks) -> None:
    tasks({"a": 3})
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: client.post("/v1/streams", json=BODY), range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1


@pytest.mark.parametrize(
    ("pointer", "changes"),
    [
        ("/domains", {"domains": {"a": 1, "a.b": 1}}),
        ("/domains", {"domains": {"a": 0}}),
        ("/group_size", {"group_size": 0}),
        ("/split", {"split": "test"}),
        ("/policy/kind", {"policy": {"kind": "bandit"}}),
        ("/colour", {"colour": 1}),
        ("/name", {"name": ""}),
        ("/seed", {"seed": -1}),
    ],
)
def test_a_wrong_request_names_the_field(client: TestClient, pointer: str, changes: dict[str, Any]) -> None:
    answer = client.post("/v1/streams", json=BODY | changes)
    assert answer.status_code == 422, answer.text
    assert any(error["pointer"].startswith(pointer) for error in answer.json()["errors"])


def test_items_show_the_task_and_never_its_answer(client: TestClient, tasks: AddTasks) -> None:
    (task_id,) = tasks({"a": 1})
    answer = lease_of(client, stream_of(client), 1)
    assert answer.status_code == 200
    body = answer.json()
    (item,) = body["items"]
    assert (item["ordinal"], item["ref"], item["domain"]) == (0, f"tm:{task_id}:1", "a")
    assert item["prompt"][0]["role"] == "user"
    assert item["tools"] == [{"name": "echo"}]
    assert item["limits"]["wall_s"] == 10
    assert (item["group_size"], item["tries"], item["p"]) == (2, 1, 0.5)
    assert item["why"]["policy"] == "uniform"
    assert "word" not in answer.text
    assert (body["short"], body["reason"], body["retry_after_s"]) == (False, "target_met", None)


def test_the_same_key_gives_the_same_lease(client: TestClient, tasks: AddTasks, store: Store) -> None:
    tasks({"a": 9})
    stream = stream_of(client)
    first = lease_of(client, stream, 3, "k1")
    with ThreadPoolExecutor(4) as threads:
        again = list(threads.map(lambda _: lease_of(client, stream, 3, "k1"), range(4)))
    assert [found.json() for found in again] == [first.json()] * 4
    assert {found.headers["Idempotency-Replayed"] for found in again} == {"true"}
    assert lease_of(client, stream, 4, "k1").json()["code"] == "idempotency_key_reused"
    assert [item["ordinal"] for item in lease_of(client, stream, 3, "k2").json()["items"]] == [3, 4, 5]
    with store.reading() as db:
        assert len(db.scalars(select(Lease)).all()) == 2


def test_consumers_at_once_never_share_an_ordinal(client: TestClient, tasks: AddTasks) -> None:
    tasks({"a": 40})
    stream = stream_of(client)
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda i: lease_of(client, stream, 5, consumer=f"c{i}"), range(16)))
    got = [item["ordinal"] for answer in answers for item in answer.json()["items"]]
    assert sorted(got) == list(range(80))


def test_an_empty_answer_is_no_error(client: TestClient, tasks: AddTasks) -> None:
    tasks({"a": 2})
    stream = stream_of(client, domains={"b": 1})
    answer = lease_of(client, stream, 3, "k")
    assert answer.status_code == 200
    body = answer.json()
    assert (body["items"], body["short"], body["reason"], body["lease_id"]) == ([], True, "no_servable_task", None)
    assert body["retry_after_s"] > 0
    assert lease_of(client, stream, 3, "k").json() == body


def test_completion_takes_rewards_verdicts_and_responses(client: TestClient, tasks: AddTasks, store: Store) -> None:
    tasks({"a": 9})
    stream = stream_of(client)
    lease = lease_of(client, stream, 4).json()
    refs = [item["ref"] for item in lease["items"]]
    group = lease["items"][1]["group_id"]
    verdict = client.post(
        "/v1/verify", json={"ref": refs[1], "response": "no", "attempt": {"policy": "s", "group_id": group}}
    ).json()
    items = [
        {"ordinal": 0, "rewards": [1.0, None, 0.0], "step": 3},
        {"ordinal": 1, "verdict_ids": [verdict["id"]], "weight": 0},
        {"ordinal": 2, "responses": ["no", "nor this"]},
        {"ordinal": 3, "verdict_ids": [new_id("ver")]},
        {"ordinal": 44},
    ]
    url = f"/v1/leases/{lease['lease_id']}:complete"
    for expected in ("completed", "already"):
        answer = client.post(url, json={"items": items})
        assert answer.status_code == 200, answer.text
        results = answer.json()["items"]
        assert [item["status"] for item in results] == [expected] * 3 + ["problem"] * 2
        assert "problem" not in results[0]
        assert results[3]["problem"]["errors"][0]["code"] == "foreign_verdict"
        assert results[4]["problem"]["status"] == 409
    changed = client.post(url, json={"items": [items[0] | {"step": 4}]}).json()["items"]
    assert changed[0]["problem"]["code"] == "completion_conflict"
    with store.reading() as db:
        assert len(db.scalars(select(Attempt)).all()) == 3  # the repeated request judged nothing again
        assert sorted(db.scalars(select(Difficulty.rollouts))) == [1, 2, 2]
    listed = client.get(f"/v1/streams/{stream['id']}/ordinals", params={"state": "completed"}).json()["items"]
    assert [(row["ordinal"], row["step"], row["weight"]) for row in listed] == [(0, 3, 1), (1, None, 0), (2, None, 1)]


@pytest.mark.parametrize(
    "item",
    [
        {"ordinal": 0, "rewards": [1.0], "verdict_ids": []},
        {"ordinal": 0, "weight": -1},
        {"ordinal": -1},
        {"ordinal": 0, "colour": 1},
    ],
)
def test_a_wrong_completion_is_refused(client: TestClient, tasks: AddTasks, item: dict[str, Any]) -> None:
    tasks({"a": 1})
    lease = lease_of(client, stream_of(client), 1).json()
    answer = client.post(f"/v1/leases/{lease['lease_id']}:complete", json={"items": [item]})
    assert answer.status_code == 422, answer.text


def test_rewards_that_are_no_number_are_refused(client: TestClient, tasks: AddTasks) -> None:
    tasks({"a": 1})
    lease = lease_of(client, stream_of(client), 1).json()
    answer = client.post(
        f"/v1/leases/{lease['lease_id']}:complete",
        content='{"items": [{"ordinal": 0, "rewards": [NaN]}]}',
        headers={"Content-Type": "application/json"},
    )
    assert answer.status_code in {400, 422}


def test_extend_release_checkpoint_and_restore(client: TestClient, tasks: AddTasks) -> None:
    tasks({"a": 9})
    stream = stream_of(client)
    lease = lease_of(client, stream, 3).json()
    url = f"/v1/leases/{lease['lease_id']}"
    assert client.post(f"{url}:extend", json={}).json()["expires_at"] >= lease["expires_at"]
    client.post(f"{url}:complete", json={"items": [{"ordinal": 1}]})
    token = client.get(f"/v1/streams/{stream['id']}/checkpoint").json()["token"]
    assert len(token) < 4096
    released = client.post(f"{url}:release", json={"items": [{"ordinal": 0}], "reason": "preempted"}).json()["items"]
    assert released == [{"ordinal": 0, "status": "open"}]
    restored = client.post(f"/v1/streams/{stream['id']}:restore", json={"token": token, "consumer": "u"})
    assert restored.status_code == 200, restored.text
    assert (restored.json()["reopened"], restored.json()["generation"], restored.json()["consumer"]) == (2, 1, "u")
    assert client.post(f"{url}:complete", json={"items": [{"ordinal": 2}]}).json()["code"] == "lease_superseded"
    assert client.post(f"{url}:extend", json={}).json()["code"] == "lease_superseded"
    assert lease_of(client, stream, 1).json()["code"] == "stale_consumer"
    again = lease_of(client, stream, 3, consumer="u").json()["items"]
    assert [(item["ordinal"], item["tries"]) for item in again] == [(0, 2), (2, 2), (3, 1)]
    bad = client.post(f"/v1/streams/{stream['id']}:restore", json={"token": token[:-3] + "abc", "consumer": "u"})
    assert (bad.status_code, bad.json()["errors"][0]["pointer"]) == (422, "/token")


def test_ordinals_are_paged_in_order(client: TestClient, tasks: AddTasks) -> None:
    tasks({"a": 9})
    stream = stream_of(client)
    lease_of(client, stream, 7)
    url, got, cursor = f"/v1/streams/{stream['id']}/ordinals", [], None
    while True:
        page = client.get(url, params={"limit": 3} | ({"cursor": cursor} if cursor else {})).json()
        got += [row["ordinal"] for row in page["items"]]
        if (cursor := page["next"]) is None:
            break
    assert got == list(range(7))
    assert client.get(url, params={"cursor": "nonsense"}).json()["code"] == "bad_cursor"


def test_streams_of_holdout_need_their_scope_and_each_prompt_is_an_exposure(
    client_of: MakeClient, tasks: AddTasks, store: Store
) -> None:
    ids = tasks({"a": 4}, Split.HOLDOUT)
    trainer, evaluator = client_of(Scope.TRAIN), client_of(Scope.TRAIN, Scope.HOLDOUT_READ)
    assert trainer.post("/v1/streams", json=BODY | {"split": "holdout"}).status_code == 403
    stream = stream_of(evaluator, split="holdout")
    assert trainer.get(f"/v1/streams/{stream['id']}").status_code == 404
    assert trainer.get("/v1/streams").json()["items"] == []
    assert lease_of(trainer, stream, 2).status_code == 404
    lease = lease_of(evaluator, stream, 4).json()
    assert len(lease["items"]) == 4
    assert trainer.post(f"/v1/leases/{lease['lease_id']}:release", json={}).status_code == 404
    with store.reading() as db:
        assert sorted(db.scalars(select(Exposure.task_id))) == sorted(ids)
    assert stream_of(trainer, name="train")["snapshot_count"] == 0


def test_streams_need_the_scope_to_train(client_of: MakeClient) -> None:
    reader = client_of(Scope.TASKS_READ)
    assert reader.post("/v1/streams", json=BODY).status_code == 403
    assert reader.get("/v1/streams").status_code == 403
    assert reader.post(f"/v1/leases/{new_id('lse')}:extend", json={}).status_code == 403


@pytest.mark.parametrize("path", ["/v1/streams/{}:lease", "/v1/streams/{}:nonsense", "/v1/streams/{}:restore"])
def test_what_does_not_exist_is_not_found(client: TestClient, path: str) -> None:
    body = {"n": 1, "policy_version": 0, "consumer": "a"} if "lease" in path else {"token": "x", "consumer": "a"}
    answer = client.post(path.format(new_id("str")), json=body)
    assert answer.status_code in {404, 405, 422}
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_quarantined_task_leaves_the_stream_at_once(client: TestClient, tasks: AddTasks, store: Store) -> None:
    ids = tasks({"a": 3})
    stream = stream_of(client)
    set_tasks(store, ids[:2], status="quarantined")
    lease = lease_of(client, stream, 1).json()
    assert lease["items"][0]["ref"] == f"tm:{ids[2]}:1"
