"""What a lease shows of its tasks: prompt, tools, limits. Never a reference, gold or test."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import func, insert, select, tuple_

from service.store.ids import new_id
from service.store.session import ReadSession, WriteSession
from service.store.tables import Exposure, TaskVersion


class TaskKey(NamedTuple):
    task_id: str
    version: int


class Shown(NamedTuple):
    prompt: list[Any]
    tools: list[Any]
    limits: dict[str, Any]


_CHUNK = 400


def sizes(db: ReadSession, keys: Sequence[TaskKey]) -> dict[TaskKey, int]:
    """The length of each prompt in characters, without reading it here."""
    found: dict[TaskKey, int] = {}
    for part in _chunks(keys):
        query = select(TaskVersion.task_id, TaskVersion.version, func.length(TaskVersion.prompt_text))
        for task_id, version, size in db.execute(query.where(_among(part))):
            found[TaskKey(task_id, version)] = size
    return found


def shown(db: ReadSession, keys: Sequence[TaskKey]) -> dict[TaskKey, Shown]:
    """What is handed out of each task version."""
    found: dict[TaskKey, Shown] = {}
    for part in _chunks(keys):
        # the environment may hold megabytes of files: only its tools are read
        query = select(
            TaskVersion.task_id,
            TaskVersion.version,
            TaskVersion.prompt,
            TaskVersion.environment["tools"],
            TaskVersion.limits,
        )
        for task_id, version, prompt, tools, limits in db.execute(query.where(_among(part))):
            found[TaskKey(task_id, version)] = Shown(prompt, tools or [], limits)
    return found


def expose(db: WriteSession, keys: Sequence[TaskKey], *, actor: str, surface: str, now: Any) -> None:
    """Record that these holdout tasks were read."""
    rows = [
        {
            "id": new_id("exp"),
            "task_id": key.task_id,
            "version": key.version,
            "actor": actor,
            "surface": surface,
            "created_at": now,
        }
        for key in keys
    ]
    if rows:
        db.execute(insert(Exposure), rows)


def _among(keys: Sequence[TaskKey]) -> Any:
    return tuple_(TaskVersion.task_id, TaskVersion.version).in_([tuple(key) for key in keys])


def _chunks(keys: Sequence[TaskKey]) -> list[Sequence[TaskKey]]:
    unique = sorted(set(keys))
    return [unique[start : start + _CHUNK] for start in range(0, len(unique), _CHUNK)]
