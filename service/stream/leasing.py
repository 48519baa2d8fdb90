"""Leases of a stream: what was handed out and not acknowledged comes first and in its old order, then new groups.

Never raises for want of tasks: a lease may be short or empty, and says why.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from service.errors import LeaseExpired, LeaseSuperseded, Problem, StaleConsumer
from service.store import exposure, leases, ordinals, streams
from service.store.leases import LeaseRecord
from service.store.session import WriteSession
from service.store.streams import StreamRecord
from service.stream.acknowledge import hand_back
from service.stream.serving import Ask, Leased, Serving
from service.words import LeaseState, OrdinalState, ShortReason, Split

SOON_S = 1.0


def lease(db: WriteSession, stream_id: str, ask: Ask, *, actor: str, now: datetime) -> Leased:
    """Hand out up to `ask.n` groups in the caller's transaction. Each holdout task that is shown is an exposure.

    Raises:
        NotFound: there is no such stream.
        StaleConsumer: another consumer restored the stream since this one leased from it.
    """
    stream = streams.for_update(db, stream_id)
    if stream.consumer != ask.consumer and leases.knows_consumer(db, stream_id, ask.consumer, before=stream.generation):
        raise StaleConsumer(f"{stream.consumer} has restored this stream; stop, or restore it yourself.")
    leases.expire(db, stream_id, now)
    if _too_far_apart(db, stream, ask.policy_version):
        return Leased(None, (), True, ShortReason.MAX_LAG, SOON_S)
    served = Serving(db, stream, ask)
    served.again()
    served.anew()
    leased = served.written(now)
    if stream.split == Split.HOLDOUT:
        for record in leased.items:
            exposure.record(db, record.task_id, record.task_version, actor=actor, surface="stream.lease")
    return leased


def extend(db: WriteSession, lease_id: str, now: datetime) -> datetime:
    """Give a lease its time to live once more; the answer is when it ends.

    Raises:
        LeaseExpired, LeaseSuperseded: it is not held any more.
    """
    found = leases.get(db, lease_id)
    stream = streams.for_update(db, found.stream_id)
    found = leases.get(db, lease_id)
    if (problem := fence(found, stream, now)) is not None:
        raise problem
    expires_at = max(found.expires_at, now + timedelta(seconds=found.ttl_s))
    leases.extend(db, lease_id, expires_at)
    return expires_at


class Released(NamedTuple):
    ordinal: int
    state: OrdinalState | None


def release(
    db: WriteSession, lease_id: str, wanted: Sequence[int] | None, reason: str, *, actor: str, now: datetime
) -> list[Released]:
    """Hand ordinals back (None: all that are held); those that the lease does not hold answer None.

    Raises:
        LeaseExpired, LeaseSuperseded: it is not held any more, so they are handed back already.
    """
    found = leases.get(db, lease_id)
    stream = streams.for_update(db, found.stream_id)
    found = leases.get(db, lease_id)
    held = {record.ordinal: record for record in ordinals.of_lease(db, lease_id)}
    if found.state != LeaseState.CLOSED and (problem := fence(found, stream, now)) is not None:
        raise problem
    results = []
    for ordinal in dict.fromkeys(held if wanted is None else wanted):
        state = hand_back(db, held[ordinal], reason, actor=actor) if ordinal in held else None
        results.append(Released(ordinal, state))
    leases.close_when_done(db, lease_id)
    return results


def fence(found: LeaseRecord, stream: StreamRecord, now: datetime) -> Problem | None:
    """Why a lease acknowledges nothing any more; None while it is held."""
    if found.state == LeaseState.SUPERSEDED or found.generation < stream.generation:
        return LeaseSuperseded(f"{stream.consumer} has restored the stream since this lease was given.")
    if found.state == LeaseState.EXPIRED or (found.state == LeaseState.OPEN and found.expires_at <= now):
        return LeaseExpired()
    return None


def _too_far_apart(db: WriteSession, stream: StreamRecord, policy_version: int) -> bool:
    """Whether the newest policy version would leave the oldest open lease, or the new one, beyond `max_lag`."""
    versions = [found.policy_version for found in leases.open_ones(db, stream.id)] + [policy_version]
    return max(versions) - min(versions) > stream.max_lag
