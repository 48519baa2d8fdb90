"""Lineage: the parents and children of a task, and how it was made."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import select

from service.store.session import ReadSession
from service.store.tables import Task, TaskParent, TaskVersion
from service.words import Split

MAX_CHILDREN = 200


class Lineage(NamedTuple):
    """Edges up and down, the origin of the version, and the newest `MAX_CHILDREN` children."""

    origin: dict[str, object] | None
    parents: Sequence[TaskParent]
    children: Sequence[TaskParent]


def of_task(db: ReadSession, task: Task, *, holdout: bool) -> Lineage:
    """Where a task came from and what came from it. A family lies in one split, so one question settles what shows."""
    version = db.get_one(TaskVersion, (task.id, task.version))
    parents = db.scalars(
        select(TaskParent)
        .where(TaskParent.task_id == task.id, TaskParent.version == task.version)
        .order_by(TaskParent.position)
    ).all()
    children = select(TaskParent).join(Task, Task.id == TaskParent.task_id).where(TaskParent.parent_id == task.id)
    if not holdout:
        children = children.where(Task.split != Split.HOLDOUT)  # a child may have been moved to a more protected split
    found = db.scalars(children.order_by(TaskParent.task_id.desc()).limit(MAX_CHILDREN)).all()
    return Lineage(version.origin, parents, found)
