"""What readiness asks of the database."""

from datetime import datetime
from functools import cache
from typing import NamedTuple

from alembic.runtime.migration import MigrationContext
from sqlalchemy import func, select

from service.store.migrate import head
from service.store.session import ReadSession
from service.store.tables import WorkerRow

_head = cache(head)


class Look(NamedTuple):
    """The revision, whether it is the newest, and when any worker was last seen."""

    revision: str | None
    at_head: bool
    worker_seen_at: datetime | None


def look(db: ReadSession) -> Look:
    """One look at the database."""
    revision = MigrationContext.configure(db.connection()).get_current_revision()
    return Look(revision, revision == _head(), db.scalar(select(func.max(WorkerRow.seen_at))))
