"""Keeps leases alive through generation, training and the wait for the checkpoint, in a thread of its own."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

from taskmill_client import Client, TaskmillError
from taskmill_client.errors import Conflict, NotFound, StaleConsumer

JOIN_S = 10.0


@dataclass(slots=True)
class _Held:
    ttl_s: float
    ordinals: set[int] = field(default_factory=set)


class Heartbeat:
    """The open leases of this trainer: extended every third of the shortest term, dropped once nothing is open."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._held: dict[str, _Held] = {}
        self._lock = threading.Lock()
        self._changed, self._stopped = threading.Event(), threading.Event()
        self.superseded = threading.Event()
        self.lost = 0
        self._thread = threading.Thread(target=self._run, name="lease-heartbeat", daemon=True)
        self._thread.start()

    def hold(self, lease_id: str, ttl_s: float, ordinals: Iterable[int]) -> None:
        with self._lock:
            self._held[lease_id] = _Held(ttl_s, set(ordinals))
        self._changed.set()

    def drop(self, lease_id: str, ordinals: Iterable[int]) -> None:
        """These are acknowledged or released; the lease is forgotten with its last one."""
        with self._lock:
            held = self._held.get(lease_id)
            if held is not None:
                held.ordinals.difference_update(ordinals)
                if not held.ordinals:
                    del self._held[lease_id]

    def forget_all(self) -> None:
        with self._lock:
            self._held.clear()

    def close(self) -> None:
        self._stopped.set()
        self._changed.set()
        self._thread.join(timeout=JOIN_S)

    def _run(self) -> None:
        while not self._stopped.is_set():
            with self._lock:
                pause_s = min((held.ttl_s for held in self._held.values()), default=60.0) / 3
            if self._changed.wait(timeout=pause_s):
                self._changed.clear()  # a new lease: look again how soon the next beat is due
                continue
            self._beat()

    def _beat(self) -> None:
        with self._lock:
            leases = list(self._held)
        for lease_id in leases:
            try:
                self._client.leases.extend(lease_id)
            except StaleConsumer:
                self.superseded.set()
            except (Conflict, NotFound):
                # Lost: its ordinals are served again, and whoever acknowledges them learns it there.
                self.lost += 1
                with self._lock:
                    self._held.pop(lease_id, None)
            except TaskmillError:
                pass  # the service is away: the next beat tries again
