"""The exposure log: each read of a holdout task and each reveal of answers. Append-only."""

from datetime import UTC, datetime

from service.store.ids import new_id
from service.store.session import WriteSession
from service.store.tables import Exposure


def record(db: WriteSession, task_id: str, version: int, *, actor: str, surface: str) -> None:
    """Note that `actor` saw this version on `surface`."""
    db.add(
        Exposure(
            id=new_id("exp"),
            task_id=task_id,
            version=version,
            actor=actor,
            surface=surface,
            created_at=datetime.now(UTC),
        )
    )
