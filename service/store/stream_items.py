"""What a lease shows of its tasks: prompt, tools, limits. Never a reference, gold or test."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import func, select, tuple_

from service.store.session import ReadSession
from service.store.tables import TaskVersion


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


def _among(keys: Sequence[TaskKey]) -> Any:
    return tuple_(TaskVersion.task_id, TaskVersion.version).in_([tuple(key) for key in keys])


def _chunks(keys: Sequence[TaskKey]) -> list[Sequence[TaskKey]]:
    unique = sorted(set(keys))
    return [unique[start : start + _CHUNK] for start in range(0, len(unique), _CHUNK)]
