"""Tasks: reading, listing, and the status machine. Every change is an event with its actor and reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, delete, exists, func, insert, or_, select

from service.errors import Conflict, NotFound
from service.store import events
from service.store.paging import Page, Pager
from service.store.session import ReadSession, WriteSession
from service.store.tables import Task, TaskAnswer, TaskSource, TaskTag, TaskVersion
from service.words import Split, TaskStatus

MOVES: Mapping[TaskStatus, frozenset[TaskStatus]] = {
    TaskStatus.PENDING: frozenset((TaskStatus.ACTIVE, TaskStatus.QUARANTINED, TaskStatus.REJECTED, TaskStatus.RETIRED)),
    TaskStatus.ACTIVE: frozenset((TaskStatus.QUARANTINED, TaskStatus.RETIRED)),
    TaskStatus.QUARANTINED: frozenset((TaskStatus.ACTIVE, TaskStatus.REJECTED, TaskStatus.RETIRED)),
    TaskStatus.REJECTED: frozenset((TaskStatus.RETIRED,)),
    TaskStatus.RETIRED: frozenset(),
}
ENDED = frozenset((TaskStatus.REJECTED, TaskStatus.RETIRED))
"""Statuses whose identity may be submitted again: a rejected or retired task is no duplicate of anything."""

HEAD_CHARACTERS = 200


class Listed(NamedTuple):
    """One row of a list."""

    task: Task
    prompt_head: str
    tags: Sequence[str]


class Whole(NamedTuple):
    """One version of a task, and its sources; `answers` only where they were asked for."""

    task: Task
    version: TaskVersion
    sources: Sequence[TaskSource]
    answers: TaskAnswer | None
    tags: Sequence[str]
    """The task's tags of now, whatever the version was submitted with."""


@dataclass(frozen=True, slots=True)
class Filters:
    """What a list is filtered by. Values of one field are alternatives; fields narrow one another."""

    status: Sequence[str] = ()
    domain: Sequence[str] = ()
    split: Sequence[str] = ()
    verifier: Sequence[str] = ()
    family: Sequence[str] = ()
    source: Sequence[str] = ()
    origin: Sequence[str] = ()
    licence: Sequence[str] = ()
    tag: Sequence[str] = ()
    created_after: datetime | None = None
    created_before: datetime | None = None
    q: str | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        """`domain` means it and what is below it; `q` is found anywhere in the prompt, whatever its case."""
        equal = {
            Task.status: self.status,
            Task.split: self.split,
            Task.verifier: self.verifier,
            Task.family_id: self.family,
            Task.source_uri: self.source,
            Task.generator: self.origin,
            Task.licence: self.licence,
        }
        found: list[ColumnElement[bool]] = [column.in_(values) for column, values in equal.items() if values]
        if self.domain:
            found.append(or_(*(_domain(name) for name in self.domain)))
        if self.tag:
            found.append(exists().where(TaskTag.task_id == Task.id, TaskTag.tag.in_(self.tag)))
        if self.created_after is not None:
            found.append(Task.created_at > self.created_after)
        if self.created_before is not None:
            found.append(Task.created_at < self.created_before)
        if self.q:
            found.append(func.lower(TaskVersion.prompt_text).contains(self.q.lower(), autoescape=True))
        return found


def _domain(name: str) -> ColumnElement[bool]:
    return or_(Task.domain == name, Task.domain.startswith(f"{name}.", autoescape=True))


def get(db: ReadSession, task_id: str, *, holdout: bool) -> Task:
    """A task. A holdout task does not exist for whoever may not read holdouts.

    Raises:
        NotFound
    """
    row = db.get(Task, task_id)
    if row is None or (row.split == Split.HOLDOUT and not holdout):
        raise NotFound(f"there is no task {task_id}")
    return row


def lock(db: WriteSession, task_id: str, *, holdout: bool) -> Task:
    """A task as `get` has it, held until the transaction ends: no other edit comes between its reading and its change.

    Raises:
        NotFound
    """
    task = get(db, task_id, holdout=holdout)
    db.refresh(task, with_for_update=True)
    return task


