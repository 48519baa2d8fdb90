"""The signal policy: where the weight goes, what is left alone, what explores."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from sqlalchemy import select, update

from service.store.session import Store
from service.store.tables import Difficulty, Task
from service.stream import evidence
from service.stream.evidence import Evidence, Sample
from service.words import ShortReason
from tests.service.stream.made import NOW, make_stream, reload
from tests.service.stream.test_lease import complete, lease

AddTasks = Callable[..., list[str]]


def show(store: Store, lineage: str, wins: Mapping[str, int], n: int = 8) -> None:
    with store.writing() as db:
        items = [Evidence(task_id, 1, [Sample(float(i < won), 0) for i in range(n)]) for task_id, won in wins.items()]
        evidence.apply(db, lineage, items, 0, NOW)


def test_tasks_that_teach_are_preferred(store: Store, tasks: AddTasks) -> None:
    ids = tasks({"a": 300})
    stream = make_stream(store, domains={"a": 1}, policy={"kind": "signal", "lineage": "p"}, group_size=8)
    show(store, "p", dict.fromkeys(ids[:100], 0) | dict.fromkeys(ids[100:200], 4) | dict.fromkeys(ids[200:], 8))
    items = lease(store, stream, 60).items
    assert len({item.task_id for item in items}) == 60
    teaching = sum(item.task_id in ids[100:200] for item in items)
    assert teaching >= 36
    assert {item.why["arm"] for item in items} == {"weight", "uniform"}
    assert all(item.p == pytest.approx(0.5) for item in items if item.task_id in ids[100:200])


def test_unseen_tasks_are_explored_and_predicted_by_their_kin(store: Store, tasks: AddTasks) -> None:
    ids = tasks({"a.easy": 100, "a.hard": 100})
    stream = make_stream(store, domains={"a": 1}, policy={"kind": "signal", "lineage": "p"})
    show(store, "p", dict.fromkeys(ids[:40], 7) | dict.fromkeys(ids[100:140], 1))
    items = lease(store, stream, 80).items
    unseen = [item for item in items if item.task_id not in {*ids[:40], *ids[100:140]}]
    assert len(unseen) >= 8
    assert all(item.p > 0.6 for item in unseen if item.domain == "a.easy")
    assert all(item.p < 0.4 for item in unseen if item.domain == "a.hard")


def test_what_is_held_or_was_served_lately_is_left_alone_while_there_is_other(store: Store, tasks: AddTasks) -> None:
    ids = tasks({"a": 60})
    stream = make_stream(store, domains={"a": 1}, policy={"kind": "signal", "lineage": "p"})
    show(store, "p", dict.fromkeys(ids, 4))
    seen: Counter[str] = Counter()
    for _ in range(5):
        leased = lease(store, stream, 10)
        seen.update(item.task_id for item in leased.items)
        complete(store, leased, [item.ordinal for item in leased.items], rewards=[1.0, 0.0])
    assert max(seen.values()) == 1
    assert reload(store, stream).draws == 5


def test_a_small_pool_relaxes_by_name_before_it_runs_short(store: Store, tasks: AddTasks) -> None:
    tasks({"a": 6})
    stream = make_stream(store, domains={"a": 1}, policy={"kind": "signal"})
    reasons = []
    for _ in range(3):
        leased = lease(store, stream, 4)
        assert len(leased.items) == 4
        assert leased.reason == ShortReason.TARGET_MET
        reasons += [item.why.get("relaxed") for item in leased.items]
    assert reasons[:6] == [None] * 6
    assert set(reasons[6:]) == {"held"}


def test_a_stream_of_hopeless_tasks_still_serves(store: Store, tasks: AddTasks) -> None:
    ids = tasks({"a": 30})
    stream = make_stream(store, domains={"a": 1}, policy={"kind": "signal", "lineage": "p"})
    show(store, "p", dict.fromkeys(ids, 0), n=200)
    assert len(lease(store, stream, 30).items) == 30
    with store.writing() as db:
        db.execute(update(Task).values(status="retired"))
    assert lease(store, replace(stream), 5).items == ()


def test_evidence_of_other_lineages_and_domains_is_not_used(store: Store, tasks: AddTasks) -> None:
    ids = tasks({"a": 20, "a_b": 20})
    show(store, "other", dict.fromkeys(ids, 0))
    show(store, "p", dict.fromkeys(ids[20:], 0))
    stream = make_stream(store, domains={"a": 1}, policy={"kind": "signal", "lineage": "p"})
    items = lease(store, stream, 20).items
    assert {item.task_id for item in items} == set(ids[:20])
    assert all(item.p == 0.5 for item in items)
    with store.reading() as db:
        assert {row.lineage for row in db.scalars(select(Difficulty))} == {"other", "p"}


def test_quotas_hold_over_many_leases(store: Store, tasks: AddTasks) -> None:
    tasks({"a": 40, "b": 40, "c": 40})
    stream = make_stream(store, domains={"a": 5, "b": {"weight": 2}, "c": 1}, policy={"kind": "signal"})
    served: Counter[str] = Counter()
    for _ in range(20):
        leased = lease(store, stream, 7)
        served.update(item.domain for item in leased.items)
        done = sum(served.values())
        assert all(abs(served[name] - done * weight / 8) < 1 for name, weight in {"a": 5, "b": 2, "c": 1}.items())
        complete(store, leased, [item.ordinal for item in leased.items], rewards=[1.0, 0.0])
