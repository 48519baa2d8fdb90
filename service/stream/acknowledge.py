"""Groups that acknowledge themselves (`ack: group`), and groups with too few valid rollouts."""

from collections.abc import Collection
from datetime import datetime

from service.store import difficulty as rows
from service.store import events, leases, ordinals
from service.store.ordinals import OrdinalRecord
from service.store.session import WriteSession
from service.store.streams import StreamRecord
from service.stream import evidence
from service.stream.contract import parse_group
from service.stream.evidence import Evidence, Group
from service.words import LeaseState, OrdinalState

TOO_FEW = "too_few_valid"
MOST_TOO_FEW = 3
"""Tries with too few valid rollouts after which an ordinal is withdrawn and its task flagged."""


def full_groups(db: WriteSession, stream: StreamRecord, group_ids: Collection[str], now: datetime) -> None:
    """Acknowledge those of these groups that are full. The caller holds the stream."""
    numbers = {ref.ordinal for ref in map(parse_group, group_ids) if ref is not None}
    for record in ordinals.some(db, stream.id, numbers).values():
        if record.group_id in group_ids and record.state == OrdinalState.LEASED and record.lease_id:
            lease = leases.get(db, record.lease_id)
            if lease.state == LeaseState.OPEN and lease.expires_at > now:
                _acknowledge(db, stream, record, now)


def _acknowledge(db: WriteSession, stream: StreamRecord, record: OrdinalRecord, now: datetime) -> None:
    attempts = [row for row in rows.judged_group(db, record.group_id) if row.task_id == record.task_id]
    if len(attempts) < stream.group_size or record.lease_id is None:
        return
    rewards = [row.reward for row in attempts if row.reward is not None]
    if len(rewards) < min(2, stream.group_size):
        hand_back(db, record, TOO_FEW, actor="stream")
    else:
        result = {"verdict_ids": [row.verdict_id for row in attempts], "rewards": [row.reward for row in attempts]}
        values = {"weight": 1.0, "observed": True, "result": result, "completed_at": now}
        ordinals.complete(db, stream.id, record.ordinal, values)
        group = Evidence(record.task_id, record.task_version, groups=[Group(rewards, stream.draws)])
        evidence.apply(db, stream.lineage, [group], stream.policy_version, now)
    leases.close_when_done(db, record.lease_id)


def hand_back(db: WriteSession, record: OrdinalRecord, reason: str, *, actor: str) -> OrdinalState:
    """Open a leased ordinal again; after three tries with too few valid rollouts withdraw it and flag its task."""
    too_few = record.too_few + (reason == TOO_FEW)
    if too_few < MOST_TOO_FEW:
        ordinals.reopen(db, record.stream_id, record.ordinal, reason=reason, too_few=too_few)
        return OrdinalState.OPEN
    ordinals.withdraw(db, record.stream_id, record.ordinal, reason)
    place = {"stream_id": record.stream_id, "ordinal": record.ordinal, "tries": record.tries}
    events.record(db, record.task_id, "task.flagged", actor, reason, place)
    return OrdinalState.WITHDRAWN
