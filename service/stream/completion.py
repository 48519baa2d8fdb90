"""Acknowledgements: `:complete` of a lease, item by item, idempotent by (lease, ordinal).

A late holder acknowledges nothing, but what it measured is evidence, counted once; the caller commits that and then
raises the problem.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from service.errors import CompletionConflict, Conflict, FieldError, Invalid, Problem
from service.store import difficulty as rows
from service.store import events, leases, ordinals, streams
from service.store.difficulty import Judged
from service.store.leases import LeaseRecord
from service.store.ordinals import OrdinalRecord
from service.store.session import WriteSession
from service.store.streams import StreamRecord
from service.stream import evidence, observe
from service.stream.evidence import Evidence, Group, Sample
from service.stream.leasing import fence
from service.words import OrdinalState


class Completion(NamedTuple):
    """One item: the group's results (verdicts, or rewards with None where a rollout was void), and the trainer's notes.

    `body_sha256` is the hash of the item as it was sent.
    """

    ordinal: int
    body_sha256: str
    verdict_ids: Sequence[str] | None = None
    rewards: Sequence[float | None] | None = None
    weight: float = 1.0
    tokens: int | None = None
    mean_abs_advantage: float | None = None
    step: int | None = None
    policy_version: int | None = None
    reason: str | None = None


class ItemResult(NamedTuple):
    """`completed` now, `already` before with the same body, or the problem of this item alone."""

    ordinal: int
    status: str
    problem: Problem | None = None


class Completed(NamedTuple):
    """The answer of each item, or the problem of the whole lease (to be raised after the commit)."""

    items: Sequence[ItemResult]
    problem: Problem | None


def complete(db: WriteSession, lease_id: str, items: Sequence[Completion], *, actor: str, now: datetime) -> Completed:
    """Acknowledge these items in the caller's transaction.

    Raises:
        NotFound: there is no such lease.
    """
    stream = streams.for_update(db, leases.get(db, lease_id).stream_id)
    work = _Work(db, stream, leases.get(db, lease_id), items, now)
    problem = fence(work.lease, stream, now)
    if problem is not None and not all(work.settled(item) for item in items):
        work.count_late(actor)
        return Completed((), problem)
    results = [work.settle(item) for item in items]
    work.count()
    leases.close_when_done(db, lease_id)
    return Completed(results, None)


def unsettled(db: WriteSession, lease_id: str, wanted: Collection[int]) -> dict[int, OrdinalRecord]:
    """Those of these ordinals that this lease has not acknowledged before. Holds the stream until the end."""
    stream = streams.for_update(db, leases.get(db, lease_id).stream_id)
    return {
        ordinal: row
        for ordinal, row in ordinals.some(db, stream.id, wanted).items()
        if row.state != OrdinalState.COMPLETED or row.lease_id != lease_id
    }


class _Work:
    """One `:complete`: what it names, read at once, and the evidence that comes of it, written at once."""

    def __init__(
        self, db: WriteSession, stream: StreamRecord, lease: LeaseRecord, items: Sequence[Completion], now: datetime
    ) -> None:
        self.lease = lease
        self._db = db
        self._stream = stream
        self._items = items
        self._now = now
        self._rows = ordinals.some(db, stream.id, {item.ordinal for item in items})
        self._verdicts = rows.judged(db, {name for item in items for name in item.verdict_ids or ()})
        self._judged = rows.groups_with_verdicts(db, {row.group_id for row in self._rows.values()})
        self._done: dict[int, str | None] = {
            row.ordinal: row.body_sha256
            for row in self._rows.values()
            if row.state == OrdinalState.COMPLETED and row.lease_id == lease.id
        }
        self._evidence: list[Evidence] = []
        self._counted: list[Judged] = []

    def settled(self, item: Completion) -> bool:
        return item.ordinal in self._done

    def settle(self, item: Completion) -> ItemResult:
        if self.settled(item):
            if self._done[item.ordinal] in {None, item.body_sha256}:  # None: the group acknowledged itself
                return ItemResult(item.ordinal, "already")
            return ItemResult(item.ordinal, "problem", CompletionConflict())
        row = self._rows.get(item.ordinal)
        if row is None or row.lease_id != self.lease.id or row.state != OrdinalState.LEASED:
            state = row.state if row else "unknown"
            return ItemResult(
                item.ordinal, "problem", Conflict(f"This lease does not hold the ordinal; it is {state}.")
            )
        if foreign := self._foreign(item, row):
            problem = Invalid("A verdict is not of this ordinal's task.", errors=foreign)
            return ItemResult(item.ordinal, "problem", problem)
        self._acknowledge(item, row)
        self._done[item.ordinal] = item.body_sha256
        return ItemResult(item.ordinal, "completed")

    def count(self) -> None:
        """Write the evidence of all items."""
        new = observe.countable(self._db, self._counted)
        items = [*map(observe.evidence_of, new), *self._evidence]
        evidence.apply(self._db, self._stream.lineage, items, self._stream.policy_version, self._now)
        rows.mark_observed(self._db, [row.verdict_id for row in new])

    def count_late(self, actor: str) -> None:
        """Keep what a late holder measured: verdicts by themselves, posted rewards once for each (lease, ordinal)."""
        before = events.data_of(self._db, self.lease.id, "lease.late")
        known = {data["ordinal"] for data in before}
        for item in self._items:
            row = self._rows.get(item.ordinal)
            if row is None or item.ordinal in known or self._foreign(item, row):
                continue
            known.add(item.ordinal)
            events.record(self._db, self.lease.id, "lease.late", actor, data={"ordinal": item.ordinal})
            self._gather(item, row, whole_group=False)
        self.count()

    def _acknowledge(self, item: Completion, row: OrdinalRecord) -> None:
        version = self.lease.policy_version if item.policy_version is None else item.policy_version
        rewards = self._gather(item, row, whole_group=True)
        result: Mapping[str, Any] = {
            "rewards": rewards,
            "verdict_ids": list(item.verdict_ids) if item.verdict_ids is not None else None,
            "tokens": item.tokens,
            "mean_abs_advantage": item.mean_abs_advantage,
        }
        ordinals.complete(
            self._db,
            self._stream.id,
            row.ordinal,
            {
                "weight": item.weight,
                "step": item.step,
                "policy_version": version,
                "stale": self._stream.policy_version - version > self._stream.max_lag,
                "observed": rewards is not None,
                "body_sha256": item.body_sha256,
                "reason": item.reason,
                "result": result,
                "completed_at": self._now,
            },
        )

    def _gather(self, item: Completion, row: OrdinalRecord, *, whole_group: bool) -> list[float | None] | None:
        """Note the evidence of an item; the answer is its rewards, None when it has none."""
        samples: list[Sample] = []
        if item.verdict_ids is not None:
            verdicts = [self._verdicts[name] for name in dict.fromkeys(item.verdict_ids)]
            self._counted += verdicts
            rewards = [verdict.reward for verdict in verdicts]
        elif item.rewards is not None:
            rewards = list(item.rewards)
            version = self.lease.policy_version if item.policy_version is None else item.policy_version
            if row.group_id not in self._judged:  # else each verdict of the group was counted when it was recorded
                samples = [Sample(reward, version) for reward in rewards if reward is not None]
        else:
            return None
        valid = [reward for reward in rewards if reward is not None and math.isfinite(reward)]
        groups = [Group(valid, self._stream.draws)] if whole_group and not row.observed else []
        self._evidence.append(Evidence(row.task_id, row.task_version, samples, groups))
        return rewards

    def _foreign(self, item: Completion, row: OrdinalRecord) -> list[FieldError]:
        found = []
        for place, name in enumerate(item.verdict_ids or ()):
            verdict = self._verdicts.get(name)
            if verdict is None or verdict.replay or verdict.task_id != row.task_id:
                rule = "must be a verdict of an attempt at the ordinal's task"
                found.append(FieldError(f"/verdict_ids/{place}", "foreign_verdict", rule))
        return found
