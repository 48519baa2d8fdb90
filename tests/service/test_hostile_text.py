"""Text that no database column takes, numbers that no JSON holds: refused by name, or judged; never our failure."""

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.store.ids import parse_ref
from tests.service.conftest import a_task

JSON = {"Content-Type": "application/json"}


def _post(client: TestClient, path: str, body: Any) -> Any:
    """Send what `json.dumps` makes, NaN and lone surrogates included."""
    return client.post(path, content=json.dumps(body), headers=JSON)


def _ref(client: TestClient) -> str:
    return str(client.post("/v1/tasks", json=a_task()).json()["ref"])


def test_a_response_may_hold_any_text_and_is_judged(client: TestClient) -> None:
    """One response with a NUL must not lose the verdicts of its batch."""
    ref = _ref(client)
    responses = ["42", "4\0002", "\0", {"content": "4\ud8002"}, {"content": "\0", "n": 2**70}]
    answer = _post(client, "/v1/verify:batch", {"items": [{"ref": ref, "response": each} for each in responses]})
    assert answer.status_code == 200, answer.text
    items = answer.json()["items"]
    assert [item["reward"] == 1.0 for item in items] == [True, False, False, False, False]
    assert all(item["reward"] is not None for item in items)
    assert client.get(f"/v1/verdicts/{items[1]['id']}").json()["outcome"] == items[1]["outcome"]
    assert client.post(f"/v1/verdicts/{items[1]['id']}:replay").json()["agrees"] is True


@pytest.mark.parametrize(
    ("pointer", "code", "change"),
    [
        ("/response/x", "not_finite", {"response": {"x": float("nan")}}),
        ("/trajectory/steps/0", "not_finite", {"trajectory": {"steps": [float("inf")]}}),
        ("/attempt/policy", "bad_text", {"response": "42", "attempt": {"policy": "a\0"}}),
        ("/attempt/group_id", "bad_text", {"response": "42", "attempt": {"group_id": "\ud800"}}),
        ("/id", "bad_text", {"response": "42", "id": "\0"}),
    ],
)
def test_what_cannot_be_stored_beside_a_response_is_named(
    client: TestClient, pointer: str, code: str, change: dict[str, Any]
) -> None:
    ref = _ref(client)
    one = _post(client, "/v1/verify", {"ref": ref} | change)
    assert one.status_code == 422, one.text
    assert [(error["pointer"], error["code"]) for error in one.json()["errors"]] == [(pointer, code)]
    batch = _post(client, "/v1/verify:batch", {"items": [{"ref": ref} | change, {"ref": ref, "response": "42"}]})
    bad, good = batch.json()["items"]
    assert bad["problem"]["errors"][0]["pointer"] == pointer
    assert good["outcome"] == "verified"


@pytest.mark.parametrize("name", ["task_id", "ref"])
@pytest.mark.parametrize("text", ["\0", "x\0y", "\u00b2"])
def test_an_id_that_is_none_names_no_task(client: TestClient, name: str, text: str) -> None:
    answer = _post(client, "/v1/verify", {name: text, "response": "42"})
    assert answer.status_code in {404, 422}, answer.text


def test_a_reference_has_plain_digits() -> None:
    task = "task_" + "0" * 32
    assert parse_ref(f"tm:{task}:12") == (task, 12)
    assert parse_ref(f"tm:{task}:\u00b2") is None
    assert parse_ref(f"tm:{task}:\u0661") is None
    assert parse_ref(f"tm:{task}:+1") is None


@pytest.mark.parametrize("path", ["/v1/tasks", "/v1/jobs", "/v1/streams", "/v1/runs", "/v1/stats"])
@pytest.mark.parametrize("query", ["q=%00", "status=active&domain=a%00", "kind=%00", "none=%00"])
def test_a_filter_that_can_match_nothing_is_named(client: TestClient, path: str, query: str) -> None:
    answer = client.get(f"{path}?{query}")
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"] == f"/query/{query.rpartition('&')[2].partition('=')[0]}"


def test_reasons_and_names_are_text(client: TestClient) -> None:
    task = _ref(client).split(":")[1]
    assert _post(client, f"/v1/tasks/{task}:quarantine", {"reason": "a\0"}).json()["errors"][0]["pointer"] == "/reason"
    assert _post(client, "/v1/keys", {"name": "a\0", "scopes": ["verify"]}).json()["errors"][0]["pointer"] == "/name"
    assert _post(client, "/v1/tasks", "a\0").status_code == 422


def test_a_key_that_is_dead_at_birth_is_refused(client: TestClient) -> None:
    answer = client.post("/v1/keys", json={"name": "old", "scopes": ["verify"], "expires_at": "2020-01-01T00:00:00Z"})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/expires_at")


@pytest.mark.parametrize(
    ("pointer", "change"),
    [
        ("/files/..~1a", {"files": {"../a": "x"}}),
        ("/args/1", {"args": ["a", "b\0"]}),
        ("/fetch/0", {"fetch": ["/etc/passwd"]}),
        ("/limits/wall_s", {"limits": {"wall_s": float("nan")}}),
    ],
)
def test_a_program_out_of_its_ranges_is_named(client: TestClient, pointer: str, change: dict[str, Any]) -> None:
    answer = _post(client, "/v1/execute", {"language": "python", "code": "print(1)"} | change)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)


def test_a_program_may_read_and_write_nul(client: TestClient) -> None:
    body = {"language": "python", "code": "import sys; print(sys.stdin.read())", "stdin": "a\0b"}
    assert _post(client, "/v1/execute", body).json()["stdout"] == "a\0b\n"
    once = client.post("/v1/execute", json=body, headers={"Idempotency-Key": "nul"}).json()
    assert client.post("/v1/execute", json=body, headers={"Idempotency-Key": "nul"}).json() == once