def whole(db: ReadSession, task: Task, version: int | None = None, *, answers: bool = False) -> Whole:
    """A version of a task, by default its newest.

    Raises:
        NotFound: there is no such version.
    """
    key = (task.id, version or task.version)
    row = db.get(TaskVersion, key)
    if row is None:
        raise NotFound(f"task {task.id} has no version {version}")
    sources = db.scalars(select(TaskSource).where(TaskSource.task_id == task.id).order_by(TaskSource.id)).all()
    return Whole(task, row, sources, db.get(TaskAnswer, key) if answers else None, tags_of(db, task.id))


def page(db: ReadSession, filters: Filters, pager: Pager, *, holdout: bool, newest_first: bool = True) -> Page[Listed]:
    """Tasks by their age. Ids sort by time, so the id is the sort key."""
    question = _listed().where(*filters.conditions()).limit(pager.limit + 1)
    if not holdout:
        question = question.where(Task.split != Split.HOLDOUT)
    after = pager.after()
    if newest_first:
        question = question.order_by(Task.id.desc())
        question = question if after is None else question.where(Task.id < after[0])
    else:
        question = question.order_by(Task.id)
        question = question if after is None else question.where(Task.id > after[0])
    found = db.execute(question).all()
    tags = _tags(db, [row[0].id for row in found])
    rows = [Listed(row[0], row[1], tags[row[0].id]) for row in found]
    return pager.page(rows, lambda row: [row.task.id])


def _listed() -> Select[Task, str]:
    head = func.substr(TaskVersion.prompt_text, 1, HEAD_CHARACTERS)
    return select(Task, head).join(
        TaskVersion, and_(TaskVersion.task_id == Task.id, TaskVersion.version == Task.version)
    )


def count(db: ReadSession, filters: Filters, *, holdout: bool, at_most: int) -> int:
    """How many tasks match, counted up to `at_most`: no count is unbounded."""
    question = _listed().where(*filters.conditions())
    if not holdout:
        question = question.where(Task.split != Split.HOLDOUT)
    return db.scalar(select(func.count()).select_from(question.limit(at_most).subquery())) or 0


def move(
    db: WriteSession, task: Task, to: TaskStatus, *, actor: str, reason: str, receipts_key: str | None = None
) -> Task:
    """Change a task's status, as the status machine allows it. A move to where it is already changes nothing
    but the key of the receipts that it is served by.

    Raises:
        Conflict: the machine has no such move, or an equal live task stands in the way of an activation.
    """
    row = db.scalars(
        select(Task).where(Task.id == task.id).with_for_update().execution_options(populate_existing=True)
    ).one()
    was = TaskStatus(row.status)
    if to is was and receipts_key in (None, row.receipts_key):
        return row
    if to is not was and to not in MOVES[was]:
        raise Conflict(f"the task is {was}; from there it can become {', '.join(sorted(MOVES[was])) or 'nothing else'}")
    row.status = to
    row.live = to not in ENDED
    row.row_version += 1
    row.updated_at = datetime.now(UTC)
    if receipts_key is not None:
        row.receipts_key = receipts_key
    db.flush()
    kind = "activated" if to is TaskStatus.ACTIVE else str(to)
    events.record(db, row.id, f"task.{kind}", actor, reason, {"from": was, "to": to})
    return row


def set_tags(db: WriteSession, task: Task, tags: Sequence[str], *, actor: str) -> Task:
    """Replace the tags that lists filter by, of a task that this transaction holds by `lock`.

    The version's own tags stay what they were: a version never changes.
    """
    db.execute(delete(TaskTag).where(TaskTag.task_id == task.id))
    if tags:
        db.execute(insert(TaskTag), [{"task_id": task.id, "tag": tag} for tag in sorted(set(tags))])
    task.row_version += 1
    task.updated_at = datetime.now(UTC)
    db.flush()
    events.record(db, task.id, "task.tagged", actor, data={"tags": sorted(set(tags))})
    return task


def tags_of(db: ReadSession, task_id: str) -> list[str]:
    return _tags(db, [task_id])[task_id]


def _tags(db: ReadSession, ids: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {task_id: [] for task_id in ids}
    rows = db.execute(select(TaskTag.task_id, TaskTag.tag).where(TaskTag.task_id.in_(ids)).order_by(TaskTag.tag))
    for row in rows:
        found[row.task_id].append(row.tag)
    return found


def dump_answers(answers: TaskAnswer) -> dict[str, Any]:
    """What a caller with `answers:read` sees."""
    return {name: getattr(answers, name) for name in ("reference", "gold", "nulls", "equivalents", "mutants")}
