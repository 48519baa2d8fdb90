"""Slots: how many boxes may run at once, and a uid of its own for each where we are root.

A uid is taken with a lock on a file that the kernel frees when its holder dies, so two services of one machine never
share one. A slot whose box could not be cleaned is quarantined: its number is never used again by this process.
"""

import fcntl
import os
import threading
import time
from dataclasses import dataclass

from sandbox.contract import SandboxUnavailable
from sandbox.image import cache_folder

FIRST_UID = 61000
MOST = 4000
QUEUE_WITHIN_S = 300.0
"""Longest wait for a slot; the queue of callers is bounded by their threads."""


@dataclass(frozen=True)
class Slot:
    number: int
    uid: int | None
    waited_s: float


class Slots:
    def __init__(self, boxes: int, own_uids: bool) -> None:
        self._free = threading.BoundedSemaphore(boxes)
        self._boxes = boxes
        self._own_uids = own_uids
        self._lock = threading.Lock()
        self._idle: list[int] = []
        self._locks: dict[int, int] = {}
        self._next = 0
        self.quarantined = 0

    def take(self) -> Slot:
        """Wait for a slot.

        Raises:
            SandboxUnavailable: none became free in time.
        """
        asked = time.monotonic()
        if not self._free.acquire(timeout=QUEUE_WITHIN_S):
            raise SandboxUnavailable(f"all {self._boxes} boxes were busy for {QUEUE_WITHIN_S:g} s: raise sandbox_boxes")
        try:
            with self._lock:
                number = self._idle.pop() if self._idle else self._new_number()
        except BaseException:
            self._free.release()
            raise
        return Slot(number, FIRST_UID + number if self._own_uids else None, time.monotonic() - asked)

    def give(self, slot: Slot, clean: bool) -> None:
        with self._lock:
            if clean:
                self._idle.append(slot.number)
            else:
                self.quarantined += 1
        self._free.release()

    def close(self) -> None:
        with self._lock:
            for fd in self._locks.values():
                os.close(fd)
            self._locks.clear()
            self._idle.clear()

    def _new_number(self) -> int:
        if not self._own_uids:
            self._next += 1
            return self._next - 1
        folder = cache_folder() / "slots"
        folder.mkdir(mode=0o700, exist_ok=True)
        for number in range(self._next, MOST):
            fd = os.open(folder / str(number), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(fd)
                continue
            self._locks[number] = fd
            self._next = number + 1
            return number
        raise SandboxUnavailable(f"all {MOST} slot uids of this machine are taken: stop services that are not needed")
