"""Attempts and verdicts: loading what a verdict needs, recording what came of it, reading it back."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import select, tuple_
from sqlalchemy.dialects import postgresql, sqlite

from service.errors import NotFound
from service.store.ids import new_id
from service.store.paging import Page, Pager
from service.store.session import ReadSession, WriteSession
from service.store.tables import Attempt, Evidence, Task, TaskAnswer, TaskVersion, VerdictRow
from service.words import Split
from verifiers.canonical import content_hash
from verifiers.contract import Verdict


class Judgeable(NamedTuple):
    """What is needed to judge a response to one version of a stored task."""

    task_id: str
    version: int
    split: Split
    verifier: Mapping[str, Any]
    reference: Mapping[str, Any]
    limits: Mapping[str, Any]
    environment: Mapping[str, Any]


class Recorded(NamedTuple):
    """An attempt with its verdict, as written."""

    attempt: Attempt
    verdict: VerdictRow


class About(NamedTuple):
    """What is kept of an attempt besides its response. `task` None: the task came inline."""

    task: Judgeable | None
    inline_task: Mapping[str, Any] | None
    response: Any
    policy: str | None = None
    policy_version: int | None = None
    run_id: str | None = None
    group_id: str | None = None
    tokens: int | None = None


def newest_versions(db: ReadSession, ids: Sequence[str]) -> dict[str, int]:
    """The newest version of each of these tasks that exist."""
    rows = db.execute(select(Task.id, Task.version).where(Task.id.in_(ids)))
    return {row.id: row.version for row in rows}


def judgeable(db: ReadSession, wanted: Sequence[tuple[str, int]], *, holdout: bool) -> dict[tuple[str, int], Judgeable]:
    """The versions that exist and that the caller may know of."""
    question = (
        select(
            TaskVersion.task_id,
            TaskVersion.version,
            Task.split,
            TaskVersion.verifier,
            TaskAnswer.reference,
            TaskVersion.limits,
            TaskVersion.environment,
        )
        .join(Task, Task.id == TaskVersion.task_id)
        .join(TaskAnswer, (TaskAnswer.task_id == Task.id) & (TaskAnswer.version == TaskVersion.version))
        .where(tuple_(TaskVersion.task_id, TaskVersion.version).in_(list(wanted)))
    )
    if not holdout:
        question = question.where(Task.split != Split.HOLDOUT)
    return {
        (row.task_id, row.version): Judgeable(
            row.task_id, row.version, Split(row.split), row.verifier, row.reference, row.limits, row.environment
        )
        for row in db.execute(question)
    }


def record(db: WriteSession, judged: Sequence[tuple[About, Verdict]], *, actor: str) -> list[Recorded]:
    """Write attempts with their verdicts, in the order given."""
    now = datetime.now(UTC)
    _keep_evidence(db, [verdict for _, verdict in judged])
    found = []
    for about, verdict in judged:
        attempt = Attempt(
            id=new_id("att"),
            task_id=about.task.task_id if about.task else None,
            task_version=about.task.version if about.task else None,
            inline_task=about.inline_task,
            response=about.response,
            policy=about.policy,
            policy_version=about.policy_version,
            run_id=about.run_id,
            stream_id=None,
            ordinal=None,
            group_id=about.group_id,
            tokens=about.tokens,
            actor=actor,
            created_at=now,
        )
        found.append(Recorded(attempt, verdict_row(attempt.id, verdict, now)))
    db.add_all(item.attempt for item in found)
    db.flush()
    db.add_all(item.verdict for item in found)
    db.flush()
    return found


def add_replay(db: WriteSession, original: VerdictRow, verdict: Verdict) -> VerdictRow:
    """Write the verdict of a replay beside the original; nothing is overwritten."""
    _keep_evidence(db, [verdict])
    row = verdict_row(original.attempt_id, verdict, datetime.now(UTC), replay_of=original.id)
    db.add(row)
    db.flush()
    return row


def verdict_row(attempt_id: str, verdict: Verdict, now: datetime, replay_of: str | None = None) -> VerdictRow:
    return VerdictRow(
        id=new_id("ver"),
        attempt_id=attempt_id,
        outcome=verdict.outcome,
        reward=verdict.reward,
        process=verdict.process,
        code=verdict.code,
        detail=_storable(verdict.detail)[:2000],
        extracted=_storable(verdict.extracted)[:4096] if verdict.extracted is not None else None,
        normal_form=_storable(verdict.normal_form)[:4096] if verdict.normal_form is not None else None,
        tier=verdict.tier,
        trust=verdict.trust,
        verifier=verdict.verifier,
        verifier_version=verdict.verifier_version,
        fingerprint=verdict.fingerprint,
        image=verdict.image,
        judge=None,
        seed=verdict.seed,
        cost={
            "queue_ms": verdict.cost.queue_ms,
            "verify_ms": verdict.cost.verify_ms,
            "cpu_ms": verdict.cost.cpu_ms,
        },
        evidence_sha256=content_hash(dict(verdict.evidence)) if verdict.evidence else None,
        replay_of=replay_of,
        observed=False,
        created_at=now,
    )


def _storable(text: str) -> str:
    """What a response held may hold NUL and lone surrogates, which no database takes as text."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _keep_evidence(db: WriteSession, verdicts: Sequence[Verdict]) -> None:
    found = {content_hash(dict(v.evidence)): dict(v.evidence) for v in verdicts if v.evidence}
    if found:
        dialect = postgresql if db.get_bind().dialect.name == "postgresql" else sqlite
        rows = [{"sha256": digest, "data": data} for digest, data in sorted(found.items())]
        db.execute(dialect.insert(Evidence).on_conflict_do_nothing(), rows)


def get(db: ReadSession, verdict_id: str, *, holdout: bool) -> Recorded:
    """A verdict with its attempt.

    Raises:
        NotFound: there is none, or its task is a holdout that the caller may not know of.
    """
    row = db.get(VerdictRow, verdict_id)
    if row is None:
        raise NotFound(f"there is no verdict {verdict_id}")
    attempt = db.get_one(Attempt, row.attempt_id)
    if attempt.task_id is not None and not holdout:
        task = db.get_one(Task, attempt.task_id)
        if task.split == Split.HOLDOUT:
            raise NotFound(f"there is no verdict {verdict_id}")
    return Recorded(attempt, row)


def of_task(db: ReadSession, task_id: str, pager: Pager) -> Page[Recorded]:
    """The attempts at a task with their first verdicts, newest first."""
    question = (
        select(Attempt, VerdictRow)
        .join(VerdictRow, (VerdictRow.attempt_id == Attempt.id) & VerdictRow.replay_of.is_(None))
        .where(Attempt.task_id == task_id)
        .order_by(Attempt.id.desc())
        .limit(pager.limit + 1)
    )
    if (after := pager.after()) is not None:
        question = question.where(Attempt.id < after[0])
    rows = [Recorded(attempt, verdict) for attempt, verdict in db.execute(question)]
    return pager.page(rows, lambda row: [row.attempt.id])
