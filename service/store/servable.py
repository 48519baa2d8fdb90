"""Whether a task may be served now: active, of the right split, its newest version, every required receipt current."""

from typing import NamedTuple

from sqlalchemy import ColumnElement

from service.store.required_gates import current_keys
from service.store.tables import Task
from service.words import Split, TaskStatus


class Standing(NamedTuple):
    """What decides whether a version of a task is servable."""

    status: str
    split: str
    version: int
    receipts_key: str | None


STANDING = (Task.status, Task.split, Task.version, Task.receipts_key)


def servable(split: Split) -> ColumnElement[bool]:
    """The condition that a task's newest version may be served to streams of this split."""
    return (Task.split == split) & (Task.status == TaskStatus.ACTIVE) & Task.receipts_key.in_(sorted(current_keys()))


class Rule:
    """The same condition for rows that were read, and why it does not hold."""

    def __init__(self, split: Split) -> None:
        self._split = split
        self._keys = current_keys()

    def broken(self, standing: Standing, version: int) -> str | None:
        """Why this version of the task is not servable; None when it is."""
        if standing.status != TaskStatus.ACTIVE:
            return f"task_{standing.status}"
        if standing.version != version:
            return "version_superseded"
        if standing.split != self._split:
            return "split_changed"
        return None if standing.receipts_key in self._keys else "receipts_void"
