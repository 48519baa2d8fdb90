"""What recorded verdicts mean for streams: each moves difficulty once, and a full group of an `ack: group` stream is
acknowledged. Called inside the transaction that records the verdicts.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from service.store import difficulty as rows
from service.store import ordinals, streams
from service.store.difficulty import Judged
from service.store.jobs import clock
from service.store.session import ReadSession, WriteSession
from service.store.streams import StreamRecord
from service.stream import acknowledge, evidence
from service.stream.contract import GroupRef, parse_group
from service.stream.evidence import Evidence, Sample
from service.words import AckMode
from verifiers.contract import Outcome


class _Lineage(NamedTuple):
    name: str
    newest: int | None


def observe(db: WriteSession, verdict_ids: Collection[str], now: datetime | None = None) -> None:
    """Take these verdicts, already written in this transaction, as evidence; each counts once for ever.

    An attempt of a stream's group moves that stream's lineage, another one the lineage of its policy's name. Inline
    tasks, replays, our own failures, splits eval and holdout, evaluation runs and attempts without a policy move
    nothing.
    """
    now = now or clock(db)
    found = list(rows.judged(db, verdict_ids).values())
    groups = _groups(db, found)
    grouped = sorted({ref.stream_id for ref in groups.values()})
    known = {stream_id: _stream(db, stream_id) for stream_id in grouped}
    by_lineage: defaultdict[_Lineage, list[Judged]] = defaultdict(list)
    for row in countable(db, found):
        lineage = _lineage(row, groups, known)
        if lineage is not None:
            by_lineage[lineage].append(row)
    for lineage, judged in sorted(by_lineage.items(), key=lambda pair: pair[0].name):
        evidence.apply(db, lineage.name, list(map(evidence_of, judged)), lineage.newest, now)
        rows.mark_observed(db, [row.verdict_id for row in judged])
    for stream in known.values():
        if stream.ack == AckMode.GROUP:
            ids = {group_id for group_id, ref in groups.items() if ref.stream_id == stream.id}
            acknowledge.full_groups(db, stream, ids, now)


def countable(db: ReadSession, found: Sequence[Judged]) -> list[Judged]:
    """Those of these verdicts that move difficulty and have not done so: whoever moves it marks them."""
    new = [row for row in found if is_evidence(row) and not row.observed]
    movable = evidence.train_tasks(db, [evidence_of(row) for row in new])
    return [
        row
        for row in new
        if row.task_id is not None and (task := movable.get(row.task_id)) and task.version == row.task_version
    ]


def evidence_of(row: Judged) -> Evidence:
    """What one valid verdict says of its task."""
    assert row.task_id is not None
    assert row.task_version is not None
    assert row.reward is not None
    return Evidence(row.task_id, row.task_version, [Sample(row.reward, row.policy_version)])


def is_evidence(row: Judged) -> bool:
    """Whether a verdict moves difficulty: a valid outcome of a stored task, no replay, no part of an evaluation run."""
    valid = row.reward is not None and Outcome(row.outcome).valid
    return valid and row.task_id is not None and not row.replay and not row.evaluation


def _groups(db: ReadSession, found: Sequence[Judged]) -> dict[str, GroupRef]:
    """The group ids that name an ordinal of a stream here, with the same task."""
    refs = {row.group_id: ref for row in found if row.group_id and (ref := parse_group(row.group_id))}
    by_stream: defaultdict[str, set[int]] = defaultdict(set)
    for ref in refs.values():
        by_stream[ref.stream_id].add(ref.ordinal)
    served = {stream_id: ordinals.some(db, stream_id, numbers) for stream_id, numbers in by_stream.items()}
    kept: dict[str, GroupRef] = {}
    for row in found:
        if row.group_id in refs:
            ref = refs[row.group_id]
            record = served[ref.stream_id].get(ref.ordinal)
            if record is not None and record.task_id == row.task_id:
                kept[row.group_id] = ref
    return kept


def _stream(db: WriteSession, stream_id: str) -> StreamRecord:
    """The stream; held when its groups acknowledge themselves, before any difficulty is locked."""
    stream = streams.get(db, stream_id)
    return streams.for_update(db, stream_id) if stream.ack == AckMode.GROUP else stream


def _lineage(row: Judged, groups: dict[str, GroupRef], known: dict[str, StreamRecord]) -> _Lineage | None:
    ref = groups.get(row.group_id) if row.group_id else None
    if ref is not None:
        stream = known[ref.stream_id]
        return _Lineage(stream.lineage, stream.policy_version)
    return _Lineage(row.policy, None) if row.policy else None
