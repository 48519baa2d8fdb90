"""Idempotency-Keys: one effect, one answer, whatever comes twice, at once or after a crash."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select, update

from service.errors import InFlight, KeyReused
from service.store import events, idempotency
from service.store.idempotency import Key, Replay
from service.store.session import Store
from service.store.tables import Idempotency

KEY = Key("key_1", "/v1/tasks", "k", "a" * 64)


def _begin(store: Store, key: Key = KEY, lease_s: float = 60.0) -> Replay | None:
    with store.writing() as db:
        return idempotency.begin(db, key, lease_s=lease_s, ttl_s=3600)


def _age(store: Store, **columns: datetime) -> None:
    with store.writing() as db:
        db.execute(update(Idempotency).values(**columns))


def test_the_second_request_has_the_answer_of_the_first(store: Store) -> None:
    assert _begin(store) is None
    with store.writing() as db:
        idempotency.answer(db, KEY, 201, '{"id":1}')
    assert _begin(store) == Replay(201, '{"id":1}')


def test_another_body_is_refused_and_another_principal_or_route_is_apart(store: Store) -> None:
    _begin(store)
    with pytest.raises(KeyReused):
        _begin(store, KEY._replace(body_sha256="b" * 64))
    assert _begin(store, KEY._replace(principal="key_2")) is None
    assert _begin(store, KEY._replace(route="/v1/verify")) is None


def test_a_running_request_is_in_flight_until_its_lease_ends(store: Store) -> None:
    """The crash of the first holder frees the key."""
    _begin(store)
    with pytest.raises(InFlight):
        _begin(store)
    _age(store, lease_until=datetime.now(UTC) - timedelta(seconds=1))
    assert _begin(store) is None
    with pytest.raises(InFlight):
        _begin(store)


def test_a_failed_request_frees_its_key(store: Store) -> None:
    _begin(store)
    with store.writing() as db:
        idempotency.forget(db, KEY)
    assert _begin(store) is None


def test_an_answered_key_is_not_forgotten(store: Store) -> None:
    _begin(store)
    with store.writing() as db:
        idempotency.answer(db, KEY, 200, "{}")
    with store.writing() as db:
        idempotency.forget(db, KEY)
    assert _begin(store) == Replay(200, "{}")


def test_a_rolled_back_effect_leaves_no_key(store: Store) -> None:
    def fail() -> None:
        with store.writing() as db:
            idempotency.begin(db, KEY, lease_s=60, ttl_s=3600)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert _begin(store) is None


def test_sixteen_at_once_have_one_effect(store: Store) -> None:
    """Short routes take the key in the transaction of the effect: the others wait, then replay."""

    def request(_: int) -> str:
        with store.writing() as db:
            found = idempotency.begin(db, KEY, lease_s=60, ttl_s=3600)
            if found is not None:
                return found.body
            events.record(db, "s", "effect", "t")
            idempotency.answer(db, KEY, 200, "done")
            return "first"

    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(request, range(16)))
    assert sorted(answers) == ["done"] * 15 + ["first"]
    with store.reading() as db:
        assert len(events.data_of(db, "s", "effect")) == 1


def test_expired_keys_are_purged_and_may_be_used_again(store: Store) -> None:
    _begin(store)
    with store.writing() as db:
        idempotency.answer(db, KEY, 200, "old")
    _begin(store, KEY._replace(key="young"))
    with store.writing() as db:
        db.execute(
            update(Idempotency).where(Idempotency.key == "k").values(expires_at=datetime.now(UTC) - timedelta(hours=1))
        )
    assert _begin(store, KEY._replace(body_sha256="b" * 64)) is None
    _age(store, expires_at=datetime.now(UTC) - timedelta(hours=1))
    with store.writing() as db:
        assert idempotency.purge(db, limit=1) == 1
        assert idempotency.purge(db) == 1
        assert db.scalar(select(func.count()).select_from(Idempotency)) == 0
