"""Runs and their curves over HTTP."""

from fastapi.testclient import TestClient

from service.store.ids import new_id
from service.words import Scope
from tests.service.conftest import MakeClient

RUN = {"name": "first", "kind": "train", "policy": "tiny", "config": {"lr": 0.001}}


def test_a_run_is_created_reported_and_ended(client: TestClient) -> None:
    made = client.post("/v1/runs", json=RUN)
    assert made.status_code == 201, made.text
    run = made.json()
    assert made.headers["Location"] == f"/v1/runs/{run['id']}"
    assert (run["status"], run["last_step"], run["finished_at"], run["config"]) == (
        "running",
        None,
        None,
        {"lr": 0.001},
    )
    url = f"/v1/runs/{run['id']}/metrics"
    points = [{"step": step, "name": name, "value": step / 2} for step in range(3) for name in ("reward", "loss")]
    assert client.post(url, json={"points": points}).json()["last_step"] == 2
    client.post(
        url, json={"points": [{"step": 1, "name": "loss", "value": 9}, {"step": 1, "name": "loss", "value": 8}]}
    )
    loss = client.get(url, params={"name": "loss"}).json()["items"]
    assert [(point["step"], point["value"]) for point in loss] == [(0, 0), (1, 8), (2, 1)]
    assert len(client.get(url).json()["items"]) == 6
    done = client.post(url, json={"points": [], "status": "done", "summary": {"pass": 0.5}}).json()
    assert (done["status"], done["summary"]) == ("done", {"pass": 0.5})
    assert done["finished_at"] is not None
    assert client.get(f"/v1/runs/{run['id']}").json() == done
    assert client.get("/v1/runs").json()["items"] == [done]


def test_points_are_paged(client: TestClient) -> None:
    run = client.post("/v1/runs", json=RUN).json()
    url = f"/v1/runs/{run['id']}/metrics"
    client.post(url, json={"points": [{"step": step, "name": name, "value": 1} for step in range(5) for name in "ab"]})
    got, cursor = [], None
    while True:
        page = client.get(url, params={"limit": 3} | ({"cursor": cursor} if cursor else {})).json()
        got += [(point["name"], point["step"]) for point in page["items"]]
        if (cursor := page["next"]) is None:
            break
    assert got == [(name, step) for name in "ab" for step in range(5)]


def test_wrong_runs_and_points_are_refused(client: TestClient) -> None:
    assert client.post("/v1/runs", json=RUN | {"kind": "play"}).status_code == 422
    answer = client.post("/v1/runs", json=RUN | {"stream_id": new_id("str")})
    assert answer.json()["errors"][0]["pointer"] == "/stream_id"
    run = client.post("/v1/runs", json=RUN).json()
    url = f"/v1/runs/{run['id']}/metrics"
    headers = {"Content-Type": "application/json"}
    bad = client.post(url, content='{"points": [{"step": 1, "name": "x", "value": NaN}]}', headers=headers)
    assert bad.status_code in {400, 422}
    assert client.post(url, json={"points": [{"step": -1, "name": "x", "value": 1}]}).status_code == 422
    assert client.post(f"/v1/runs/{new_id('run')}/metrics", json={"points": []}).status_code == 404


def test_runs_need_the_scope_to_train(client_of: MakeClient) -> None:
    assert client_of(Scope.VERIFY).post("/v1/runs", json=RUN).status_code == 403
