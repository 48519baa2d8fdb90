"""A started program: its own thread drains its streams and holds its limits, whatever the caller does."""

import contextlib
import os
import socket
import threading
from collections.abc import Callable

from sandbox.contract import BoxLost, ExecResult

WAIT_MARGIN_S = 60.0
"""A program's thread ends within its limits + the kill; past this margin the box is given up."""
Serve = Callable[[socket.socket | None, int], ExecResult]


class StartedProgram:
    """A program that a thread of ours serves; the caller talks over `channel`, waits or kills."""

    def __init__(self, serve: Serve, give_up: Callable[[], None], wall_s: float, with_channel: bool) -> None:
        self._serve = serve
        self._give_up = give_up
        self._wall_s = wall_s
        self._stop = os.eventfd(0)
        self._result: ExecResult | None = None
        self._error: BaseException | None = None
        self._closed = False
        self.channel: socket.socket | None = None
        theirs: socket.socket | None = None
        if with_channel:
            self.channel, theirs = socket.socketpair()
        self._thread = threading.Thread(target=self._work, args=(theirs,), name="sandbox-program", daemon=True)
        self._thread.start()

    def _work(self, theirs: socket.socket | None) -> None:
        try:
            self._result = self._serve(theirs, self._stop)
        except BaseException as error:  # noqa: BLE001 — handed to the thread that waits
            self._error = error
        finally:
            if theirs is not None:
                theirs.close()

    def wait(self) -> ExecResult:
        self._thread.join(2 * self._wall_s + WAIT_MARGIN_S)
        if self._thread.is_alive():
            self._give_up()
            raise BoxLost("the program's end could not be had in time")
        self.release()
        if self._error is not None:
            raise self._error
        if self._result is None:
            raise BoxLost("the program left no result")
        return self._result

    def kill(self) -> None:
        with contextlib.suppress(OSError):
            if not self._closed:
                os.eventfd_write(self._stop, 1)
        self._thread.join(WAIT_MARGIN_S)
        self.release()

    def release(self) -> None:
        """Close our end of the channel; idempotent."""
        if self.channel is not None:
            self.channel.close()
        if not self._closed:
            self._closed = True
            os.close(self._stop)
