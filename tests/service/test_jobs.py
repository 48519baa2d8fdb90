"""The lease protocol of jobs, on both databases."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from threading import Thread

import pytest
from sqlalchemy import update

from service.errors import Invalid, NotFound
from service.store import job_upkeep, jobs, workers
from service.store.engine import make_engine
from service.store.jobs import LeaseLost
from service.store.session import Store, WriteSession
from service.store.tables import Job
from service.words import JobStatus, Queue

QUEUES = tuple(Queue)


def file(store: Store, **more: object) -> str:
    with store.writing() as db:
        return jobs.file(db, "test.any", {"n": 1}, actor="key_1", queue=Queue.CPU, **more)  # type: ignore[arg-type]


def claim(store: Store, job_id: str, lease_s: float = 60.0) -> jobs.Claim:
    with store.writing() as db:
        found = jobs.claim(db, job_id, worker="w", lease_s=lease_s)
    assert found is not None
    return found


def get(store: Store, job_id: str) -> Job:
    with store.reading() as db:
        return jobs.get(db, job_id)


def expire(store: Store, job_id: str) -> None:
    with store.writing() as db:
        past = datetime.now(UTC) - timedelta(seconds=5)
        db.execute(update(Job).where(Job.id == job_id).values(lease_until=past))


def sweep(store: Store) -> job_upkeep.Swept:
    with store.writing() as db:
        return job_upkeep.sweep(db)


def test_a_job_is_claimed_once(store: Store) -> None:
    job = file(store)
    found = claim(store, job)
    assert (found.token, found.attempts, found.params, found.actor) == (1, 1, {"n": 1}, "key_1")
    with store.writing() as db:
        assert jobs.claim(db, job, worker="other", lease_s=60) is None
        assert jobs.claim_next(db, QUEUES, worker="other", lease_s=60) == []


def test_many_workers_claim_each_job_once(store: Store) -> None:
    filed = {file(store) for _ in range(40)}
    taken: list[str] = []

    def work() -> None:
        while True:
            with store.writing() as db:
                found = jobs.claim_next(db, QUEUES, worker="w", lease_s=60, n=3)
            if not found:
                return
            taken.extend(one.id for one in found)

    threads = [Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert sorted(taken) == sorted(filed)


def test_lower_priorities_and_older_jobs_run_first(store: Store) -> None:
    late, first, second = file(store, priority=5), file(store, priority=-1), file(store, priority=-1)
    with store.writing() as db:
        order = [jobs.claim_next(db, QUEUES, worker="w", lease_s=60)[0].id for _ in range(3)]
    assert order == [first, second, late]


def test_a_job_of_tomorrow_waits(store: Store) -> None:
    job = file(store, run_at=datetime.now(UTC) + timedelta(days=1))
    with store.writing() as db:
        assert jobs.claim(db, job, worker="w", lease_s=60) is None
        assert job_upkeep.due(db, QUEUES, limit=10) == []
        assert job_upkeep.oldest_wait_s(db, QUEUES) == 0


def test_equal_jobs_coalesce_until_they_end(store: Store) -> None:
    first = file(store, dedup_key="same")
    assert file(store, dedup_key="same") == first
    found = claim(store, first)
    assert file(store, dedup_key="same") == first
    with store.writing() as db:
        jobs.finish(db, first, found.token, result={})
    assert file(store, dedup_key="same") != first


def test_an_unknown_kind_is_refused_and_names_the_kinds(store: Store) -> None:
    with pytest.raises(Invalid) as caught, store.writing() as db:
        jobs.file(db, "no.such", {}, actor="a")
    assert "factory.generate" in caught.value.errors[0].message


def test_a_fenced_worker_changes_nothing(store: Store) -> None:
    """Each of its writes is rolled back with everything else in the transaction."""
    job = file(store)
    old = claim(store, job)
    expire(store, job)
    new = claim(store, job)
    assert new.token == old.token + 1
    for act in (
        lambda db: jobs.step(db, job, old.token, cursor={"next": 9}),
        lambda db: jobs.finish(db, job, old.token, result={}),
        lambda db: jobs.fail(db, job, old.token, code="x", detail=""),
        lambda db: jobs.crashed(db, job, old.token, code="x", detail=""),
        lambda db: jobs.hand_back(db, job, old.token, code="x"),
    ):
        with pytest.raises(LeaseLost):
            _file_and(store, act)
    with store.writing() as db:
        assert not jobs.extend(db, job, old.token, lease_s=60).held
        assert jobs.extend(db, job, new.token, lease_s=60).held
        assert [row.created_by for row in jobs.page(db)] == ["key_1"]
    assert get(store, job).cursor == {}


def _file_and(store: Store, act: Callable[[WriteSession], None]) -> None:
    with store.writing() as db:
        jobs.file(db, "test.any", {}, actor="ghost", queue=Queue.CPU)
        act(db)


def test_steps_keep_cursor_counts_and_progress_for_the_next_attempt(store: Store) -> None:
    job = file(store)
    found = claim(store, job)
    with store.writing() as db:
        jobs.step(db, job, found.token, cursor={"next": 3}, counts={"done": 3}, progress=0.5)
    expire(store, job)
    again = claim(store, job)
    assert (again.cursor, again.counts, again.attempts) == ({"next": 3}, {"done": 3}, 2)


def test_expired_jobs_wait_again_and_are_dead_after_three(store: Store) -> None:
    job = file(store)
    for attempt in (1, 2):
        claim(store, job)
        expire(store, job)
        assert sweep(store).requeued == [job]
        assert get(store, job).attempts == attempt
    claim(store, job)
    expire(store, job)
    assert sweep(store).dead == [job]
    ended = get(store, job)
    assert (ended.status, ended.error["code"]) == ("dead", "attempts_exhausted")
    assert ended.finished_at is not None
    with store.writing() as db:
        assert jobs.claim(db, job, worker="w", lease_s=60) is None


def test_a_crash_is_tried_again_and_the_last_error_is_kept(store: Store) -> None:
    job = file(store)
    for _ in range(3):
        with store.writing() as db:
            db.execute(update(Job).where(Job.id == job).values(run_at=datetime.now(UTC)))
        found = claim(store, job)
        with store.writing() as db:
            jobs.crashed(db, job, found.token, code="crashed", detail="ValueError: seven")
    ended = get(store, job)
    assert ended.status == "dead"
    assert "ValueError: seven" in ended.error["detail"]


def test_handing_back_costs_no_attempt_and_waits_longer_each_time(store: Store) -> None:
    job = file(store)
    for retries in range(1, 4):
        with store.writing() as db:
            db.execute(update(Job).where(Job.id == job).values(run_at=datetime.now(UTC)))
        found = claim(store, job)
        with store.writing() as db:
            now = jobs.clock(db)
            jobs.hand_back(db, job, found.token, code="outage")
        left = get(store, job)
        assert (left.status, left.attempts, left.retries) == ("queued", 0, retries)
        longest = 5 * 2 ** (retries - 1)
        assert 0.8 * longest <= (left.run_at - now).total_seconds() <= 1.2 * longest + 1


def test_an_endless_outage_fails_as_infrastructure(store: Store) -> None:
    job = file(store)
    with store.writing() as db:
        db.execute(update(Job).where(Job.id == job).values(retries=jobs.MAX_RETRIES))
    found = claim(store, job)
    with store.writing() as db:
        jobs.hand_back(db, job, found.token, code="outage", detail="no sandbox")
    ended = get(store, job)
    assert (ended.status, ended.error["code"]) == ("failed", "infrastructure")


def test_backoff_is_bounded() -> None:
    assert all(jobs.backoff(retries).total_seconds() <= 360 for retries in range(2000))


def test_cancelling_a_waiting_job_ends_it(store: Store) -> None:
    job = file(store)
    with store.writing() as db:
        assert jobs.cancel(db, job).status == "cancelled"
    assert get(store, job).finished_at is not None


def test_cancelling_a_running_job_reaches_its_worker(store: Store) -> None:
    job = file(store)
    found = claim(store, job)
    with store.writing() as db:
        assert jobs.cancel(db, job).status == "running"
        assert jobs.extend(db, job, found.token, lease_s=60).cancel_requested
    expire(store, job)
    assert sweep(store).cancelled == [job]


def test_an_ended_job_is_not_cancelled(store: Store) -> None:
    job = file(store)
    found = claim(store, job)
    with store.writing() as db:
        jobs.finish(db, job, found.token, result={"ok": 1})
    with store.writing() as db:
        assert jobs.cancel(db, job).status == "done"


def test_there_is_no_job_of_that_name(store: Store) -> None:
    with pytest.raises(NotFound), store.reading() as db:
        jobs.get(db, "job_0")


def test_pages_are_newest_first_and_filtered(store: Store) -> None:
    filed = [file(store) for _ in range(5)]
    with store.writing() as db:
        jobs.cancel(db, filed[2])
    with store.reading() as db:
        assert [row.id for row in jobs.page(db, limit=2)] == filed[:2:-1][:2]
        assert [row.id for row in jobs.page(db, before=filed[2])] == filed[1::-1]
        assert [row.id for row in jobs.page(db, statuses=[JobStatus.CANCELLED])] == [filed[2]]
        assert jobs.page(db, kinds=["other"]) == []


@pytest.mark.parametrize("ending", ["commit", "rollback", "savepoint"])
def test_hint_after_commit_only(store: Store, ending: str) -> None:
    """D13: a hint leaves after the outer commit, never for work that was rolled back."""
    hints: list[str] = []
    committed: list[bool] = []

    def offer(ids: Sequence[str]) -> None:
        with other.reading() as db:  # whoever gets the hint finds the row
            committed.append(all(jobs.get(db, job_id) for job_id in ids))
        hints.extend(ids)

    other = Store(store.engine)
    hinting = Store(store.engine, offer_hints=offer)

    class Failed(Exception):
        pass

    try:
        with hinting.writing() as db:
            if ending == "savepoint":
                with db.begin_nested():
                    jobs.file(db, "test.any", {}, actor="a", queue=Queue.CPU)
                assert hints == []
            else:
                jobs.file(db, "test.any", {}, actor="a", queue=Queue.CPU)
            if ending != "commit":
                raise Failed
    except Failed:
        assert hints == []
        return
    assert len(hints) == 1
    assert isinstance(hints[0], jobs.Hint)
    assert hints[0].queue is Queue.CPU
    assert committed == [True]


def test_lost_hints_are_sent_again(store: Store) -> None:
    job = file(store)
    with store.writing() as db:
        assert job_upkeep.hint_again(db, QUEUES) == {}
        stale = datetime.now(UTC) - timedelta(seconds=job_upkeep.HINT_AGAIN_S + 5)
        db.execute(update(Job).where(Job.id == job).values(hinted_at=stale))
        assert job_upkeep.hint_again(db, QUEUES) == {job: Queue.CPU}
        assert job_upkeep.hint_again(db, QUEUES) == {}


def test_two_sweepers_one_tick(store: Store) -> None:
    """D25: schedulers that tick at the same moment file one job a period."""
    with store.writing() as db:
        assert job_upkeep.tick(db, "wheel", 3600, kind="factory.regate", params={}) is None
        from service.store.tables import Periodic

        db.execute(update(Periodic).values(next_run_at=datetime.now(UTC) - timedelta(seconds=1)))
    filed: list[str] = []

    def scheduler() -> None:
        own = Store(make_engine(store.engine.url.render_as_string(hide_password=False), pool_size=1))
        for _ in range(5):
            with own.writing() as db:
                if job := job_upkeep.tick(db, "wheel", 3600, kind="factory.regate", params={}):
                    filed.append(job)
        own.close()

    threads = [Thread(target=scheduler) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(filed) == 1


def test_two_sweepers_requeue_a_job_once(store: Store) -> None:
    job = file(store)
    claim(store, job)
    expire(store, job)
    found = [sweep(store).requeued, sweep(store).requeued]
    assert found == [[job], []]


def test_workers_are_seen_and_forgotten(store: Store) -> None:
    with store.writing() as db:
        assert workers.silence_s(db) is None
        workers.seen(db, "a:1", {"requeued": 0})
        workers.seen(db, "a:1", {"requeued": 2})
        assert [(row.id, row.counts) for row in workers.alive(db, within_s=30)] == [("a:1", {"requeued": 2})]
        assert (workers.silence_s(db) or 0) < 5
        workers.gone(db, "a:1")
        assert workers.alive(db, within_s=30) == []


def test_the_log_of_an_idle_database_is_cut(sqlite_store: Store) -> None:
    """D6: the write-ahead log gives its disk back when nothing reads or writes."""
    for _ in range(20):
        file(sqlite_store)
    wal = sqlite_store.engine.url.database + "-wal"  # type: ignore[operator]
    from pathlib import Path

    assert Path(wal).stat().st_size > 0
    job_upkeep.truncate_wal(sqlite_store)
    assert Path(wal).stat().st_size == 0
