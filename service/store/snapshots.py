"""Snapshots: what was servable when a stream was made, by position."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import and_, or_, select
from sqlalchemy.dialects import postgresql, sqlite

from service.store.servable import STANDING, Rule, Standing, servable
from service.store.session import ReadSession, WriteSession
from service.store.tables import Difficulty, Snapshot, SnapshotMember, Task
from service.words import Split


class ServableTask(NamedTuple):
    task_id: str
    version: int
    content_hash: str
    domain: str


class SnapshotRecord(NamedTuple):
    """`domains` holds the positions `[first, end)` of each exact domain."""

    hash: str
    tasks: int
    domains: Mapping[str, Sequence[int]]


class MemberRow(NamedTuple):
    """A member as its task stands now, with what the lineage knows of it."""

    position: int
    task_id: str
    version: int
    domain: str
    servable: bool
    alpha: float | None
    beta: float | None
    served: int
    last_draw: int | None


def servable_tasks(db: ReadSession, split: Split, domains: Sequence[str]) -> list[ServableTask]:
    """Every task that may be served, of these domains with their sub-domains (none named: of all), in their order."""
    query = select(Task.id, Task.version, Task.content_hash, Task.domain).where(servable(split))
    if domains:
        query = query.where(or_(*(_inside(Task.domain, domain) for domain in domains)))
    return [ServableTask(*row) for row in db.execute(query.order_by(Task.domain, Task.id))]


def get(db: ReadSession, hash_: str) -> SnapshotRecord:
    row = db.get_one(Snapshot, hash_)
    return SnapshotRecord(row.hash, row.count, row.domains)


def exists(db: ReadSession, hash_: str) -> bool:
    """Whether a snapshot is whole: its last member is written."""
    found = db.get(Snapshot, hash_)
    return found is not None and (found.count == 0 or db.get(SnapshotMember, (hash_, found.count - 1)) is not None)


def begin(db: WriteSession, record: SnapshotRecord, filter_: Mapping[str, Any], now: datetime) -> None:
    """Write the head of a snapshot, unless it is there."""
    row = {
        "hash": record.hash,
        "filter": dict(filter_),
        "domains": dict(record.domains),
        "count": record.tasks,
        "created_at": now,
    }
    db.execute(_dialect(db).insert(Snapshot).on_conflict_do_nothing(), [row])


def add_members(db: WriteSession, hash_: str, first: int, tasks: Sequence[ServableTask]) -> None:
    """Write a part of the members, unless they are there: equal roots have equal members."""
    rows = [
        {"hash": hash_, "position": first + at, "task_id": task.task_id, "version": task.version, "domain": task.domain}
        for at, task in enumerate(tasks)
    ]
    db.execute(_dialect(db).insert(SnapshotMember).on_conflict_do_nothing(), rows)


def members(db: ReadSession, hash_: str, lineage: str, split: Split, positions: Sequence[int]) -> list[MemberRow]:
    """The members at these positions, in their order."""
    query = _members(hash_, lineage).where(SnapshotMember.position.in_(positions))
    found = {row.position: row for row in _rows(db, query, split)}
    return [found[position] for position in positions]


def bucket_members(
    db: ReadSession, hash_: str, lineage: str, split: Split, domain: str, bucket: int, start: float, limit: int
) -> list[MemberRow]:
    """Members with evidence in one bucket of one exact domain, by random key from `start` on, wrapping at 1."""
    query = _members(hash_, lineage).where(
        Difficulty.lineage == lineage, Difficulty.domain == domain, Difficulty.bucket == bucket
    )
    after = query.where(Difficulty.rkey >= start).order_by(Difficulty.rkey).limit(limit)
    found = _rows(db, after, split)
    if len(found) < limit:
        before = query.where(Difficulty.rkey < start).order_by(Difficulty.rkey).limit(limit - len(found))
        found += _rows(db, before, split)
    return found


def _members(hash_: str, lineage: str) -> Any:
    return (
        select(
            SnapshotMember.position,
            SnapshotMember.task_id,
            SnapshotMember.version,
            SnapshotMember.domain,
            Difficulty.alpha,
            Difficulty.beta,
            Difficulty.visits,
            Difficulty.last_draw,
            *STANDING,
        )
        .join(Task, Task.id == SnapshotMember.task_id)
        .outerjoin(
            Difficulty,
            and_(
                Difficulty.task_id == SnapshotMember.task_id,
                Difficulty.lineage == lineage,
                Difficulty.task_version == SnapshotMember.version,  # a new version starts unseen
            ),
        )
        .where(SnapshotMember.hash == hash_)
    )


def _rows(db: ReadSession, query: Any, split: Split) -> list[MemberRow]:
    rule = Rule(split)
    return [
        MemberRow(
            position,
            task_id,
            version,
            domain,
            rule.broken(Standing(*standing), version) is None,
            alpha,
            beta,
            visits or 0,
            last_draw,
        )
        for position, task_id, version, domain, alpha, beta, visits, last_draw, *standing in db.execute(query)
    ]


def _inside(column: Any, domain: str) -> Any:
    # "." sorts before every character of a domain and "/" right after it: a range, which the index serves
    return or_(column == domain, and_(column >= f"{domain}.", column < f"{domain}/"))


def _dialect(db: ReadSession) -> Any:
    return postgresql if db.get_bind().dialect.name == "postgresql" else sqlite
