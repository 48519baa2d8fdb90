"""Reading, feeding and timing one started program, from outside the box.

Both streams are always drained, in blocks, into buffers of bounded size; input is fed as the program takes it; the
deadline, the CPU sum and the caller's wish to stop are watched in the same wait. The end of a stream is not the end of
the program, and the end of the program (the supervisor's report) does not wait for the end of a stream.
"""

import contextlib
import os
import select
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sandbox.contract import BoxLost
from sandbox.control import Control

BLOCK = 1 << 16
TICK_S = 0.05
"""How often CPU and processes of the group are read."""
REPORT_WITHIN_S = 0.6
"""From the order to kill to the supervisor's report; past it the box is destroyed, within the promised second."""


@dataclass(frozen=True)
class Ends:
    """Our ends of a program's descriptors. All are closed by `pump`."""

    stdin: int
    stdout: int
    stderr: int


@dataclass(frozen=True)
class Bounds:
    """What ends a program from outside. `gauge` gives CPU seconds so far and the number of processes, if known."""

    wall_s: float
    cpu_s: float
    output_bytes: int
    gauge: Callable[[], tuple[float, int]] | None


@dataclass
class Seen:
    """What came out. `cause` names the bound that ended the program; `report` is the supervisor's, if it came."""

    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    cause: str = ""
    report: dict[str, Any] | None = None
    wall_s: float = 0.0
    kill_s: float = 0.0
    processes: int = 0
    lost: str = ""


class Pump:
    """Serves one program until its end. Use once."""

    def __init__(self, control: Control, died: int, stop: int, destroy: Callable[[], None]) -> None:
        self._control = control
        self._died = died
        self._stop = stop
        self._destroy = destroy
        self._poller = select.poll()
        self._seen = Seen()
        self._killed_at = 0.0

    def run(self, ends: Ends, stdin: bytes, bounds: Bounds) -> Seen:
        seen, open_fds = self._seen, {ends.stdin, ends.stdout, ends.stderr}
        try:
            for fd in open_fds:
                os.set_blocking(fd, False)
            for fd in (ends.stdout, ends.stderr, self._control.fileno(), self._died, self._stop):
                self._poller.register(fd, select.POLLIN)
            if stdin:
                self._poller.register(ends.stdin, select.POLLOUT)
            else:
                self._close(ends.stdin, open_fds)
            self._loop(ends, memoryview(stdin), bounds, open_fds)
            for fd, buffer in ((ends.stdout, seen.stdout), (ends.stderr, seen.stderr)):
                while fd in open_fds and self._read(fd, buffer, bounds.output_bytes, ends):
                    pass
            if not seen.cause and (seen.stdout_truncated or seen.stderr_truncated):
                seen.cause = "output"
        finally:
            for fd in open_fds:
                os.close(fd)
        return seen

    def _loop(self, ends: Ends, left: memoryview, bounds: Bounds, open_fds: set[int]) -> None:
        seen, started = self._seen, time.monotonic()
        deadline = started + bounds.wall_s
        if self._ended({}, started):  # the report may have come together with the news of the start
            return
        while True:
            wake = (self._killed_at + REPORT_WITHIN_S) if self._killed_at else deadline
            pause = max(0.0, wake - time.monotonic())
            ready = dict(self._poller.poll(min(pause, TICK_S) * 1000 + 1))
            for fd, buffer in ((ends.stdout, seen.stdout), (ends.stderr, seen.stderr)):
                if fd in ready and not self._read(fd, buffer, bounds.output_bytes, ends):
                    self._close(fd, open_fds)
            if ends.stdin in ready and ends.stdin in open_fds:
                left = self._feed(ends.stdin, left, open_fds)
            if self._ended(ready, started):
                return
            self._judge(ready, bounds, deadline)

    def _ended(self, ready: dict[int, int], started: float) -> bool:
        """Whether the supervisor has reported or is gone."""
        seen = self._seen
        if not ready or self._control.fileno() in ready or self._died in ready:
            try:
                seen.report = self._control.poll()
            except BoxLost as error:
                seen.lost = str(error)
            if seen.report is None and not seen.lost and self._died in ready:
                seen.lost = "the supervisor of the box died"
        if seen.report is None and not seen.lost:
            if not self._killed_at or time.monotonic() < self._killed_at + REPORT_WITHIN_S:
                return False
            self._destroy()
            seen.lost = "the box did not report after the kill"
        now = time.monotonic()
        seen.wall_s = (self._killed_at or now) - started
        seen.kill_s = now - self._killed_at if self._killed_at else 0.0
        return True

    def _judge(self, ready: dict[int, int], bounds: Bounds, deadline: float) -> None:
        """Order the kill when a bound is passed."""
        seen = self._seen
        if self._killed_at:
            return
        if seen.stdout_truncated or seen.stderr_truncated:
            seen.cause = "output"
        elif time.monotonic() >= deadline:
            seen.cause = "wall"
        elif self._stop in ready:
            seen.cause = "stopped"
            self._poller.unregister(self._stop)
        elif bounds.gauge is not None:
            cpu_s, processes = bounds.gauge()
            seen.processes = max(seen.processes, processes)
            if cpu_s > bounds.cpu_s:
                seen.cause = "cpu"
        if seen.cause:
            self._killed_at = time.monotonic()
            try:
                self._control.send({"do": "kill"})
            except BoxLost as error:
                seen.lost = str(error)

    def _read(self, fd: int, buffer: bytearray, cap: int, ends: Ends) -> bool:
        """Take one block; False at the end of the stream, or when nothing is there."""
        try:
            data = os.read(fd, BLOCK)
        except BlockingIOError:
            return False
        except OSError:
            return False
        room = cap - len(buffer)
        buffer += data[:room]
        if len(data) > room:
            if fd == ends.stdout:
                self._seen.stdout_truncated = True
            else:
                self._seen.stderr_truncated = True
        return bool(data)

    def _feed(self, fd: int, left: memoryview, open_fds: set[int]) -> memoryview:
        try:
            left = left[os.write(fd, left[:BLOCK]) :]
        except BlockingIOError:
            return left
        except OSError:  # a program that does not read its input is normal
            left = left[:0]
        if not left:
            self._close(fd, open_fds)
        return left

    def _close(self, fd: int, open_fds: set[int]) -> None:
        if fd in open_fds:
            open_fds.discard(fd)
            with contextlib.suppress(KeyError):
                self._poller.unregister(fd)
            os.close(fd)
