"""The job routes."""

from fastapi.testclient import TestClient

from service.store import jobs
from service.store.session import Store
from service.words import Scope
from tests.service.conftest import MakeClient

GENERATE = {"kind": "factory.generate", "params": {"generator": "math.add", "accepted": 5}}


def test_a_job_is_filed_and_found(client: TestClient) -> None:
    made = client.post("/v1/jobs", json=GENERATE)
    assert made.status_code == 202
    assert made.headers["Location"] == f"/v1/jobs/{made.json()['id']}"
    job = client.get(made.headers["Location"]).json()
    assert job == made.json()
    assert (job["status"], job["params"], job["progress"], job["counts"]) == ("queued", GENERATE["params"], 0.0, {})
    assert job["queue"] == "hint.sandbox"


def test_an_unknown_kind_is_refused_and_names_the_field(client: TestClient) -> None:
    refused = client.post("/v1/jobs", json={"kind": "factory.gold", "params": {}})
    assert refused.status_code == 422
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/kind"]
    assert client.get("/v1/jobs").json()["items"] == []


def test_the_same_key_files_one_job(client: TestClient) -> None:
    answers = [client.post("/v1/jobs", json=GENERATE, headers={"Idempotency-Key": "k"}) for _ in range(3)]
    assert {answer.json()["id"] for answer in answers} == {answers[0].json()["id"]}
    assert answers[2].headers["Idempotency-Replayed"] == "true"
    assert len(client.get("/v1/jobs").json()["items"]) == 1


def test_lists_are_paged_and_filtered(client: TestClient) -> None:
    filed = [client.post("/v1/jobs", json=GENERATE).json()["id"] for _ in range(5)]
    client.post(f"/v1/jobs/{filed[0]}:cancel")
    seen: list[str] = []
    cursor = None
    while True:
        page = client.get("/v1/jobs", params={"limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        seen += [job["id"] for job in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == filed[::-1]
    assert [job["id"] for job in client.get("/v1/jobs?status=cancelled").json()["items"]] == [filed[0]]
    assert client.get("/v1/jobs?kind=factory.gate").json()["items"] == []
    assert client.get("/v1/jobs?status=asleep").status_code == 422
    first = client.get("/v1/jobs", params={"limit": 1}).json()["next"]
    assert client.get("/v1/jobs", params={"cursor": first, "status": "queued"}).json()["code"] == "bad_cursor"


def test_cancelling_answers_202_and_twice_changes_nothing(client: TestClient) -> None:
    job = client.post("/v1/jobs", json=GENERATE).json()["id"]
    for _ in range(2):
        answer = client.post(f"/v1/jobs/{job}:cancel")
        assert (answer.status_code, answer.json()["status"]) == (202, "cancelled")


def test_errors_are_shown_with_code_and_detail(client: TestClient, store: Store) -> None:
    job = client.post("/v1/jobs", json=GENERATE).json()["id"]
    with store.writing() as db:
        claim = jobs.claim(db, job, worker="w", lease_s=60)
        assert claim
        jobs.fail(db, job, claim.token, code="bad_knobs", detail="digits: 0")
    found = client.get(f"/v1/jobs/{job}").json()
    assert (found["status"], found["error"]) == ("failed", {"code": "bad_knobs", "detail": "digits: 0"})
    assert found["finished_at"]


def test_there_is_no_such_job(client: TestClient) -> None:
    unknown = "job_" + "0" * 32
    assert client.get(f"/v1/jobs/{unknown}").status_code == 404
    assert client.post(f"/v1/jobs/{unknown}:cancel").status_code == 404
    assert client.post(f"/v1/jobs/{unknown}:explode").status_code in {404, 405}


def test_scopes(client_of: MakeClient) -> None:
    """Reading needs `tasks:read`; filing and cancelling need `curate`."""
    reader, trainer = client_of(Scope.TASKS_READ), client_of(Scope.TRAIN)
    assert reader.get("/v1/jobs").status_code == 200
    assert reader.post("/v1/jobs", json=GENERATE).status_code == 403
    assert trainer.get("/v1/jobs").status_code == 403
    job = client_of(Scope.CURATE).post("/v1/jobs", json=GENERATE).json()["id"]
    assert reader.post(f"/v1/jobs/{job}:cancel").status_code == 403
