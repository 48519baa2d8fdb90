"""Admission: drafts become tasks, exact duplicates are recognised, families and splits are decided.

`prepare` is pure and heavy (hashes) and runs before the transaction; `admit` writes a batch in the caller's
transaction. Near duplicates are not recognised yet.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import delete, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from service.errors import FieldError, Invalid, SplitConflict
from service.store.drafts import CandidateDraft, TaskDraft
from service.store.ids import new_id
from service.store.session import ReadSession, WriteSession
from service.store.splits import SplitRule, draw_split
from service.store.tables import Event, Family, Task, TaskAnswer, TaskParent, TaskSource, TaskTag, TaskVersion
from service.words import Split, TaskStatus
from verifiers.canonical import canonical_json, content_hash
from verifiers.registry import check_task


@dataclass(frozen=True, slots=True)
class Prepared:
    """A checked draft with its hashes, ready to be written."""

    draft: CandidateDraft
    body: Mapping[str, Any]
    content_hash: str
    identity_hash: str
    cell: str


class Admitted(NamedTuple):
    """What became of one draft. `duplicate_of` is the incumbent's id, which `task_id` then is too."""

    task_id: str
    version: int
    status: TaskStatus
    split: Split
    family_id: str
    content_hash: str
    duplicate_of: str | None


def prepare(draft: TaskDraft) -> Prepared:
    """Check a draft against its verifier's schemas and lint, and hash it.

    Raises:
        Invalid: unknown verifier, params or reference that break its rules; `errors` names each.
    """
    errors = [FieldError(*found) for found in check_task(draft.verifier.name, draft.verifier.params, draft.reference)]
    if errors:
        raise Invalid("The verifier does not take this task.", errors=errors)
    candidate = draft if isinstance(draft, CandidateDraft) else CandidateDraft.model_construct(**dict(draft))
    body = candidate.model_dump(mode="json", exclude={"split", "parents"})
    return Prepared(candidate, body, content_hash(body), _identity(candidate), _cell(candidate))


def admit(
    db: WriteSession, batch: Sequence[Prepared], *, actor: str, rule: SplitRule, may_split: bool = False
) -> list[Admitted]:
    """Write a batch of at most some hundred drafts; the answers are in its order.

    Raises:
        Invalid: a parent does not exist.
        SplitConflict: the parents of a draft lie in different splits.
    """
    incumbents = _incumbents(db, [item.identity_hash for item in batch])
    fresh: dict[str, Prepared] = {}
    for item in batch:
        if item.identity_hash not in incumbents:
            fresh.setdefault(item.identity_hash, item)
    made = _insert(db, list(fresh.values()), actor, rule, may_split)
    lost = [key for key in fresh if key not in made]  # another writer was first: read what it wrote
    incumbents |= _incumbents(db, lost)
    answers: list[Admitted] = []
    for item in batch:
        own = made.get(item.identity_hash)
        if own is not None and fresh[item.identity_hash] is item:
            answers.append(own)
            continue
        kept = own or incumbents[item.identity_hash]
        _add_source(db, kept.task_id, item.draft, actor)
        answers.append(kept._replace(duplicate_of=kept.task_id))
    return answers


def _insert(
    db: WriteSession, batch: list[Prepared], actor: str, rule: SplitRule, may_split: bool
) -> dict[str, Admitted]:
    if not batch:
        return {}
    now = datetime.now(UTC)
    families, tasks = [], []
    for item in batch:
        task_id = new_id("task")
        family_id, split, is_new = _family(db, item, rule, may_split)
        if is_new:
            families.append({"id": family_id, "split": split, "split_basis": item.identity_hash, "created_at": now})
        tasks.append(_task_row(item, task_id, family_id, split, actor, now))
    if families:
        db.execute(insert(Family), families)
    dialect = postgresql if db.get_bind().dialect.name == "postgresql" else sqlite
    statement = dialect.insert(Task).on_conflict_do_nothing(index_elements=["identity_hash"], index_where=Task.live)
    won = set(db.scalars(statement.returning(Task.id), tasks))
    losers = [row["family_id"] for row in tasks if row["id"] not in won]
    if losers:
        new = {row["id"] for row in families}
        db.execute(delete(Family).where(Family.id.in_([family for family in losers if family in new])))
    kept = [(item, row) for item, row in zip(batch, tasks, strict=True) if row["id"] in won]
    _insert_details(db, kept, actor, now)
    return {
        item.identity_hash: Admitted(
            row["id"], 1, TaskStatus.PENDING, Split(row["split"]), row["family_id"], item.content_hash, None
        )
        for item, row in kept
    }


def _task_row(item: Prepared, task_id: str, family_id: str, split: Split, actor: str, now: datetime) -> dict[str, Any]:
    draft = item.draft
    return {
        "id": task_id,
        "version": 1,
        "row_version": 1,
        "domain": draft.domain,
        "status": TaskStatus.PENDING,
        "split": split,
        "family_id": family_id,
        "content_hash": item.content_hash,
        "identity_hash": item.identity_hash,
        "live": True,
        "verifier": draft.verifier.name,
        "task_type": draft.task_type,
        "generator": draft.origin.generator if draft.origin else None,
        "licence": draft.source.licence if draft.source else None,
        "source_uri": draft.source.uri if draft.source else None,
        "cell": item.cell,
        "rkey": int(item.identity_hash[:13], 16) / 16**13,
        "receipts_key": None,
        "created_by": actor,
        "created_at": now,
        "updated_at": now,
    }


