"""When keys were last used: noted in memory, written now and then, so that no read waits for a writer (D5)."""

import threading
from datetime import datetime

from service.store import keys
from service.store.session import Store


class LastUsed:
    """The uses of this process that are not written yet. Usable from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._noted: dict[str, datetime] = {}

    def note(self, key_id: str, now: datetime) -> None:
        with self._lock:
            self._noted[key_id] = now

    def write(self, store: Store) -> None:
        """Write what was noted, in one transaction.

        Raises:
            StoreBusy: nothing is lost; the next call writes it.
        """
        with self._lock:
            noted = dict(self._noted)
        if not noted:
            return
        with store.writing() as db:
            for key_id, now in sorted(noted.items()):
                keys.touch(db, key_id, now)
        with self._lock:
            self._noted = {key_id: now for key_id, now in self._noted.items() if noted.get(key_id) != now}
