"""Evidence: each verdict once, train only, each lineage by itself; groups that acknowledge themselves."""

from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from service.store import difficulty, ordinals, runs
from service.store.attempts import About, Judgeable, record
from service.store.difficulty import DifficultyRecord
from service.store.session import Store
from service.store.streams import StreamRecord
from service.store.tables import Difficulty, OrdinalRow, Task, VerdictRow
from service.stream import observe
from service.words import Split
from tests.service.stream.made import NOW, make_stream, set_tasks
from tests.service.stream.test_lease import complete, lease, numbers, states
from verifiers.contract import Cost, Outcome, Verdict

AddTasks = Callable[..., list[str]]


def verdict(reward: float | None) -> Verdict:
    outcome = Outcome.SANDBOX_ERROR if reward is None else Outcome.VERIFIED if reward == 1 else Outcome.FAILED
    return Verdict(
        outcome=outcome,
        reward=reward,
        process=None,
        code="ok",
        detail="",
        extracted=None,
        normal_form=None,
        tier=None,
        trust=None,
        evidence={},
        verifier="exact",
        verifier_version="1",
        fingerprint="f" * 64,
        image=None,
        seed=0,
        cost=Cost(0, 0, 0),
    )


def answer(  # type: ignore[no-untyped-def]
    store: Store, task_id: str, rewards: Sequence[float | None], version: int = 1, **about
) -> list[str]:
    """Record attempts with these rewards, as the verify route does."""
    with store.writing() as db:
        task = Judgeable(task_id, version, Split.TRAIN, {}, {}, {}, {})
        made = record(db, [(About(task, None, "x", **about), verdict(reward)) for reward in rewards], actor="test")
        ids = [row.verdict.id for row in made]
        observe.observe(db, ids, NOW)
    return ids


def known(store: Store, lineage: str) -> dict[str, DifficultyRecord]:
    with store.reading() as db:
        ids = db.scalars(select(Task.id)).all()
        return difficulty.some(db, lineage, ids)


def test_verdicts_of_a_group_move_the_lineage_of_its_stream_once(store: Store, tasks: AddTasks) -> None:
    tasks({"a": 4})
    stream = make_stream(store, domains={"a": 1}, policy={"lineage": "tiny"})
    (item,) = lease(store, stream, 1).items
    ids = answer(store, item.task_id, [1.0, 0.0, None, 1.0], group_id=item.group_id, policy="other", policy_version=0)
    with store.writing() as db:
        observe.observe(db, ids, NOW)
    found = known(store, "tiny")[item.task_id]
    assert (found.alpha, found.beta, found.rollouts, found.visits) == (3, 2, 3, 0)
    assert known(store, "other") == {}
    with store.reading() as db:
        observed = db.scalars(select(VerdictRow.id).where(VerdictRow.observed)).all()
    assert set(observed) == {ids[0], ids[1], ids[3]}


def test_completing_with_the_verdicts_counts_the_group_and_no_verdict_again(store: Store, tasks: AddTasks) -> None:
    tasks({"a": 4})
    stream = make_stream(store, domains={"a": 1})
    leased = lease(store, stream, 2)
    first, second = leased.items
    ids = answer(store, first.task_id, [1.0, 1.0, 1.0], group_id=first.group_id, policy_version=0)
    late = answer(store, second.task_id, [1.0, 0.0])  # without a policy: not counted yet
    complete(store, leased, [0], verdict_ids=ids)
    complete(store, leased, [1], verdict_ids=late)
    found = known(store, stream.lineage)
    assert [
        (row.alpha, row.rollouts, row.visits, row.zero_variance)
        for row in (found[first.task_id], found[second.task_id])
    ] == [
        (4, 3, 1, 1),
        (2, 2, 1, 0),
    ]
    assert [item.status for item in complete(store, leased, [0], verdict_ids=ids)] == ["already"]
    assert known(store, stream.lineage) == found


def test_posted_rewards_count_only_where_no_verdict_was_recorded(store: Store, tasks: AddTasks) -> None:
    tasks({"a": 4})
    stream = make_stream(store, domains={"a": 1})
    leased = lease(store, stream, 2)
    first, second = leased.items
    answer(store, first.task_id, [1.0, 0.0], group_id=first.group_id)
    complete(store, leased, [0, 1], rewards=[1.0, 0.0, None])
    found = known(store, stream.lineage)
    assert [found[item.task_id].rollouts for item in (first, second)] == [2, 2]
    assert [found[item.task_id].visits for item in (first, second)] == [1, 1]


def test_a_foreign_verdict_is_the_problem_of_its_item_alone(store: Store, tasks: AddTasks) -> None:
    tasks({"a": 4})
    stream = make_stream(store, domains={"a": 1})
    leased = lease(store, stream, 2)
    ids = answer(store, leased.items[1].task_id, [1.0])
    results = complete(store, leased, [0, 1], verdict_ids=ids)
    assert [item.status for item in results] == ["problem", "completed"]
    assert results[0].problem.errors[0].code == "foreign_verdict"
    assert states(store, stream)[0] == "leased"


def test_two_lineages_do_not_move_each_other(store: Store, tasks: AddTasks) -> None:
    (task_id, *_) = tasks({"a": 3})
    answer(store, task_id, [1.0], policy="one")
    before = known(store, "one")
    answer(store, task_id, [0.0] * 6, policy="two")
    assert known(store, "one") == before
    assert known(store, "two")[task_id].beta == 7