def _insert_details(
    db: WriteSession, kept: Sequence[tuple[Prepared, Mapping[str, Any]]], actor: str, now: datetime
) -> None:
    versions, answers, sources, tags, parents, events = [], [], [], [], [], []
    for item, row in kept:
        key = {"task_id": row["id"], "version": 1}
        body, draft = item.body, item.draft
        versions.append(
            key
            | {name: body[name] for name in ("prompt", "verifier", "environment", "limits", "source", "features")}
            | {name: body[name] for name in ("tags", "origin", "guess_floor")}
            | {"content_hash": item.content_hash, "created_at": now}
            | {"prompt_text": "\n".join(message.content for message in draft.prompt)}
        )
        answers.append(key | {name: body[name] for name in ("reference", "gold", "nulls", "equivalents", "mutants")})
        if draft.source:
            sources.append(_source_row(row["id"], draft, actor, now))
        tags += [{"task_id": row["id"], "tag": tag} for tag in sorted(set(draft.tags))]
        parents += [
            key
            | {"position": position, "parent_id": parent.task_id, "parent_version": parent.version}
            | {"op": parent.op, "op_version": parent.op_version, "seed": parent.seed}
            for position, parent in enumerate(draft.parents)
        ]
        events.append(
            {"id": new_id("evt"), "subject": row["id"], "kind": "task.submitted", "actor": actor, "reason": ""}
            | {"data": {"content_hash": item.content_hash}, "created_at": now}
        )
    for table, rows in (
        (TaskVersion, versions),
        (TaskAnswer, answers),
        (TaskSource, sources),
        (TaskTag, tags),
        (TaskParent, parents),
        (Event, events),
    ):
        if rows:
            db.execute(insert(table), rows)


def _family(db: WriteSession, item: Prepared, rule: SplitRule, may_split: bool) -> tuple[str, Split, bool]:
    """The family of a new task: its parents' (merged into one), else a new one with a drawn split."""
    draft = item.draft
    if not draft.parents:
        drawn = draw_split(rule, item.identity_hash, draft.origin.generator if draft.origin else None)
        return new_id("fam"), draft.split if may_split and draft.split else drawn, True
    found = {
        row.id: row
        for row in db.execute(
            select(Task.id, Task.family_id, Task.split, Task.version).where(
                Task.id.in_([parent.task_id for parent in draft.parents])
            )
        )
    }
    errors = [
        FieldError(f"/parents/{index}/task_id", "unknown_parent", "there is no such version of such a task")
        for index, parent in enumerate(draft.parents)
        if parent.task_id not in found or parent.version > found[parent.task_id].version
    ]
    if errors:
        raise Invalid("A parent does not exist.", errors=errors)
    if len({row.split for row in found.values()}) > 1:
        raise SplitConflict("The parents lie in different splits; a derived task can lie in none.")
    first, *others = sorted({row.family_id for row in found.values()})
    if others:
        db.execute(update(Task).where(Task.family_id.in_(others)).values(family_id=first))
    return first, Split(next(iter(found.values())).split), False


def _incumbents(db: ReadSession, hashes: Sequence[str]) -> dict[str, Admitted]:
    if not hashes:
        return {}
    rows = db.execute(
        select(
            Task.identity_hash, Task.id, Task.version, Task.status, Task.split, Task.family_id, Task.content_hash
        ).where(Task.identity_hash.in_(hashes), Task.live)
    )
    return {
        row.identity_hash: Admitted(
            row.id, row.version, TaskStatus(row.status), Split(row.split), row.family_id, row.content_hash, None
        )
        for row in rows
    }


def _add_source(db: WriteSession, task_id: str, draft: CandidateDraft, actor: str) -> None:
    """A duplicate keeps no row of its own, but its source is kept with the incumbent."""
    if draft.source is None:
        return
    known = db.execute(select(TaskSource.uri, TaskSource.span).where(TaskSource.task_id == task_id)).all()
    if (draft.source.uri, draft.source.span) not in {(row.uri, row.span) for row in known}:
        db.execute(insert(TaskSource), [_source_row(task_id, draft, actor, datetime.now(UTC))])


def _source_row(task_id: str, draft: CandidateDraft, actor: str, now: datetime) -> dict[str, Any]:
    source = draft.source
    assert source is not None
    return {
        "id": new_id("src"),
        "task_id": task_id,
        "uri": source.uri,
        "licence": source.licence,
        "retrieved_at": source.retrieved_at,
        "span": source.span,
        "added_by": actor,
        "created_at": now,
    }


def _identity(draft: CandidateDraft) -> str:
    """What makes two tasks the same: prompt, environment, verifier and reference; not limits, tags, source or split."""
    return content_hash(
        [
            [[message.role, unicodedata.normalize("NFC", message.content)] for message in draft.prompt],
            draft.environment.model_dump(mode="json"),
            [draft.verifier.name, draft.verifier.params],
            draft.reference,
        ]
    )


def _cell(draft: CandidateDraft) -> str:
    """The difficulty cell: what made it and its features, so that a new task is predictable from its kin."""
    maker = draft.origin.generator if draft.origin else draft.domain
    return f"{maker}|{canonical_json(draft.features) if draft.features else ''}"[:200]
