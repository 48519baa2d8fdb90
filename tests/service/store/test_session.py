"""Transactions: who waits for whom, what is lost, what is kept."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy import event, insert, select
from sqlalchemy.exc import DBAPIError, StatementError

from service.errors import StoreBusy
from service.settings import Settings
from service.store import events, keys, tasks
from service.store.admission import admit, prepare
from service.store.drafts import TaskDraft
from service.store.engine import make_engine
from service.store.session import Store
from service.store.splits import SplitRule
from service.store.tables import ApiKey, Event, Task

RULE = SplitRule(b"secret", 0.0, 0.0)


def _task(store: Store) -> str:
    draft = TaskDraft.model_validate(
        {"domain": "a", "prompt": [{"role": "user", "content": "1"}], "verifier": {"name": "exact"}}
        | {"reference": {"answer": "1"}}
    )
    with store.writing() as db:
        return admit(db, [prepare(draft)], actor="t", rule=RULE)[0].task_id


def test_concurrent_edits_lose_no_update(store: Store) -> None:
    """D3: 20 threads × 10 read-modify-writes through the repository."""
    task_id = _task(store)

    def edit(number: int) -> None:
        for step in range(10):
            with store.writing() as db:
                tasks.set_tags(db, tasks.lock(db, task_id, holdout=True), [f"{number}.{step}"], actor="t")

    with ThreadPoolExecutor(20) as threads:
        list(threads.map(edit, range(20)))
    with store.reading() as db:
        assert tasks.get(db, task_id, holdout=True).row_version == 1 + 200


def test_write_sessions_are_immediate(sqlite_store: Store) -> None:
    """D4: a deferred transaction that turns into a writer fails at once, whatever the timeout."""
    said: list[str] = []
    event.listen(sqlite_store.engine, "before_cursor_execute", lambda *call: said.append(call[2]))
    with sqlite_store.writing() as db:
        db.execute(select(1))
    with sqlite_store.reading() as db:
        db.execute(select(1))
    assert [text for text in said if text.startswith("BEGIN")] == ["BEGIN IMMEDIATE", "BEGIN"]


def test_writers_of_two_stores_meet_no_error(settings: Settings, sqlite_store: Store) -> None:
    """D4: as an API process and a worker do, each with turns of its own."""
    other = Store(make_engine(settings.sqlalchemy_url, pool_size=28))

    def write(store: Store) -> None:
        for _ in range(5):
            with store.writing() as db:
                events.record(db, "x", "test.write", "t")

    with ThreadPoolExecutor(20) as threads:
        list(threads.map(write, [sqlite_store, other] * 10))
    other.close()
    with sqlite_store.reading() as db:
        assert len(events.data_of(db, "x", "test.write")) == 100


def test_a_reader_writes_nothing(store: Store) -> None:
    statement = insert(Event).values(
        id="evt_1", subject="x", kind="k", actor="t", reason="", data={}, created_at=datetime.now(UTC)
    )
    with store.reading() as db, pytest.raises(DBAPIError, match=r"read-?only"):
        db.execute(statement)


def test_a_second_session_of_a_thread_is_refused(store: Store) -> None:
    """D12: nested sessions exhaust any pool."""
    with store.reading(), pytest.raises(RuntimeError, match="open already"), store.writing():
        pass
    with store.writing() as db:  # the thread is free again
        events.record(db, "x", "test.free", "t")


def test_a_writer_that_waits_too_long_is_told(settings: Settings) -> None:
    store = Store(make_engine(settings.sqlalchemy_url, pool_size=2), writer_wait_s=0.05)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with store.writing():
            held.set()
            done.wait(timeout=10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(timeout=10)
    try:
        with pytest.raises(StoreBusy), store.writing():
            pass
    finally:
        done.set()
        thread.join(timeout=10)
    store.close()


@pytest.mark.parametrize("offset", [UTC, timezone(timedelta(hours=5, minutes=30))])
def test_times_come_back_aware_and_equal(store: Store, offset: Any) -> None:
    """D38."""
    when = datetime(2026, 3, 29, 1, 30, 0, 123456, tzinfo=offset)
    with store.writing() as db:
        made = keys.create(db, name="k", scopes=["train"], token="t", token_hmac="h", expires_at=when)
    with store.reading() as db:
        found = db.get_one(ApiKey, made.key_id).expires_at
    assert found == when
    assert found is not None
    assert found.tzinfo is not None


def test_a_naive_time_never_reaches_the_store(store: Store) -> None:
    """D38."""
    naive = datetime(2026, 1, 1)  # noqa: DTZ001 - the point of the test
    with pytest.raises(StatementError, match="naive"), store.writing() as db:
        keys.create(db, name="k", scopes=["train"], token="t", token_hmac="h", expires_at=naive)


def test_a_block_that_raises_leaves_nothing(store: Store) -> None:
    task_id = _task(store)

    def fail() -> None:
        with store.writing() as db:
            tasks.set_tags(db, tasks.lock(db, task_id, holdout=True), ["gone"], actor="t")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with store.reading() as db:
        assert tasks.whole(db, tasks.get(db, task_id, holdout=True)).tags == []
        assert db.get_one(Task, task_id).row_version == 1
