"""What each route needs, as a table, and what a key without it is told."""

import pytest
from fastapi import FastAPI

from service.words import Scope
from tests.service.conftest import MakeClient

TASK, VERDICT, KEY = "task_" + "0" * 32, "ver_" + "0" * 32, "key_" + "0" * 32
REASON = {"reason": "a test"}
ROUTES = [
    ("POST", "/v1/tasks", Scope.TASKS_WRITE, {}),
    ("POST", "/v1/tasks:import", Scope.TASKS_WRITE, {}),
    ("GET", "/v1/tasks", Scope.TASKS_READ, None),
    ("GET", f"/v1/tasks/{TASK}", Scope.TASKS_READ, None),
    ("GET", f"/v1/tasks/{TASK}/lineage", Scope.TASKS_READ, None),
    ("GET", f"/v1/tasks/{TASK}/receipts", Scope.TASKS_READ, None),
    ("GET", f"/v1/tasks/{TASK}/attempts", Scope.TASKS_READ, None),
    ("GET", f"/v1/tasks/{TASK}/events", Scope.TASKS_READ, None),
    ("PATCH", f"/v1/tasks/{TASK}", Scope.CURATE, {"tags": []}),
    ("POST", f"/v1/tasks/{TASK}:activate", Scope.CURATE, REASON),
    ("POST", f"/v1/tasks/{TASK}:quarantine", Scope.CURATE, REASON),
    ("POST", f"/v1/tasks/{TASK}:retire", Scope.CURATE, REASON),
    ("POST", f"/v1/tasks/{TASK}:reject", Scope.CURATE, REASON),
    ("POST", "/v1/verify", Scope.VERIFY, {}),
    ("POST", "/v1/verify:batch", Scope.VERIFY, {}),
    ("POST", f"/v1/verdicts/{VERDICT}:replay", Scope.VERIFY, {}),
    ("GET", f"/v1/verdicts/{VERDICT}", Scope.TASKS_READ, None),
    ("GET", "/v1/verifiers", Scope.TASKS_READ, None),
    ("POST", "/v1/execute", Scope.EXECUTE, {}),
    ("POST", "/v1/keys", Scope.ADMIN, {}),
    ("GET", "/v1/keys", Scope.ADMIN, None),
    ("DELETE", f"/v1/keys/{KEY}", Scope.ADMIN, None),
]


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_each_route_needs_its_scope_and_no_other(client_of: MakeClient) -> None:
    holders = {scope: client_of(scope) for scope in Scope}
    others = {scope: client_of(*(other for other in Scope if other not in {scope, Scope.ADMIN})) for scope in Scope}
    for method, path, scope, body in ROUTES:
        if scope is not Scope.ADMIN:
            refused = others[scope].request(method, path, json=body)
            assert (refused.status_code, refused.json()["code"]) == (403, "forbidden"), (method, path)
            assert scope in refused.json()["detail"]
        for who in (holders[scope], holders[Scope.ADMIN]):
            answer = who.request(method, path, json=body)
            assert answer.status_code not in {401, 403, 500}, (method, path, answer.text)


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_the_table_names_every_route_of_its_resources(app: FastAPI) -> None:
    mine = ("/v1/tasks", "/v1/verify", "/v1/verdicts", "/v1/verifiers", "/v1/execute", "/v1/keys")
    known = {
        (method, path.replace(TASK, "{task_id}").replace(VERDICT, "{verdict_id}").replace(KEY, "{key_id}"))
        for method, path, _, _ in ROUTES
    }
    found = {
        (method.upper(), path)
        for path, item in app.openapi()["paths"].items()
        for method in item
        if path.startswith(mine)
    }
    assert known == found
