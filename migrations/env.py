"""Alembic's entry: runs revisions on the engine that `migrations/run.py` hands over.

SQLite: an explicit BEGIN, so that a revision that raises leaves the previous version and no half-made table (D31);
foreign keys off, because a batch change drops the parent table and would delete its children.
"""

from typing import Any

from alembic import context

from service.store.tables import Base
from service.store.types import UtcDateTime


def render_item(kind: str, item: Any, autogen_context: Any) -> str | bool:
    if kind == "type" and isinstance(item, UtcDateTime):
        autogen_context.imports.add("from service.store.types import UtcDateTime")
        return "UtcDateTime()"
    return False


connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    render_as_batch=True,
    render_item=render_item,
    transaction_per_migration=connection.dialect.name == "postgresql",
    compare_type=False,
)
with context.begin_transaction():
    context.run_migrations()
