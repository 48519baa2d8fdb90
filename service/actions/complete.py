"""Acknowledge groups of a lease; responses that come with them are judged first, with no session open."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.actions import verify
from service.actions.verify import Asked
from service.errors import Problem
from service.store import leases, ordinals, streams
from service.store.ids import task_ref
from service.store.jobs import clock
from service.store.session import ReadSession, Store
from service.stream import completion
from service.stream.completion import Completed, Completion
from verifiers.engine import Engine

Responses = Mapping[int, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class _Sample:
    """One response to judge, of one ordinal."""

    ordinal: int
    asked: Asked


def complete(
    store: Store,
    engine: Engine,
    lease_id: str,
    items: Sequence[Completion],
    responses: Responses,
    *,
    actor: str,
    holdout: bool,
) -> Completed:
    """Acknowledge `items`; `responses` holds, by ordinal, those that are still to be judged.

    Raises:
        NotFound: there is no such lease.
        LeaseExpired, LeaseSuperseded: it is not held any more. What was measured is kept all the same.
    """
    samples: list[_Sample] = []
    if responses:
        with store.reading() as db:
            samples = _samples(db, lease_id, items, responses)
            loaded = verify.load(db, [sample.asked for sample in samples], holdout=holdout)
        judged = verify.judge(engine, loaded)
    with store.writing() as db:
        if samples:
            # a repeated request finds its groups acknowledged: nothing is recorded twice
            left = completion.unsettled(db, lease_id, responses)
            kept = [place for place, sample in enumerate(samples) if sample.ordinal in left]
            found = verify.record(db, [loaded[i] for i in kept], [judged[i] for i in kept], actor=actor)
            verdicts: defaultdict[int, list[str]] = defaultdict(list)
            for place, recorded in zip(kept, found, strict=True):
                if not isinstance(recorded, Problem):
                    verdicts[samples[place].ordinal].append(recorded.verdict.id)
            items = [
                item._replace(verdict_ids=verdicts[item.ordinal]) if item.ordinal in verdicts else item
                for item in items
            ]
        done = completion.complete(db, lease_id, items, actor=actor, now=clock(db))
    if done.problem is not None:
        raise done.problem
    return done


def _samples(db: ReadSession, lease_id: str, items: Sequence[Completion], responses: Responses) -> list[_Sample]:
    lease = leases.get(db, lease_id)
    stream = streams.get(db, lease.stream_id)
    rows = ordinals.some(db, stream.id, responses)
    found = []
    for item in items:
        row = rows.get(item.ordinal)
        if row is None or (row.lease_id == lease_id and row.body_sha256 == item.body_sha256):
            continue
        version = lease.policy_version if item.policy_version is None else item.policy_version
        for response in responses.get(item.ordinal, ()):
            asked = Asked(
                response,
                ref=task_ref(row.task_id, row.task_version),
                policy=stream.lineage,
                policy_version=version,
                group_id=row.group_id,
            )
            found.append(_Sample(item.ordinal, asked))
    return found
