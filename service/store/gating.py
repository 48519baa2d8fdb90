"""What the gates read of stored tasks, and what their results change: receipts, evidence, status, events."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import and_, insert, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from service.store.drafts import CandidateDraft
from service.store.ids import new_id
from service.store.required_gates import current_key, current_keys
from service.store.session import ReadSession, WriteSession
from service.store.tables import Event, Evidence, Receipt, Task, TaskAnswer, TaskVersion
from service.words import Split, TaskStatus
from verifiers.canonical import content_hash

GATEABLE = (TaskStatus.PENDING, TaskStatus.ACTIVE, TaskStatus.QUARANTINED)


class StoredTask(NamedTuple):
    """The current version of a task, with its answers."""

    id: str
    version: int
    status: TaskStatus
    split: Split
    content_hash: str
    candidate: CandidateDraft


class Settled(NamedTuple):
    """What the gates say of one version. `decision` None: nothing is decided, it stays as it is.

    `receipts` are columns of the receipt table, with `evidence` (a JSON object or None) instead of its hash.
    """

    task_id: str
    version: int
    task_type: str
    verifier: str
    decision: TaskStatus | None
    reason: str
    receipts: Sequence[Mapping[str, Any]]


def bodies(db: ReadSession, ids: Sequence[str]) -> list[StoredTask]:
    """The tasks of these ids that can be gated, in the order of the ids; retired and rejected ones are left out."""
    rows = db.execute(
        select(Task, TaskVersion, TaskAnswer)
        .join(TaskVersion, and_(TaskVersion.task_id == Task.id, TaskVersion.version == Task.version))
        .join(TaskAnswer, and_(TaskAnswer.task_id == Task.id, TaskAnswer.version == Task.version))
        .where(Task.id.in_(ids), Task.status.in_(GATEABLE))
    )
    found = {task.id: _stored(task, version, answer) for task, version, answer in rows}
    return [found[task_id] for task_id in ids if task_id in found]


def _stored(task: Task, version: TaskVersion, answer: TaskAnswer) -> StoredTask:
    body = {"domain": task.domain, "task_type": task.task_type}
    body |= {name: getattr(version, name) for name in ("prompt", "verifier", "environment", "limits", "source")}
    body |= {name: getattr(version, name) for name in ("features", "tags", "origin", "guess_floor")}
    body |= {name: getattr(answer, name) for name in ("reference", "gold", "nulls", "equivalents", "mutants")}
    candidate = CandidateDraft.model_validate(body)
    return StoredTask(
        task.id, version.version, TaskStatus(task.status), Split(task.split), task.content_hash, candidate
    )


def ids_to_gate(
    db: ReadSession,
    *,
    after: str = "",
    limit: int = 500,
    statuses: Sequence[str] = (),
    domain: str | None = None,
    generator: str | None = None,
    verifier: str | None = None,
) -> list[str]:
    """Ids of tasks to gate, in their order. `domain` means it and what is below it."""
    question = select(Task.id).where(Task.id > after, Task.status.in_(statuses or GATEABLE)).order_by(Task.id)
    if domain is not None:
        question = question.where(or_(Task.domain == domain, Task.domain.startswith(f"{domain}.", autoescape=True)))
    if generator is not None:
        question = question.where(Task.generator == generator)
    if verifier is not None:
        question = question.where(Task.verifier == verifier)
    return list(db.scalars(question.limit(limit)))


def stale_ids(db: ReadSession, *, after: str = "", limit: int = 500) -> list[str]:
    """Ids of active tasks whose receipts are void: a gate's or their verifier's version has changed since."""
    void = or_(Task.receipts_key.is_(None), Task.receipts_key.not_in(current_keys()))
    question = select(Task.id).where(Task.id > after, Task.status == TaskStatus.ACTIVE, void)
    return list(db.scalars(question.order_by(Task.id).limit(limit)))


def known_identities(db: ReadSession, hashes: Sequence[str]) -> set[str]:
    """Which of these identities some task has or had: a rejected one is a tombstone, and is not paid for again."""
    found = db.scalars(
        select(Task.identity_hash).where(
            Task.identity_hash.in_(hashes), or_(Task.live, Task.status == TaskStatus.REJECTED)
        )
    )
    return set(found)


def settle(db: WriteSession, settled: Sequence[Settled], *, actor: str) -> dict[str, TaskStatus]:
    """Write the receipts and move the statuses; answers the status that each task then has.

    A pass makes a pending task active, a fail rejects it; a fail of an active one quarantines it. A quarantined task
    stays where it is, whatever the gates say: a person decides. Receipts of an old version are kept and change nothing.
    """
    if not settled:
        return {}
    now = datetime.now(UTC)
    _write_receipts(db, settled, now)
    current = {
        row.id: row
        for row in db.execute(
            select(Task.id, Task.status, Task.version)
            .where(Task.id.in_([item.task_id for item in settled]))
            .with_for_update()
        )
    }
    events, ends = [], {}
    moves: dict[tuple[TaskStatus, str | None], list[str]] = {}
    for item in settled:
        row = current[item.task_id]
        was = TaskStatus(row.status)
        to = _next(was, item.decision) if row.version == item.version else was
        ends[item.task_id] = to
        passed = item.decision is TaskStatus.ACTIVE and row.version == item.version
        if to is not was or passed:
            key = current_key(item.task_type, item.verifier) if passed else None
            moves.setdefault((to, key), []).append(item.task_id)
        if to is not was:
            kind = {TaskStatus.ACTIVE: "activated"}.get(to, str(to))
            events.append(_event(item, f"task.{kind}", {"from": was, "to": to}, actor, now))
        elif item.decision is None:
            events.append(_event(item, "task.gates_undecided", {}, actor, now))
    for (to, key), ids in moves.items():
        values: dict[str, Any] = {"status": to, "row_version": Task.row_version + 1, "updated_at": now}
        values |= {"receipts_key": key} if key else {}
        values |= {"live": False} if to is TaskStatus.REJECTED else {}
        db.execute(update(Task).where(Task.id.in_(ids)).values(**values).execution_options(synchronize_session=False))
    if events:
        db.execute(insert(Event), events)
    return ends


def _next(status: TaskStatus, decision: TaskStatus | None) -> TaskStatus:
    if status is TaskStatus.PENDING and decision is not None:
        return decision
    if status is TaskStatus.ACTIVE and decision is TaskStatus.REJECTED:
        return TaskStatus.QUARANTINED
    return status


def _event(item: Settled, kind: str, data: Mapping[str, Any], actor: str, now: datetime) -> dict[str, Any]:
    return {
        "id": new_id("evt"),
        "subject": item.task_id,
        "kind": kind,
        "actor": actor,
        "reason": item.reason[:1000],
        "data": {"version": item.version, **data},
        "created_at": now,
    }


def _write_receipts(db: WriteSession, settled: Sequence[Settled], now: datetime) -> None:
    evidence: dict[str, Mapping[str, Any]] = {}
    rows = []
    for item in settled:
        for receipt in item.receipts:
            columns = dict(receipt)
            data = columns.pop("evidence")
            digest = content_hash(data) if data else None
            if digest:
                evidence[digest] = data
            rows.append(
                columns
                | {"id": new_id("rct"), "task_id": item.task_id, "version": item.version, "created_at": now}
                | {"evidence_sha256": digest}
            )
    if evidence:
        dialect = postgresql if db.get_bind().dialect.name == "postgresql" else sqlite
        db.execute(
            dialect.insert(Evidence).on_conflict_do_nothing(),
            [{"sha256": digest, "data": data} for digest, data in evidence.items()],
        )
    if rows:
        db.execute(insert(Receipt), rows)
