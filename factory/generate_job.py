"""The job `factory.generate`: makes candidates until enough of them are accepted.

Candidates are made and gated in memory; then tasks, receipts, statuses and the job's cursor are written in one
transaction, guarded by the token. A kill repeats some pure computation; it loses no candidate and repeats none.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import ceil
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from factory.contract import BadKnobs, Dropped, Made, Source, SourceMissing, Subject
from factory.gates.ladder import ORDER, Climb, climb, columns, count
from factory.generators import GENERATORS
from factory.knobs import filled
from factory.runner import JobFailed, Judging, Outage, Progress, Step, Steps, Work
from service.store import gating, jobs
from service.store.admission import Prepared, admit, prepare
from service.store.gating import Settled
from service.store.session import WriteSession
from service.store.splits import SplitRule, draw_split

GATED_AT_ONCE, GATED_IN_BOXES_AT_ONCE = 200, 10
READ_AT_ONCE = 1000
BOXED_AT_ONCE = 16  # each takes seconds of boxes: progress is to be seen, and a kill is to cost little
WRITTEN_AT_ONCE = 50
YIELD_AFTER = 200
"""The yield is judged only after so many candidates."""


class Params(BaseModel):
    """What the job is to do. It stops at `accepted` active tasks, or after `candidate_budget` candidates."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    generator: str
    source: str | None = None
    knobs: dict[str, Any] = {}
    seed: int = Field(0, ge=0, le=2**31 - 1)
    accepted: int = Field(ge=1, le=1_000_000)
    candidate_budget: int | None = Field(None, ge=1, le=10_000_000)
    min_yield: float | None = Field(None, ge=0, le=1)

    @property
    def budget(self) -> int:
        return self.candidate_budget or max(1000, 20 * self.accepted)


@dataclass(frozen=True, slots=True)
class Gated:
    """A candidate with its gates' answers; none for one whose like is stored already."""

    index: int
    prepared: Prepared
    subject: Subject
    climb: Climb | None


def generate(work: Work) -> Steps:
    """Generate until the target, the budget, the source or the yield ends it; the result names which."""
    run = _Run(work, _params(work.claim.params))
    while (reason := run.stop_reason()) is None:
        items = run.take()
        if not items:
            reason = "source_exhausted"
            break
        gated = run.gated([item for item in items if isinstance(item, Made)])
        work.safe_point()
        yield from run.steps(items, gated)
    return {"stop_reason": reason, "order": list(ORDER), **{name: run.counts.get(name, 0) for name in SUMMARY}}


SUMMARY = ("candidates", "duplicates", "admitted", "active", "rejected")