@pytest.mark.parametrize("split", [Split.EVAL, Split.HOLDOUT])
def test_results_on_eval_and_holdout_move_nothing(store: Store, tasks: AddTasks, split: Split) -> None:
    tasks({"a": 3}, split)
    stream = make_stream(store, domains={"a": 1}, split=split, policy={"kind": "signal"})
    leased = lease(store, stream, 2)
    ids = answer(store, leased.items[0].task_id, [1.0, 0.0], policy="one", group_id=leased.items[0].group_id)
    complete(store, leased, [0], verdict_ids=ids)
    complete(store, leased, [1], rewards=[1.0, 0.0])
    with store.reading() as db:
        assert db.scalars(select(Difficulty)).all() == []
        assert db.scalars(select(VerdictRow.id).where(VerdictRow.observed)).all() == []


def test_evaluation_runs_replays_and_old_versions_move_nothing(store: Store, tasks: AddTasks) -> None:
    task_id, other, _ = tasks({"a": 3})
    with store.writing() as db:
        run = runs.create(db, name="e", kind="eval", policy="one", stream_id=None, config={}, actor="test", now=NOW).id
    answer(store, task_id, [1.0], policy="one", run_id=run)
    ids = answer(store, task_id, [1.0])
    with store.writing() as db:
        db.execute(update(VerdictRow).where(VerdictRow.id.in_(ids)).values(replay_of="ver_0"))
    set_tasks(store, [other], version=2)
    answer(store, other, [1.0], policy="one")
    assert known(store, "one") == {}


def test_a_new_version_of_a_task_starts_unseen(store: Store, tasks: AddTasks) -> None:
    (task_id,) = tasks({"a": 1})
    answer(store, task_id, [1.0] * 5, policy="one")
    with store.writing() as db:
        db.execute(update(Difficulty).values(task_version=0))
    answer(store, task_id, [0.0], policy="one")
    found = known(store, "one")[task_id]
    assert (found.alpha, found.beta, found.task_version) == (1, 2, 1)


def test_a_late_holder_acknowledges_nothing_but_its_rollouts_are_evidence_once(store: Store, tasks: AddTasks) -> None:
    tasks({"a": 4})
    stream = make_stream(store, domains={"a": 1})
    leased = lease(store, stream, 2)
    later = NOW + timedelta(hours=7)
    for _ in range(2):
        with pytest.raises(Exception, match="expired"):
            complete(store, leased, [0], rewards=[1.0, 0.0, 0.0], now=later)
    found = known(store, stream.lineage)[leased.items[0].task_id]
    assert (found.alpha, found.beta, found.rollouts) == (2, 3, 3)
    again = lease(store, stream, 1, now=later)
    assert numbers(again) == [0]


def group_stream(store: Store, **body: object) -> StreamRecord:
    return make_stream(store, domains={"a": 1}, ack="group", **body)


def test_a_full_group_acknowledges_itself_where_the_stream_says_so(store: Store, tasks: AddTasks) -> None:
    tasks({"a": 4})
    stream = group_stream(store)
    leased = lease(store, stream, 2)
    item = leased.items[0]
    for reward in (1.0, 0.0, None):
        answer(store, item.task_id, [reward], group_id=item.group_id)
    assert states(store, stream)[0] == "leased"
    answer(store, leased.items[1].task_id, [1.0], group_id=item.group_id)  # another task: does not belong
    assert states(store, stream)[0] == "leased"
    answer(store, item.task_id, [1.0], group_id=item.group_id)
    assert states(store, stream) == {0: "completed", 1: "leased"}
    assert known(store, stream.lineage)[item.task_id].visits == 1
    assert [done.status for done in complete(store, leased, [0])] == ["already"]


def test_a_full_group_with_too_few_valid_rollouts_is_served_again_and_in_the_end_withdrawn(
    store: Store, tasks: AddTasks
) -> None:
    tasks({"a": 4})
    stream = group_stream(store)
    for _ in range(3):
        (item,) = lease(store, stream, 1).items
        assert item.ordinal == 0
        answer(store, item.task_id, [None, None, None, 1.0], group_id=item.group_id)
    with store.reading() as db:
        (row,) = ordinals.page(db, stream.id, None, -1, 10)
    assert (row.state, row.reason) == ("withdrawn", "too_few_valid")


def test_attempts_of_an_earlier_try_do_not_fill_a_later_one(store: Store, tasks: AddTasks) -> None:
    tasks({"a": 4})
    stream = group_stream(store)
    (first,) = lease(store, stream, 1).items
    answer(store, first.task_id, [1.0, 0.0, 1.0], group_id=first.group_id)
    (again,) = lease(store, stream, 1, now=NOW + timedelta(hours=7)).items
    answer(store, first.task_id, [1.0], group_id=first.group_id)
    assert (again.ordinal, again.tries) == (0, 2)
    assert states(store, stream)[0] == "leased"
    assert known(store, stream.lineage)[first.task_id].rollouts == 4


def test_stale_groups_are_accepted_and_flagged(store: Store, tasks: AddTasks) -> None:
    tasks({"a": 9})
    stream = make_stream(store, domains={"a": 1}, max_lag=3)
    first = lease(store, stream, 1, version=2)
    lease(store, stream, 1, version=5)
    complete(store, first, [0], policy_version=1, rewards=[1.0, 0.0])
    with store.reading() as db:
        row = db.get_one(OrdinalRow, (stream.id, 0))
        assert (row.stale, row.policy_version) == (True, 1)
    found = known(store, stream.lineage)[first.items[0].task_id]
    assert 1 < found.alpha < 2  # made 4 versions ago: it counts less
