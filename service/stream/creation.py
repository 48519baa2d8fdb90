"""A new stream: what is servable now becomes its snapshot, and the stream is pinned to it.

The members are read, hashed outside any transaction, and written in short ones; a snapshot's name is the hash of its
content, so a half-written one is finished by whoever makes it next, and never used before.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from service.errors import Conflict
from service.store import events, snapshots, streams
from service.store.jobs import clock
from service.store.session import Store
from service.store.snapshots import ServableTask, SnapshotRecord
from service.store.streams import StreamRecord
from service.stream import merkle
from service.stream.contract import StreamRequest
from service.stream.merkle import Leaf

PART = 2000
"""Members written in one transaction: some 20 ms."""


class Made(NamedTuple):
    stream: StreamRecord
    new: bool


def make(store: Store, request: StreamRequest, *, secret: bytes, actor: str) -> Made:
    """The stream of this request: a new one, or the one that an equal request made before.

    Opens its own transactions.

    Raises:
        Conflict: another request made a stream of this name.
    """
    with store.reading() as db:
        found = streams.by_name(db, request.name)
    if found is not None:
        return Made(_same(found, request), new=False)
    with store.reading() as db:
        tasks = snapshots.servable_tasks(db, request.split, sorted(request.domains))
        now = clock(db)
    record = _snapshot(tasks, request, secret)
    _write(store, record, tasks, request, now)
    with store.writing() as db:
        lineage = request.policy.lineage or request.name
        made = streams.create(db, _body(request), lineage=lineage, hash_=record.hash, actor=actor, now=now)
        if made is None:  # another request was first
            found = streams.by_name(db, request.name)
            assert found is not None
            return Made(_same(found, request), new=False)
        data = {"snapshot": record.hash, "tasks": record.tasks, "shares": dict(request.weights)}
        events.record(db, made, "stream.created", actor, data=data)
        return Made(streams.get(db, made), new=True)


def _write(
    store: Store, record: SnapshotRecord, tasks: Sequence[ServableTask], request: StreamRequest, now: datetime
) -> None:
    filter_ = {"split": request.split, "domains": sorted(request.domains)}
    with store.writing() as db:
        if snapshots.exists(db, record.hash):
            return
        snapshots.begin(db, record, filter_, now)
    for first in range(0, len(tasks), PART):
        with store.writing() as db:
            snapshots.add_members(db, record.hash, first, tasks[first : first + PART])


def _snapshot(tasks: Sequence[ServableTask], request: StreamRequest, secret: bytes) -> SnapshotRecord:
    leaves = [Leaf(task.task_id, task.version, task.content_hash, request.split) for task in tasks]
    domains: dict[str, list[int]] = {}
    for position, task in enumerate(tasks):
        domains.setdefault(task.domain, [position, position])[1] = position + 1
    return SnapshotRecord(merkle.root(secret, leaves), len(tasks), domains)


def _body(request: StreamRequest) -> dict[str, Any]:
    return request.model_dump(mode="json")


def _same(found: StreamRecord, request: StreamRequest) -> StreamRecord:
    """The stream, if this very request made it."""
    differing = [name for name, value in _body(request).items() if _stored(found, name) != value]
    if differing:
        raise Conflict(f"The stream {found.name} exists with other {', '.join(differing)}.", stream_id=found.id)
    return found


def _stored(found: StreamRecord, name: str) -> Any:
    return getattr(found, name)
