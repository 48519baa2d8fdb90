"""Column types that behave alike on SQLite and PostgreSQL."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime, String, types
from sqlalchemy.engine import Dialect


class UtcDateTime(types.TypeDecorator[datetime]):
    """Aware UTC in, aware UTC out. SQLite returns naive values (D38) and takes any; this refuses naive ones."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a naive time reached the store: {value!r}; use datetime.now(UTC)")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def sort_text(length: int) -> types.TypeEngine[Any]:
    """Text that is sorted by bytes on both engines (PostgreSQL would sort by locale)."""
    return String(length).with_variant(String(length, collation="C"), "postgresql")
