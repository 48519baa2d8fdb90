"""The gate and regate jobs: submitted tasks become active, rejected or stay pending; void receipts are renewed."""

from typing import Any

import pytest
from sqlalchemy import update

from service.store import receipts
from service.store.admission import admit, prepare
from service.store.drafts import TaskDraft
from service.store.gating import bodies
from service.store.required_gates import current_key
from service.store.session import Store
from service.store.splits import SplitRule
from service.store.tables import Event, Task
from service.words import TaskStatus
from tests.factory.conftest import Inline
from tests.factory.test_gates import CLEAN, Judge
from verifiers.engine import Engine

RULE = SplitRule(b"key", 0.0, 0.0)


def submit(store: Store, n: int = 1, **changes: Any) -> list[str]:
    made = []
    for number in range(n):
        prompt = [{"role": "user", "content": f"What is 6*7? ({number}, {sorted(changes)})"}]
        made.append(prepare(TaskDraft.model_validate(CLEAN | {"prompt": prompt} | changes)))
    with store.writing() as db:
        return [task.task_id for task in admit(db, made, actor="key_1", rule=RULE)]


def task(store: Store, task_id: str) -> Task:
    with store.reading() as db:
        found = db.get(Task, task_id)
        assert found is not None
        return found


def test_submitted_tasks_become_active_with_receipts(inline: Inline) -> None:
    ids = submit(inline.store, 3)
    job = inline.done("factory.gate", task_ids=ids)
    assert (job.status, job.counts["active"], job.counts["G2"]["pass"]) == ("done", 3, 3)
    for task_id in ids:
        found = task(inline.store, task_id)
        assert (found.status, found.live) == ("active", True)
        assert found.receipts_key == current_key("submitted", "numeric")
        with inline.store.reading() as db:
            assert receipts.standing(db, found) == ([], [])


def test_a_failed_gate_rejects_with_its_name_and_evidence(inline: Inline) -> None:
    (task_id,) = submit(inline.store, gold=["41"])
    assert inline.done("factory.gate", task_ids=[task_id]).counts["rejected"] == 1
    found = task(inline.store, task_id)
    assert (found.status, found.live, found.receipts_key) == ("rejected", False, None)
    with inline.store.reading() as db:
        (event,) = db.query(Event).where(Event.subject == task_id, Event.kind == "task.rejected")
        assert event.reason.startswith("G2 gold_not_verified")
        assert event.actor == "test"
        row = receipts.of_task(db, task_id, 1)[-1].receipt
        assert row.evidence_sha256
        assert receipts.evidence(db, row.evidence_sha256).data["gold"] == "41"  # type: ignore[union-attr]


def test_an_active_task_that_fails_later_is_quarantined(inline: Inline) -> None:
    (task_id,) = submit(inline.store)
    inline.done("factory.gate", task_ids=[task_id])
    wavering = Judge(inline.runtime.engine(), {"42": ["42", "42", "43"]})  # type: ignore[arg-type]
    runtime = inline.runtime._replace(engine=lambda: wavering)  # type: ignore[arg-type,return-value]
    Inline(runtime).done("factory.gate", task_ids=[task_id])
    assert task(inline.store, task_id).status == "quarantined"


def test_a_quarantined_task_stays_until_a_person_decides(inline: Inline) -> None:
    (task_id,) = submit(inline.store)
    with inline.store.writing() as db:
        db.execute(update(Task).where(Task.id == task_id).values(status=TaskStatus.QUARANTINED))
    inline.done("factory.gate", task_ids=[task_id])
    found = task(inline.store, task_id)
    assert (found.status, found.receipts_key) == ("quarantined", current_key("submitted", "numeric"))


def test_an_outage_keeps_tasks_pending_and_the_job_goes_on_later(inline: Inline, text_engine: Engine) -> None:
    """What could be decided is written; the rest is tried again, without an attempt being spent."""
    ids = sorted([*submit(inline.store, 2), *submit(inline.store, 1, gold=["42.0"])])
    failing = Judge(text_engine, {"42.0": ["void"]})
    runtime = inline.runtime._replace(engine=lambda: failing)  # type: ignore[arg-type,return-value]
    job_id = inline.file("factory.gate", {"task_ids": ids})
    job = Inline(runtime).do(job_id)
    assert (job.status, job.attempts, job.retries) == ("queued", 0, 1)
    assert sorted(task(inline.store, task_id).status for task_id in ids) == ["active", "active", "pending"]
    with inline.store.writing() as db:
        from service.store.tables import Job

        db.execute(update(Job).values(run_at=Job.created_at))
    job = inline.do(job_id)
    assert job.status == "done"
    assert {task(inline.store, task_id).status for task_id in ids} == {"active"}
    assert job.counts["active"] == 3


def test_a_whole_outage_decides_nothing(inline: Inline, text_engine: Engine) -> None:
    ids = submit(inline.store, 3)
    down = Judge(text_engine, {"42": ["void"]})
    job = Inline(inline.runtime._replace(engine=lambda: down)).done("factory.gate", task_ids=ids)  # type: ignore[arg-type,return-value]
    assert (job.status, job.error["code"], job.attempts) == ("queued", "outage", 0)
    with inline.store.reading() as db:
        assert {row.receipt.result for row in receipts.of_task(db, ids[0], 1)} == {"pass", "error"}
    assert {task(inline.store, task_id).status for task_id in ids} == {"pending"}


def test_tasks_are_chosen_by_filter(inline: Inline) -> None:
    here, elsewhere = submit(inline.store, 2), submit(inline.store, 1, domain="other.place")
    inline.done("factory.gate", filter={"domain": "math", "status": "pending"})
    assert {task(inline.store, task_id).status for task_id in here} == {"active"}
    assert task(inline.store, elsewhere[0]).status == "pending"


@pytest.mark.parametrize("params", [{"task_ids": "all"}, {"filter": {"colour": "red"}}, {"task_ids": [1]}])
def test_wrong_params_fail(inline: Inline, params: dict[str, Any]) -> None:
    job = inline.done("factory.gate", **params)
    assert (job.status, job.error["code"]) == ("failed", "bad_params")


def test_void_receipts_are_renewed(inline: Inline) -> None:
    """A new verifier version voids receipts: the task is not servable until it was gated again."""
    ids = submit(inline.store, 4)
    inline.done("factory.gate", task_ids=ids)
    with inline.store.writing() as db:
        db.execute(update(Task).where(Task.id.in_(ids[:2])).values(receipts_key="numeric@0|G0:0"))
    job = inline.done("factory.regate")
    assert job.counts["active"] == 2
    assert {task(inline.store, task_id).receipts_key for task_id in ids} == {current_key("submitted", "numeric")}


def test_a_stored_task_comes_back_as_it_was_submitted(inline: Inline) -> None:
    (task_id,) = submit(inline.store, tags=["b", "a"], features={"digits": 2}, limits={"wall_s": 3})
    with inline.store.reading() as db:
        (stored,) = bodies(db, [task_id])
    assert prepare(stored.candidate).content_hash == stored.content_hash
    assert stored.candidate.limits.wall_s == 3


def test_housekeeping_ends(inline: Inline) -> None:
    job = inline.done("service.housekeeping")
    assert (job.status, job.counts) == ("done", {"workers": 0, "idempotency_keys": 0})
