"""Streams are pinned to a snapshot that is whole, and named by its content."""

from collections.abc import Callable

import pytest
from sqlalchemy import select

from service.errors import Conflict
from service.store import snapshots
from service.store.session import Store
from service.store.snapshots import SnapshotRecord
from service.store.tables import SnapshotMember
from service.stream import creation, merkle
from service.stream.contract import StreamRequest
from service.stream.merkle import Leaf
from service.words import Split
from tests.service.stream.made import NOW, SECRET, make_stream, set_tasks

AddTasks = Callable[..., list[str]]


def members(store: Store, hash_: str) -> list[tuple[str, str]]:
    with store.reading() as db:
        query = select(SnapshotMember.domain, SnapshotMember.task_id).where(SnapshotMember.hash == hash_)
        return [(row[0], row[1]) for row in db.execute(query.order_by(SnapshotMember.position))]


def test_a_snapshot_holds_what_is_servable_of_the_domains_with_their_sub_domains(store: Store, tasks: AddTasks) -> None:
    ids = tasks({"math": 2, "math.add": 2, "math_x": 2, "math0": 1, "mat": 1, "code": 1})
    tasks({"math": 1}, Split.EVAL)
    set_tasks(store, ids[:1], status="quarantined")
    stream = make_stream(store, domains={"math": 1, "code": 1})
    found = members(store, stream.snapshot_hash)
    assert [domain for domain, _ in found] == ["code", "math", "math.add", "math.add"]
    assert {task_id for _, task_id in found} == {ids[1], ids[2], ids[3], ids[8]}
    with store.reading() as db:
        assert snapshots.get(db, stream.snapshot_hash).domains == {"code": [0, 1], "math": [1, 2], "math.add": [2, 4]}


def test_the_snapshot_is_named_by_the_merkle_root_of_its_members(store: Store, tasks: AddTasks) -> None:
    tasks({"a": 3, "b": 2})
    with store.reading() as db:
        found = snapshots.servable_tasks(db, Split.TRAIN, [])
    leaves = [Leaf(task.task_id, task.version, task.content_hash, "train") for task in found]
    first, second = make_stream(store), make_stream(store, domains={"b": 1, "a": 3})
    assert first.snapshot_hash == second.snapshot_hash == merkle.root(SECRET, leaves)
    assert first.snapshot_count == 5


def test_a_half_written_snapshot_is_finished_before_it_is_used(store: Store, tasks: AddTasks) -> None:
    """The process that began it was killed."""
    tasks({"a": 5})
    with store.reading() as db:
        found = snapshots.servable_tasks(db, Split.TRAIN, [])
    name = merkle.root(SECRET, [Leaf(task.task_id, task.version, task.content_hash, "train") for task in found])
    with store.writing() as db:
        snapshots.begin(db, SnapshotRecord(name, 5, {"a": [0, 5]}), {}, NOW)
        snapshots.add_members(db, name, 0, found[:2])
        assert not snapshots.exists(db, name)
    stream = make_stream(store)
    assert stream.snapshot_hash == name
    assert len(members(store, name)) == 5


def test_another_request_of_the_same_name_is_a_conflict_that_names_the_difference(store: Store) -> None:
    make_stream(store, name="one", seed=1)
    request = StreamRequest.model_validate({"name": "one", "group_size": 4, "seed": 2, "max_lag": 3})
    with pytest.raises(Conflict, match="max_lag") as caught:
        creation.make(store, request, secret=SECRET, actor="test")
    assert "seed" in caught.value.detail
