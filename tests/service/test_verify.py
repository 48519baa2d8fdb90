"""Verify over HTTP: stored and inline tasks, batches, replays, our failures without a reward."""

from fastapi.testclient import TestClient

from service.app import create_app
from service.auth.issue import issue_key
from service.settings import Settings
from service.store.session import Store
from service.words import Scope
from tests.service.conftest import MakeClient, a_task
from verifiers.engine import Engine

INLINE = {"verifier": {"name": "numeric"}, "reference": {"answer": "42"}}


def test_a_stored_task_is_judged_and_recorded(client: TestClient) -> None:
    made = client.post("/v1/tasks", json=a_task()).json()
    attempt = {"policy": "p", "policy_version": 3, "group_id": "g", "tokens": 5}
    right = client.post("/v1/verify", json={"ref": made["ref"], "response": "42", "attempt": attempt}).json()
    assert (right["outcome"], right["reward"]) == ("verified", 1.0)
    assert right["task"] == {"id": made["id"], "version": 1}
    wrong = client.post("/v1/verify", json={"task_id": made["id"], "response": "41"}).json()
    assert (wrong["outcome"], wrong["reward"]) == ("failed", 0.0)
    listed = client.get(f"/v1/tasks/{made['id']}/attempts").json()["items"]
    assert [item["verdict"]["id"] for item in listed] == [wrong["id"], right["id"]]
    assert listed[1]["policy_version"] == 3
    assert client.get(f"/v1/verdicts/{right['id']}").json() == right
    replayed = client.post(f"/v1/verdicts/{right['id']}:replay").json()
    assert replayed["agrees"]
    assert replayed["replay"]["replay_of"] == right["id"]


def test_a_batch_answers_each_item_in_order(client: TestClient) -> None:
    items = [
        {"id": "a", "task": INLINE, "response": "42"},
        {"id": "b", "ref": "tm:task_00000000000000000000000000000000:1", "response": "42"},
        {"id": "c", "response": "42"},
        {"id": "d", "task": INLINE, "response": "41"},
        {"id": "e", "task": {"verifier": {"name": "nothing"}}, "response": ""},
        {"id": "f", "task": INLINE, "response": None},
        "not an object",
    ]
    assert client.post("/v1/verify:batch", json={"items": items}).status_code == 422
    answer = client.post("/v1/verify:batch", json={"items": items[:-1]}).json()["items"]
    assert [item["item"] for item in answer] == list("abcdef")
    assert [item.get("reward", item.get("problem", {}).get("status")) for item in answer] == [
        1.0,
        404,
        422,
        0.0,
        422,
        -1.0,
    ]
    assert answer[4]["problem"]["errors"][0]["pointer"] == "/task/verifier/name"


def test_an_empty_batch_and_one_of_1025_are_refused(client: TestClient) -> None:
    for items in ([], [{"task": INLINE, "response": "1"}] * 1025):
        assert client.post("/v1/verify:batch", json={"items": items}).status_code == 422
    whole = client.post("/v1/verify:batch", json={"items": [{"task": INLINE, "response": str(n)} for n in range(1024)]})
    assert sum(item["reward"] for item in whole.json()["items"]) == 1.0


def test_a_bad_reference_has_no_reward(client: TestClient) -> None:
    """Law 1: the task's fault is not the answer's."""
    broken = {"verifier": {"name": "numeric"}, "reference": {"answer": ""}}
    verdict = client.post("/v1/verify", json={"task": broken, "response": "42"}).json()
    assert (verdict["outcome"], verdict["reward"]) == ("verifier_error", None)


def test_without_a_sandbox_code_is_void(settings: Settings, store: Store, backend: object) -> None:
    """Law 1: a sandbox that is not there is `sandbox_error` without a reward, never a wrong answer."""
    engine = Engine(None, 1)
    app = create_app(settings, store, engine, backend)  # type: ignore[arg-type]
    with store.writing() as db:
        token = issue_key(db, name="t", scopes=[str(Scope.VERIFY)], secret=settings.secret_bytes).token
    task = {
        "verifier": {"name": "code_stdio", "params": {"language": "python"}},
        "reference": {"tests": [{"stdin": "", "stdout": "1\n"}]},
    }
    with TestClient(app, headers={"Authorization": f"Bearer {token}"}) as client:
        verdict = client.post("/v1/verify", json={"task": task, "response": "```python\nprint(1)\n```"}).json()
    engine.close()
    assert (verdict["outcome"], verdict["reward"]) == ("sandbox_error", None)


def test_a_repeated_key_counts_once(client: TestClient) -> None:
    made = client.post("/v1/tasks", json=a_task()).json()
    body = {"items": [{"ref": made["ref"], "response": "42"}]}
    headers = {"Idempotency-Key": "once"}
    first = client.post("/v1/verify:batch", json=body, headers=headers)
    again = client.post("/v1/verify:batch", json=body, headers=headers)
    assert again.json() == first.json()
    assert again.headers["idempotency-replayed"] == "true"
    assert len(client.get(f"/v1/tasks/{made['id']}/attempts").json()["items"]) == 1
    other = client.post("/v1/verify:batch", json={"items": [{"ref": made["ref"], "response": "1"}]}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")


def test_verify_needs_its_scope(client_of: MakeClient) -> None:
    refused = client_of(Scope.TASKS_READ).post("/v1/verify", json={"task": INLINE, "response": "42"})
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")


def test_execute_reports_what_the_program_did(client: TestClient) -> None:
    answer = client.post("/v1/execute", json={"language": "python", "code": "print(input()*2)", "stdin": "ab\n"}).json()
    assert (answer["status"], answer["stdout"], answer["exit_code"]) == ("ok", "abab\n", 0)
    slow = client.post("/v1/execute", json={"language": "python", "code": "while 1: pass", "limits": {"wall_s": 0.3}})
    assert slow.json()["status"] in {"wall_limit", "cpu_limit"}
    files = {"language": "python", "code": "open('o.txt','w').write('x')", "fetch": ["o.txt"]}
    assert client.post("/v1/execute", json=files).json()["artefacts"][0]["content_base64"] == "eA=="
    unknown = client.post("/v1/execute", json={"language": "cobol", "code": ""})
    assert (unknown.status_code, unknown.json()["code"]) == (422, "unsupported_language")
    outside = client.post("/v1/execute", json={"language": "python", "code": "", "files": {"../x": ""}})
    assert outside.status_code == 422
