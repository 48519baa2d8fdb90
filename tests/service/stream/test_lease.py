"""The stream contract on both databases: order, expiry, acknowledgement, fencing."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest

from service.errors import CompletionConflict, Conflict, LeaseExpired, LeaseSuperseded, NotFound, StaleConsumer
from service.store import ordinals
from service.store.session import Store
from service.store.streams import StreamRecord
from service.stream import completion, leasing, restoring
from service.stream.completion import Completion
from service.stream.serving import Ask, Leased
from service.words import OrdinalState, ShortReason
from tests.service.stream.made import NOW, make_stream, reload, set_tasks

SECRET = b"a secret of this test"
LATER = NOW + timedelta(hours=7)
AddTasks = Callable[..., list[str]]


def lease(store: Store, stream: StreamRecord, n: int, *, version: int = 0, consumer: str = "a", now=NOW) -> Leased:  # type: ignore[no-untyped-def]
    with store.writing() as db:
        return leasing.lease(db, stream.id, Ask(n, version, consumer), actor="test", now=now)


def complete(store: Store, leased: Leased, numbers: list[int], body: str = "x", now=NOW, **values):  # type: ignore[no-untyped-def]
    assert leased.lease is not None
    items = [Completion(number, body, **values) for number in numbers]
    with store.writing() as db:
        done = completion.complete(db, leased.lease.id, items, actor="test", now=now)
    if done.problem:
        raise done.problem
    return done.items


def numbers(leased: Leased) -> list[int]:
    return [item.ordinal for item in leased.items]


def states(store: Store, stream: StreamRecord) -> dict[int, str]:
    with store.reading() as db:
        return {row.ordinal: row.state for row in ordinals.page(db, stream.id, None, -1, 10_000)}


def token(store: Store, stream: StreamRecord) -> str:
    with store.reading() as db:
        return restoring.checkpoint(db, stream.id, SECRET)


def restore(store: Store, stream: StreamRecord, text: str, consumer: str = "a") -> int:
    with store.writing() as db:
        return restoring.restore(db, stream.id, text, consumer=consumer, secret=SECRET, actor="test", now=NOW)


def test_ordinals_are_dense_and_each_task_comes_once_in_a_pass(store: Store, tasks: AddTasks) -> None:
    ids = tasks({"math.add": 7, "math.sub": 5})
    stream = make_stream(store, domains={"math": 1})
    got = [lease(store, stream, n).items for n in (5, 4, 3)]
    flat = [item for part in got for item in part]
    assert [item.ordinal for item in flat] == list(range(12))
    assert sorted(item.task_id for item in flat) == sorted(ids)
    assert sorted(item.task_id for item in lease(store, stream, 12).items) == sorted(ids)


def test_the_order_of_uniform_is_a_function_of_seed_and_snapshot(store: Store, tasks: AddTasks) -> None:
    tasks({"a": 20, "b": 30})
    body = {"domains": {"a": 1, "b": 2}, "seed": 5}
    orders = []
    for sizes in ((40,), (1,) * 40, (7, 13, 20)):
        stream = make_stream(store, **body)
        orders.append([item.task_id for n in sizes for item in lease(store, stream, n).items])
    other = make_stream(store, **(body | {"seed": 6}))
    assert orders[0] == orders[1] == orders[2]
    assert [item.task_id for item in lease(store, other, 40).items] != orders[0]
    assert Counter(item.domain for item in lease(store, other, 30).items) == {"a": 10, "b": 20}


def test_a_lease_of_more_than_there_is_is_short_and_says_why(store: Store, tasks: AddTasks) -> None:
    """P2: never raise."""
    tasks({"a": 3})
    leased = lease(store, make_stream(store, domains={"a": 1}), 50)
    assert len(leased.items) == 3
    assert (leased.short, leased.reason) == (True, ShortReason.NO_SERVABLE_TASK)
    empty = lease(store, make_stream(store, domains={"none": 1}), 5)
    assert (empty.lease, empty.short, empty.reason) == (None, True, ShortReason.NO_SERVABLE_TASK)
    assert empty.retry_after_s


@pytest.mark.parametrize("kind", ["uniform", "signal"])
def test_a_domain_without_tasks_lends_its_turns(store: Store, tasks: AddTasks, kind: str) -> None:
    tasks({"a": 30})
    stream = make_stream(store, domains={"a": 1, "b": 3}, policy={"kind": kind})
    leased = lease(store, stream, 20)
    assert len(leased.items) == 20
    assert (leased.short, leased.reason) == (False, ShortReason.QUOTA)


@pytest.mark.parametrize("kind", ["uniform", "signal"])
@pytest.mark.parametrize(
    "change",
    [{"status": "quarantined"}, {"receipts_key": "old"}, {"receipts_key": None}, {"split": "holdout"}, {"version": 2}],
)
def test_only_servable_tasks_are_drawn(store: Store, tasks: AddTasks, kind: str, change: dict[str, object]) -> None:
    ids = tasks({"a": 12})
    stream = make_stream(store, domains={"a": 1}, policy={"kind": kind})
    set_tasks(store, ids[:5], **change)
    assert {item.task_id for item in lease(store, stream, 7).items} == set(ids[5:])


def test_what_expired_is_served_first_in_its_order_with_the_same_ordinals(store: Store, tasks: AddTasks) -> None:
    tasks({"a": 40})
    stream = make_stream(store, domains={"a": 1})
    first, second = lease(store, stream, 6), lease(store, stream, 6, consumer="b")
    complete(store, first, [1, 4])
    third = lease(store, stream, 12, now=LATER, consumer="c")
    assert numbers(third) == [0, 2, 3, 5, *range(6, 14)]
    by_number = {item.ordinal: item for item in (*first.items, *second.items)}
    for item in third.items[:10]:
        assert (item.task_id, item.tries) == (by_number[item.ordinal].task_id, 2)
        assert item.group_id != by_number[item.ordinal].group_id
    with pytest.raises(LeaseExpired):
        complete(store, second, [6])
    assert first.lease
    with pytest.raises(LeaseExpired), store.writing() as db:
        leasing.extend(db, first.lease.id, LATER)


def test_an_extended_lease_does_not_expire(store: Store, tasks: AddTasks) -> None:
    tasks({"a": 10})
    stream = make_stream(store, domains={"a": 1})
    leased = lease(store, stream, 3)
    assert leased.lease
    with store.writing() as db:
        until = leasing.extend(db, leased.lease.id, NOW + timedelta(seconds=leased.lease.ttl_s - 1))
    assert until > leased.lease.expires_at
    assert numbers(lease(store, stream, 2, now=until - timedelta(seconds=1))) == [3, 4]
    assert [item.status for item in complete(store, leased, [0, 1, 2], now=until - timedelta(seconds=1))] == [
        "completed"
    ] * 3


def test_completing_again_changes_nothing_and_another_body_is_a_conflict(store: Store, tasks: AddTasks) -> None:
    tasks({"a": 10})
    stream = make_stream(store, domains={"a": 1})
    leased = lease(store, stream, 3)
    assert [item.status for item in complete(store, leased, [0, 1])] == ["completed", "completed"]
    again = complete(store, leased, [0, 2, 0, 77])
    assert [item.status for item in again] == ["already", "completed", "already", "problem"]
    assert isinstance(again[3].problem, Conflict)
    other = complete(store, leased, [1], body="y")
    assert isinstance(other[0].problem, CompletionConflict)
    assert [item.status for item in complete(store, leased, [0, 1, 2], now=LATER)] == ["already"] * 3  # a lost answer


def test_released_groups_come_back_and_too_few_valid_ones_are_withdrawn_after_three_tries(
    store: Store, tasks: AddTasks
) -> None:
    tasks({"a": 10})
    stream = make_stream(store, domains={"a": 1})
    for number in range(3):
        leased = lease(store, stream, 2)
        assert leased.lease
        with store.writing() as db:
            done = leasing.release(db, leased.lease.id, [0, 9], "too_few_valid", actor="test", now=NOW)
        assert [item.state for item in done] == [OrdinalState.OPEN if number < 2 else OrdinalState.WITHDRAWN, None]
        with store.writing() as db:
            leasing.release(db, leased.lease.id, None, "preempted", actor="test", now=NOW)
    assert numbers(lease(store, stream, 2)) == [1, 2]
    assert states(store, stream)[0] == "withdrawn"


def test_a_waiting_group_whose_task_left_is_withdrawn_with_a_reason(store: Store, tasks: AddTasks) -> None:
    tasks({"a": 10})
    stream = make_stream(store, domains={"a": 1})
    leased = lease(store, stream, 3)
    set_tasks(store, [leased.items[1].task_id], status="quarantined")
    assert numbers(lease(store, stream, 3, now=LATER)) == [0, 2, 3]
    with store.reading() as db:
        (gone,) = ordinals.page(db, stream.id, OrdinalState.WITHDRAWN, -1, 10)
    assert (gone.ordinal, gone.reason) == (1, "task_quarantined")


def test_leases_wait_while_versions_would_be_too_far_apart(store: Store, tasks: AddTasks) -> None:
    """P7: admission instead of discarding what was slow."""
    tasks({"a": 40})
    stream = make_stream(store, domains={"a": 1}, max_lag=2)
    slow = lease(store, stream, 2, version=10)
    assert numbers(lease(store, stream, 2, version=12)) == [2, 3]
    refused = lease(store, stream, 2, version=13)
    assert (refused.items, refused.short, refused.reason) == ((), True, ShortReason.MAX_LAG)
    assert refused.retry_after_s
    assert lease(store, stream, 2, version=9).reason == ShortReason.MAX_LAG
    complete(store, slow, [0, 1])
    assert numbers(lease(store, stream, 2, version=13)) == [4, 5]


def test_a_restored_checkpoint_is_the_completed_set(store: Store, tasks: AddTasks) -> None:
    """P5: what came after is served again, first and in its order; nothing before is."""
    tasks({"a": 40})
    stream = make_stream(store, domains={"a": 1})
    first = lease(store, stream, 8)
    complete(store, first, [0, 1, 2, 5])
    saved = token(store, stream)
    complete(store, first, [3, 6])
    second = lease(store, stream, 4, version=8)
    assert restore(store, stream, saved, "b") == 8
    assert reload(store, stream).generation == 1
    for leased, number in ((first, 4), (second, 9), (first, 3)):
        with pytest.raises(LeaseSuperseded):
            complete(store, leased, [number])
    with pytest.raises(StaleConsumer):
        lease(store, stream, 1)
    # the versions of the lost future hold nobody back
    assert numbers(lease(store, stream, 10, version=1, consumer="b")) == [3, 4, 6, 7, 8, 9, 10, 11, 12, 13]
    assert restore(store, stream, saved, "a") == 10
    assert numbers(lease(store, stream, 3)) == [3, 4, 6]


def test_a_checkpoint_knows_better_than_a_store_that_lost_the_last_commits(store: Store, tasks: AddTasks) -> None:
    tasks({"a": 10})
    stream = make_stream(store, domains={"a": 1})
    leased = lease(store, stream, 4)
    early = token(store, stream)
    complete(store, leased, [0, 1, 3])
    late = token(store, stream)
    restore(store, stream, early)
    assert restore(store, stream, late) == 1
    assert states(store, stream) == {0: "completed", 1: "completed", 2: "open", 3: "completed"}


def test_tokens_of_other_streams_and_snapshots_are_refused(store: Store, tasks: AddTasks) -> None:
    """P6."""
    tasks({"a": 5})
    stream, twin = make_stream(store, domains={"a": 1}), make_stream(store, domains={"a": 1})
    assert stream.snapshot_hash == twin.snapshot_hash
    tasks({"a": 1})
    other = make_stream(store, domains={"a": 1})
    with pytest.raises(Conflict) as caught:
        restore(store, stream, token(store, other))
    assert caught.value.code == "snapshot_mismatch"
    assert {caught.value.extra["token_snapshot"], caught.value.extra["stream_snapshot"]} == {
        other.snapshot_hash,
        stream.snapshot_hash,
    }
    with pytest.raises(Conflict, match="of stream"):
        restore(store, stream, token(store, twin))


def test_new_tasks_do_not_join_a_stream(store: Store, tasks: AddTasks) -> None:
    ids = tasks({"a": 5})
    stream = make_stream(store, domains={"a": 1})
    tasks({"a": 5})
    assert {item.task_id for _ in range(4) for item in lease(store, stream, 5).items} == set(ids)


def test_an_unknown_stream_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound), store.writing() as db:
        leasing.lease(db, "str_x", Ask(1, 0, "a"), actor="test", now=NOW)
