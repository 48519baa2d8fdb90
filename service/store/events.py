"""Events: every change with its actor and reason, written in the transaction of the change."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select

from service.store.ids import new_id
from service.store.paging import Page, Pager
from service.store.session import ReadSession, WriteSession
from service.store.tables import Event


def record(
    db: WriteSession, subject: str, kind: str, actor: str, reason: str = "", data: Mapping[str, Any] | None = None
) -> None:
    """Write one event about `subject`, the id of what changed."""
    db.add(
        Event(
            id=new_id("evt"),
            subject=subject,
            kind=kind,
            actor=actor,
            reason=reason[:1000],
            data=dict(data or {}),
            created_at=datetime.now(UTC),
        )
    )


def of_subject(db: ReadSession, subject: str, pager: Pager) -> Page[Event]:
    """The events of one subject, newest first."""
    question = select(Event).where(Event.subject == subject).order_by(Event.id.desc()).limit(pager.limit + 1)
    if (after := pager.after()) is not None:
        question = question.where(Event.id < after[0])
    return pager.page(db.scalars(question).all(), lambda row: [row.id])


def latest(db: ReadSession, limit: int) -> list[Event]:
    """The newest events of all subjects."""
    return list(db.scalars(select(Event).order_by(Event.id.desc()).limit(limit)))


def data_of(db: ReadSession, subject: str, kind: str) -> list[Mapping[str, Any]]:
    """The data of every event of one kind about one subject."""
    return list(db.scalars(select(Event.data).where(Event.subject == subject, Event.kind == kind)))
