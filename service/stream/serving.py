"""One lease being filled: what is open first, then new groups, as many as the answer has room for."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from service.store import leases, ordinals, stream_items, streams
from service.store.leases import LeaseRecord
from service.store.ordinals import OrdinalRecord
from service.store.session import WriteSession
from service.store.stream_items import TaskKey
from service.store.streams import StreamRecord
from service.stream.contract import GroupRef, StreamRequest
from service.stream.drawing import Drawing, NewGroup, NewGroups
from service.stream.token import SPAN
from service.words import OrdinalState, ShortReason

LARGEST_ANSWER = 64 * 2**20
"""Characters of prompts in one answer."""

LATER_S = 5.0


class Ask(NamedTuple):
    """What a consumer asks for. `ttl_s` unset: three times the p95 of a group's time."""

    n: int
    policy_version: int
    consumer: str
    ttl_s: float | None = None


class Leased(NamedTuple):
    """The answer. No lease is made when there is nothing to hand out."""

    lease: LeaseRecord | None
    items: Sequence[OrdinalRecord]
    short: bool
    reason: ShortReason
    retry_after_s: float | None


class Serving:
    """One lease being filled: counts, the room in the answer, and why it stopped."""

    def __init__(self, db: WriteSession, stream: StreamRecord, ask: Ask) -> None:
        self._db = db
        self._stream = stream
        self._ask = ask
        self._room = LARGEST_ANSWER
        self._again: list[OrdinalRecord] = []
        self._new: NewGroups | None = None
        self._stopped: ShortReason | None = None

    @property
    def _missing(self) -> int:
        return self._ask.n - len(self._again)

    def again(self) -> None:
        """Open ordinals, in their order; those whose task may not be served any more are withdrawn."""
        after = -1
        while self._missing > 0 and self._stopped is None:
            batch = ordinals.waiting(self._db, self._stream.id, self._stream.split, after, self._missing)
            if not batch:
                return
            after = batch[-1].record.ordinal
            for found in batch:
                if found.broken is not None:
                    ordinals.withdraw(self._db, self._stream.id, found.record.ordinal, found.broken)
            servable = [found.record for found in batch if found.broken is None]
            fitting = self._fitting([TaskKey(record.task_id, record.task_version) for record in servable])
            self._again += servable[:fitting]

    def anew(self) -> None:
        """New groups for what is missing, at most one pass over the snapshot."""
        n = min(self._missing, self._stream.snapshot_count)
        if n <= 0 or self._stopped is not None:
            return
        lowest = self._again[0].ordinal if self._again else self._stream.next_ordinal
        lowest = min(lowest, ordinals.watermark(self._db, self._stream.id, self._stream.next_ordinal))
        if self._stream.next_ordinal + n - lowest > SPAN:
            n, self._stopped = SPAN - (self._stream.next_ordinal - lowest), ShortReason.MAX_CANDIDATES
        drawing = Drawing(self._db, self._stream, StreamRequest.model_validate(_request(self._stream)))
        while n > 0:
            room = self._room
            self._new = drawing.groups(n)
            n = self._fitting([TaskKey(group.task_id, group.version) for group in self._new.groups])
            if n == len(self._new.groups):
                return
            self._room = room
        self._new = None

    def written(self, now: datetime) -> Leased:
        """Write the lease and its ordinals, and move the stream."""
        new = self._new.groups if self._new else ()
        version = max(self._stream.policy_version, self._ask.policy_version)
        if not self._again and not new:
            reason = self._stopped or ShortReason.NO_SERVABLE_TASK
            return Leased(None, (), True, reason, LATER_S)
        made = leases.create(
            self._db,
            self._stream.id,
            generation=self._stream.generation,
            consumer=self._ask.consumer,
            policy_version=self._ask.policy_version,
            ttl_s=self._ask.ttl_s or leases.time_to_live(self._db, self._stream.id),
            now=now,
        )
        again = [self._next_try(record, made) for record in self._again]
        ordinals.lease_again(self._db, again)
        first = self._stream.next_ordinal
        fresh = [self._first_try(first + at, group, made) for at, group in enumerate(new)]
        ordinals.append(self._db, fresh)
        streams.advance(
            self._db,
            self._stream.id,
            next_ordinal=first + len(fresh),
            draws=self._stream.draws + bool(fresh),
            shares=self._new.shares if self._new else self._stream.shares,
            policy_version=version,
        )
        return self._answer(made, [*again, *fresh])

    def _answer(self, made: LeaseRecord, items: Sequence[OrdinalRecord]) -> Leased:
        short = len(items) < self._ask.n
        if short:
            reason = self._stopped or ShortReason.NO_SERVABLE_TASK
        else:
            reason = ShortReason.QUOTA if self._new and self._new.lent else ShortReason.TARGET_MET
        return Leased(made, items, short, reason, None)

    def _fitting(self, keys: Sequence[TaskKey]) -> int:
        """How many of these prompts, in their order, fit into the answer (the first of an answer always does)."""
        sizes = stream_items.sizes(self._db, keys)
        for place, key in enumerate(keys):
            if sizes[key] > self._room and (place or self._again):
                self._stopped = ShortReason.ANSWER_SIZE
                return place
            self._room -= sizes[key]
        return len(keys)

    def _next_try(self, record: OrdinalRecord, made: LeaseRecord) -> OrdinalRecord:
        tries = record.tries + 1
        return replace(
            record,
            state=OrdinalState.LEASED,
            lease_id=made.id,
            tries=tries,
            group_id=str(GroupRef(record.stream_id, record.ordinal, tries)),
            policy_version=made.policy_version,
        )

    def _first_try(self, ordinal: int, group: NewGroup, made: LeaseRecord) -> OrdinalRecord:
        return OrdinalRecord(
            stream_id=self._stream.id,
            ordinal=ordinal,
            task_id=group.task_id,
            task_version=group.version,
            domain=group.domain,
            group_id=str(GroupRef(self._stream.id, ordinal, 1)),
            state=OrdinalState.LEASED,
            lease_id=made.id,
            tries=1,
            too_few=0,
            p=group.p,
            p_informative=group.p_informative,
            why=group.why,
            policy_version=made.policy_version,
            weight=None,
            step=None,
            stale=False,
            observed=False,
            body_sha256=None,
            reason=None,
        )


def _request(stream: StreamRecord) -> dict[str, object]:
    return {"name": stream.name, "domains": stream.domains, "policy": stream.policy}