class _Run:
    """The state of one attempt: where the generator stands, and what was counted so far."""

    def __init__(self, work: Work, params: Params) -> None:
        self._work = work
        self._params = params
        self._generator = GENERATORS[params.generator]
        self.counts: dict[str, Any] = {name: 0 for name in SUMMARY} | {"dropped": {}} | dict(work.claim.counts)
        settings = work.runtime.settings
        self._rule = SplitRule(settings.secret_bytes, settings.split_holdout_share, settings.split_eval_share)
        self._items = self._start(work.claim.cursor.get("next", 0))

    def _start(self, index: int) -> Iterator[Made | Dropped]:
        try:
            knobs = filled(self._generator.knobs_schema, self._params.knobs)
            source: Source | None = self._generator.load(self._params.source)
            return self._generator.candidates(source, self._params.seed, knobs, index)
        except BadKnobs as error:
            raise JobFailed("bad_knobs", str(error)) from error
        except SourceMissing as error:
            raise JobFailed("source_missing", str(error)) from error

    def stop_reason(self) -> str | None:
        made, active = self.counts["candidates"], self.counts["active"]
        if active >= self._params.accepted:
            return "target_reached"
        if made >= self._params.budget:
            return "candidate_budget"
        floor = self._params.min_yield
        if floor is not None and made >= YIELD_AFTER and active / made < floor:
            return "yield_floor"
        return None

    def take(self) -> list[Made | Dropped]:
        """The next items: as many as the yield so far says are needed, and a tenth more."""
        made, active = self.counts["candidates"], self.counts["active"]
        share = max(active / made, 0.01) if made else 1.0
        needed = ceil(1.1 * (self._params.accepted - active) / share)
        at_once = BOXED_AT_ONCE if self._generator.needs_sandbox else GATED_AT_ONCE
        return list(islice(self._items, min(needed, self._params.budget - made, at_once)))

    def gated(self, made: Sequence[Made]) -> list[Gated]:
        prepared = [prepare(item.candidate) for item in made]
        with self._work.store.reading() as db:
            known = gating.known_identities(db, [item.identity_hash for item in prepared])
        subjects = [
            Subject(item.draft, item.content_hash, draw_split(self._rule, item.identity_hash, self._generator.name))
            for item in prepared
        ]
        fresh = [place for place, item in enumerate(prepared) if item.identity_hash not in known]
        climbs: list[Climb | None] = [None] * len(made)
        judge = Judging(self._work)
        found = climb([subjects[place] for place in fresh], judge) if fresh else []
        for place, one in zip(fresh, found, strict=True):
            climbs[place] = one
        void = [one for one in found if one.retry]
        if 2 * len(void) > len(found):
            raise Outage(void[0].reason)  # the sandbox is down, not these candidates: meet the batch again later
        return [
            Gated(item.index, ready, subject, one)
            for item, ready, subject, one in zip(made, prepared, subjects, climbs, strict=True)
        ]

    def steps(self, items: Sequence[Made | Dropped], gated: Sequence[Gated]) -> Iterator[Step]:
        by_index = {one.index: one for one in gated}
        for start in range(0, len(items), WRITTEN_AT_ONCE):
            part = items[start : start + WRITTEN_AT_ONCE]
            yield self._step(part, [by_index[item.index] for item in part if isinstance(item, Made)])

    def _step(self, items: Sequence[Made | Dropped], gated: Sequence[Gated]) -> Step:
        before = self.counts

        def write(db: WriteSession) -> Progress:
            counts = _with_dropped(before, items) | {"candidates": before["candidates"] + len(gated)}
            counts = self._admit(db, gated, counts)
            self.counts = counts
            done = min(1.0, counts["active"] / self._params.accepted)
            return Progress({"next": items[-1].index + 1}, counts, done)

        return write

    def _admit(self, db: WriteSession, gated: Sequence[Gated], counts: dict[str, Any]) -> dict[str, Any]:
        actor = self._work.claim.actor
        fresh = [one for one in gated if one.climb is not None]
        admitted = admit(db, [one.prepared for one in fresh], actor=actor, rule=self._rule) if fresh else []
        won = [(one, made) for one, made in zip(fresh, admitted, strict=True) if made.duplicate_of is None]
        settled = [_settled(one, made.task_id) for one, made in won]
        ends = gating.settle(db, settled, actor=actor)
        undecided = [made.task_id for one, made in won if one.climb is not None and one.climb.retry]
        if undecided:
            jobs.file(db, "factory.gate", {"task_ids": undecided}, actor=actor)
        counts = count(counts, [one.climb for one, _ in won if one.climb is not None])
        counts["duplicates"] += len(gated) - len(won)
        counts["admitted"] += len(won)
        for status in ends.values():
            counts[str(status)] = counts.get(str(status), 0) + 1
        return counts


def _with_dropped(before: Mapping[str, Any], items: Sequence[Made | Dropped]) -> dict[str, Any]:
    dropped = dict(before["dropped"])
    for item in items:
        if isinstance(item, Dropped):
            dropped[item.code] = dropped.get(item.code, 0) + 1
    return {**before, "dropped": dropped}


def _settled(one: Gated, task_id: str) -> Settled:
    assert one.climb is not None
    candidate = one.subject.candidate
    return Settled(
        task_id,
        1,
        candidate.task_type,
        candidate.verifier.name,
        one.climb.decision,
        one.climb.reason,
        [columns(receipt, one.subject) for receipt in one.climb.receipts],
    )


def _params(given: Mapping[str, Any]) -> Params:
    try:
        params = Params.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        raise JobFailed("bad_params", f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    if params.generator not in GENERATORS:
        raise JobFailed("unknown_generator", f"there is no {params.generator}; there are {', '.join(GENERATORS)}")
    return params
