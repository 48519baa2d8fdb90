"""The SQLAlchemy engine: connection settings of both databases, explicit BEGIN on SQLite, one process per engine."""

import os
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import ConnectionPoolEntry

POSTGRESQL_OPTIONS = (
    "-c statement_timeout=30s -c lock_timeout=5s -c idle_in_transaction_session_timeout=60s -c timezone=UTC"
)


def make_engine(url: str, *, pool_size: int, synchronous: str = "NORMAL", foreign_keys: bool = True) -> Engine:
    """An engine whose pool never overflows, so that a burst waits for threads, never for connections.

    `foreign_keys=False` is for migrations alone: a batch change of a parent table would delete its children (D31).
    """
    if url.startswith("sqlite"):
        engine = create_engine(url, pool_size=pool_size, max_overflow=0, connect_args={"check_same_thread": False})
        _listen_sqlite(engine, synchronous, foreign_keys)
    else:
        engine = create_engine(
            url,
            pool_size=pool_size,
            max_overflow=0,
            pool_pre_ping=True,
            connect_args={"options": POSTGRESQL_OPTIONS, "connect_timeout": 5},
        )
    _guard_process(engine)
    return engine


def _listen_sqlite(engine: Engine, synchronous: str, foreign_keys: bool) -> None:
    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: ConnectionPoolEntry) -> None:
        connection.isolation_level = None  # the driver's own transactions are deferred: they lose updates (D3)
        for pragma in (
            "journal_mode=WAL",
            f"synchronous={synchronous}",
            f"foreign_keys={'ON' if foreign_keys else 'OFF'}",
            "busy_timeout=5000",
            "journal_size_limit=67108864",
        ):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        write = connection.get_execution_options().get("tm_write", False)
        connection.exec_driver_sql(f"PRAGMA query_only={0 if write else 1}")  # before BEGIN, or BEGIN IMMEDIATE fails
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _guard_process(engine: Engine) -> None:
    """A connection inherited over fork hangs or mixes answers (D21): refuse it instead."""
    owner = os.getpid()

    @event.listens_for(engine, "checkout")
    def _checkout(_connection: Any, _record: ConnectionPoolEntry, _proxy: Any) -> None:
        if os.getpid() != owner:
            raise RuntimeError(f"this engine belongs to process {owner}; make a new store after fork")
