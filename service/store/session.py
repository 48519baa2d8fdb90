"""The session edge: the only place that opens, commits or rolls back a transaction.

`with store.reading() as db` and `with store.writing() as db` are the whole interface. The answer of a request is built
inside the block, and the commit happens before a byte of it is sent (D1, D36).
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import NewType

from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, sessionmaker

from service.errors import StoreBusy

ReadSession = NewType("ReadSession", Session)
WriteSession = NewType("WriteSession", ReadSession)  # a writer may call every reader

# Words of operational errors that another try may not meet again: lock timeouts, deadlocks, busy databases.
_BUSY = ("database is locked", "lock timeout", "deadlock detected", "could not obtain lock")


class Turn:
    """Writers of one process take turns: SQLite's own busy handler is unfair, and fails under load (D4)."""

    def __init__(self, wait_s: float) -> None:
        self._lock = threading.Lock()
        self._wait_s = wait_s

    def __enter__(self) -> None:
        if not self._lock.acquire(timeout=self._wait_s):
            raise StoreBusy

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class Store:
    """One database: its engine, its two kinds of session, its turn-taking between writers."""

    def __init__(
        self,
        engine: Engine,
        *,
        offer_hints: Callable[[Sequence[str]], None] = lambda _: None,
        writer_wait_s: float = 5.0,
    ) -> None:
        self.engine = engine
        read_options = {"postgresql_readonly": True} if engine.dialect.name == "postgresql" else {}
        self._read = sessionmaker(engine.execution_options(**read_options), expire_on_commit=False)
        self._write = sessionmaker(engine.execution_options(tm_write=True), expire_on_commit=False)
        self._offer_hints = offer_hints
        self._open = threading.local()
        self._turn = Turn(writer_wait_s) if engine.dialect.name == "sqlite" else None

    @contextmanager
    def reading(self) -> Iterator[ReadSession]:
        """A read-only transaction: one snapshot, never waiting for a writer."""
        with self._one_per_thread(), _busy_is_a_problem(), self._read() as session:
            yield ReadSession(session)

    @contextmanager
    def writing(self) -> Iterator[WriteSession]:
        """Commit when the block ends, roll back when it raises, send hints only after the commit.

        Raises:
            StoreBusy: no turn to write within the wait; nothing was changed, the caller may retry.
        """
        with self._one_per_thread(), _busy_is_a_problem(), self._turn or nullcontext(), self._write() as session:
            with session.begin():
                yield WriteSession(ReadSession(session))
            hints = session.info.pop("hints", ())
        if hints:
            self._offer_hints(hints)

    def close(self) -> None:
        self.engine.dispose()

    @contextmanager
    def _one_per_thread(self) -> Iterator[None]:
        if getattr(self._open, "taken", False):
            raise RuntimeError("this thread has a session open already; pass that one, or end it first (D12)")
        self._open.taken = True
        try:
            yield
        finally:
            self._open.taken = False


def hint(db: WriteSession, job_id: str) -> None:
    """Have a hint of this job sent after the commit; a rollback drops it (D13)."""
    db.info.setdefault("hints", []).append(job_id)


@contextmanager
def _busy_is_a_problem() -> Iterator[None]:
    try:
        yield
    except OperationalError as error:
        if any(word in str(error.orig).lower() for word in _BUSY):
            raise StoreBusy from error
        raise
