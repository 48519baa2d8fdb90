"""The generate job: it counts what it makes, stops for a named reason, and survives kills at every step."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from sqlalchemy import select

from factory import generate_job
from factory.contract import Dropped, Made, Source
from factory.generators import GENERATORS
from factory.procedural.arithmetic import Addition
from factory.registry import HANDLERS
from factory.runner import Outage, Runtime, Steps, Work, run_by_id
from service.store import jobs, receipts
from service.store.gating import ids_to_gate
from service.store.session import WriteSession
from service.store.tables import Job, TaskVersion
from service.words import TaskStatus
from tests.factory.conftest import Inline


def generate(inline: Inline, **params: Any) -> Job:
    return inline.done("factory.generate", **{"generator": "math.add", "accepted": 30, **params})


def active(inline: Inline) -> list[str]:
    with inline.store.reading() as db:
        return ids_to_gate(db, statuses=[TaskStatus.ACTIVE], limit=10_000)


def test_it_stops_at_the_target_and_its_counts_add_up(inline: Inline) -> None:
    job = generate(inline, accepted=60)
    assert (job.status, job.result["stop_reason"], job.progress) == ("done", "target_reached", 1.0)
    counts = job.counts
    assert counts["candidates"] == counts["admitted"] + counts["duplicates"]
    assert counts["active"] == len(active(inline)) >= 60
    for gate in ("G0", "G1", "G2", "G3"):
        assert counts[gate]["in"] == counts[gate]["pass"] + counts[gate]["fail"] + counts[gate]["error"]
        assert counts[gate]["in"] == counts["admitted"]
    some = active(inline)[:3]
    with inline.store.reading() as db:
        for task_id in some:
            rows = receipts.of_task(db, task_id, 1)
            assert [row.receipt.gate for row in rows] == ["G0", "G1", "G3", "G2"]
            assert all(row.current for row in rows)


def test_the_same_job_again_makes_nothing_twice(inline: Inline) -> None:
    generate(inline)
    again = generate(inline, candidate_budget=30)
    assert again.result["stop_reason"] == "candidate_budget"
    assert (again.counts["duplicates"], again.counts["active"]) == (30, 0)


def test_a_small_family_is_used_up(inline: Inline) -> None:
    job = generate(inline, generator="math.subtract", knobs={"digits": 1}, accepted=100)
    assert (job.status, job.result["stop_reason"], job.counts["active"]) == ("done", "source_exhausted", 55)


def test_a_budget_ends_it(inline: Inline) -> None:
    job = generate(inline, accepted=100, candidate_budget=20)
    assert (job.result["stop_reason"], job.counts["candidates"]) == ("candidate_budget", 20)


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"generator": "no.such"}, "unknown_generator"),
        ({"knobs": {"digitz": 1}}, "bad_knobs"),
        ({"accepted": 0}, "bad_params"),
        ({"surprise": 1}, "bad_params"),
        ({"generator": "code.docstring", "source": "pkg:pypi/no-such-package"}, "source_missing"),
    ],
)
def test_wrong_params_fail_at_once_and_say_why(inline: Inline, params: dict[str, Any], code: str) -> None:
    job = generate(inline, **params)
    assert (job.status, job.attempts, job.error["code"]) == ("failed", 1, code)


class Odd(Addition):
    """Every second candidate has a wrong gold, every third index gives nothing."""

    name = "test.odd"

    def candidates(
        self, source: Source | None, seed: int, knobs: Mapping[str, Any], start: int = 0
    ) -> Iterator[Made | Dropped]:
        for item in super().candidates(source, seed, knobs, start):
            if not isinstance(item, Made):
                yield item
            elif item.index % 3 == 2:
                yield Dropped(item.index, "every_third", "")
            elif item.index % 2:
                yield Made(item.index, item.candidate.model_copy(update={"gold": ["wrong"]}))
            else:
                yield item


@pytest.fixture
def odd(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(generate_job, "GENERATORS", {**GENERATORS, Odd.name: Odd()})
    return Odd.name


def test_bad_candidates_are_rejected_and_counted(inline: Inline, odd: str) -> None:
    job = generate(inline, generator=odd, accepted=20)
    counts = job.counts
    assert counts["active"] >= 20
    assert counts["rejected"] == counts["G2"]["fail"] > 0
    assert counts["dropped"]["every_third"] > 0
    assert counts["admitted"] == counts["active"] + counts["rejected"]


def test_a_low_yield_ends_it(inline: Inline, odd: str) -> None:
    job = generate(inline, generator=odd, accepted=5000, min_yield=0.9, candidate_budget=1000)
    assert (job.status, job.result["stop_reason"]) == ("done", "yield_floor")
    assert 200 <= job.counts["candidates"] < 1000


def test_rejected_tasks_are_not_paid_for_again(inline: Inline, odd: str) -> None:
    first = generate(inline, generator=odd, accepted=20)
    again = generate(inline, generator=odd, accepted=20, candidate_budget=first.counts["candidates"])
    assert again.counts["duplicates"] == again.counts["candidates"]
    assert "G0" not in again.counts


class Killed(BaseException):
    """As a SIGKILL: nothing after it runs."""


@pytest.mark.parametrize("stage", ["before", "inside", "after"])
@pytest.mark.parametrize("nth", [0, 2])
def test_a_kill_at_any_stage_loses_and_repeats_nothing(inline: Inline, odd: str, stage: str, nth: int) -> None:
    """Before a step, inside its transaction, or between commit and the next: the end is the same as without a kill."""

    def killed(work: Work) -> Steps:
        steps = generate_job.generate(work)
        for number, step in enumerate(steps):
            if number == nth and stage == "before":
                raise Killed
            if number == nth and stage == "inside":
                yield from [_then_die(step)]
            yield step
            if number == nth:
                raise Killed
        return {}

    def _then_die(step: Any) -> Any:
        def write(db: WriteSession) -> Any:
            step(db)
            raise Killed

        return write

    params = {"generator": odd, "accepted": 1000, "candidate_budget": 120}
    job_id = inline.file("factory.generate", params)
    runtime: Runtime = inline.runtime._replace(lease_s=0.001)
    with pytest.raises(Killed):
        run_by_id(runtime, {"factory.generate": killed}, job_id)
    interrupted = inline.get(job_id)
    assert interrupted.status == "running"
    job = inline.do(job_id, HANDLERS)
    assert (job.status, job.attempts) == ("done", 2)
    assert job.counts["candidates"] == job.counts["admitted"] == 120
    assert job.counts["duplicates"] == 0
    assert job.counts["active"] == len(active(inline))
    with inline.store.reading() as db:
        made = sorted(origin["index"] for origin in db.scalars(select(TaskVersion.origin)) if origin)
    assert made == [index for index in range(179) if index % 3 != 2]


def test_an_outage_hands_the_job_back_and_writes_nothing(inline: Inline, monkeypatch: pytest.MonkeyPatch) -> None:
    def down() -> Any:
        raise Outage("no sandbox")

    job_id = inline.file("factory.generate", {"generator": "math.add", "accepted": 5})
    run_by_id(inline.runtime._replace(engine=down), HANDLERS, job_id)
    job = inline.get(job_id)
    assert (job.status, job.attempts, job.retries, job.cursor) == ("queued", 0, 1, {})
    assert active(inline) == []


def test_cancelling_stops_between_steps(inline: Inline) -> None:
    def cancelling(work: Work) -> Steps:
        steps = generate_job.generate(work)
        yield next(steps)
        with work.store.writing() as db:
            jobs.cancel(db, work.claim.id)
        work._lease.why = generate_why()
        yield from steps
        return {}

    def generate_why() -> Any:
        from factory.runner import Why

        return Why.CANCELLED

    job_id = inline.file("factory.generate", {"generator": "math.add", "accepted": 500})
    job = inline.do(job_id, {"factory.generate": cancelling})
    assert (job.status, job.result) == ("cancelled", {"stop_reason": "cancelled"})
    assert job.counts["candidates"] == 50
    assert len(active(inline)) == 50
