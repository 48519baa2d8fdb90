"""The statistics record against a store whose contents are known."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.store.session import Store
from service.words import Scope, Split
from tests.service.conftest import MakeClient
from tests.service.stream.made import add_tasks, make_stream, set_tasks
from tests.service.stream.test_lease import complete, lease
from tests.service.stream.test_observe import answer


def numbers(value: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        if "value" in value:
            yield path, value
        else:
            for name, item in value.items():
                yield from numbers(item, f"{path}/{name}")


@pytest.fixture
def filled(store: Store) -> Callable[[], None]:
    ids = add_tasks(store, {"a.x": 4, "b": 3})
    sealed = add_tasks(store, {"secret": 2}, Split.HOLDOUT)
    set_tasks(store, ids[:1], status="quarantined")
    stream = make_stream(store, name="s")
    leased = lease(store, stream, 3)
    first = leased.items[0]
    verdicts = answer(store, first.task_id, [1.0, 0.0, None, 1.0], group_id=first.group_id)
    answer(store, sealed[0], [1.0])
    complete(store, leased, [0], verdict_ids=verdicts)
    complete(store, leased, [1], rewards=[0.0, 0.0])
    return lambda: None


def test_every_number_says_how_it_was_had(client: TestClient, filled: object) -> None:
    """Law 9."""
    record = client.get("/v1/stats").json()
    assert record["record"] == "taskmill.stats/1"
    assert record["as_of"].endswith("+00:00")
    found = dict(numbers(record))
    assert len(found) > 30
    for path, number in found.items():
        assert number["method"] in {"exact", "interval"}, path
        assert number["value"] is not None or number["reason"], path
    for facet in ("tasks", "flow", "attempts", "signal", "difficulty", "jobs"):
        assert record[facet]["as_of"] == record["as_of"]
        assert record[facet]["scope"]["data"] == "live"


def test_counts_are_those_of_the_store(client_of: MakeClient, filled: object) -> None:
    record = client_of(Scope.ANALYSE).get("/v1/stats").json()
    tasks = record["tasks"]
    assert {name: count["value"] for name, count in tasks["by_status"].items()} == {
        "active": 6, "pending": 0, "quarantined": 1, "rejected": 0, "retired": 0,
    }  # fmt: skip
    assert tasks["total"]["value"] == 7
    assert {name: count["value"] for name, count in tasks["by_domain"].items()} == {"a.x": 4, "b": 3}
    assert tasks["sealed"]["holdout"]["value"] == 2
    attempts = record["attempts"]
    assert {name: count["value"] for name, count in attempts["by_outcome"].items()} == {
        "verified": 2, "failed": 1, "sandbox_error": 1,
    }  # fmt: skip
    assert (attempts["valid"]["value"], attempts["invalid"]["value"]) == (3, 1)
    assert attempts["pass_rate"]["value"] == pytest.approx(2 / 3)
    assert attempts["pass_rate"]["error"]["kind"] == "wilson95"
    assert attempts["infra_error_rate"]["value"] == pytest.approx(1 / 4)
    signal = record["signal"]
    assert (signal["groups"]["value"], signal["zero_variance_share"]["value"]) == (2, 0.5)
    stream = signal["streams"]["s"]
    assert {name: count["value"] for name, count in stream["ordinals"].items()} == {
        "leased": 1, "open": 0, "completed": 2, "withdrawn": 0,
    }  # fmt: skip
    assert stream["coverage"]["value"] == pytest.approx(3 / 6)
    assert (
        sum(
            record["difficulty"]["by_lineage"]["s"][d]["tasks"]["value"]
            for d in record["difficulty"]["by_lineage"]["s"]
        )
        == 2
    )


def test_holdout_is_counted_only_for_those_who_may_know(client_of: MakeClient, filled: object) -> None:
    without = client_of(Scope.ANALYSE).get("/v1/stats")
    assert "secret" not in without.text
    with_scope = client_of(Scope.ANALYSE, Scope.HOLDOUT_READ).get("/v1/stats").json()
    assert with_scope["tasks"]["by_domain"]["secret"]["value"] == 2
    assert with_scope["attempts"]["total"]["value"] == without.json()["attempts"]["total"]["value"] + 1


def test_of_nothing_a_share_is_unknown_and_never_nought(client: TestClient) -> None:
    record = client.get("/v1/stats").json()
    assert record["attempts"]["pass_rate"]["value"] is None
    assert record["attempts"]["pass_rate"]["reason"]
    assert record["signal"]["zero_variance_share"]["value"] is None
    assert record["tasks"]["by_status"]["active"]["value"] == 0


def test_one_facet(client: TestClient, client_of: MakeClient) -> None:
    found = client.get("/v1/stats/tasks").json()
    assert "tasks" in found
    assert "jobs" not in found
    assert client.get("/v1/stats/nonsense").status_code == 404
    assert client_of(Scope.TRAIN).get("/v1/stats").status_code == 403


def test_an_unchanged_record_is_not_sent_again(client_of: MakeClient, filled: object, store: Store) -> None:
    analyst, insider = client_of(Scope.ANALYSE), client_of(Scope.ANALYSE, Scope.HOLDOUT_READ)
    etag = analyst.get("/v1/stats").headers["ETag"]
    assert analyst.get("/v1/stats", headers={"If-None-Match": etag}).status_code == 304
    assert insider.get("/v1/stats", headers={"If-None-Match": etag}).status_code == 200
    add_tasks(store, {"new": 1})
    assert analyst.get("/v1/stats", headers={"If-None-Match": etag}).status_code == 200
