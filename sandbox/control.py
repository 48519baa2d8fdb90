"""The host's end of the socket to the supervisor of a box: commands out, events in, every wait bounded."""

import contextlib
import json
import marshal
import socket
import time
from collections.abc import Sequence
from typing import Any

from sandbox.contract import BoxLost

LARGEST_EVENT = 64 << 20
SEND_WITHIN_S = 10.0


class Control:
    """Frames with a 4-byte length. Commands are marshalled (our own supervisor of the same interpreter reads them);
    events are JSON, because what comes out of a box is never unmarshalled."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._waiting = bytearray()

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, command: dict[str, Any], fds: Sequence[int] = ()) -> None:
        """Send one command with descriptors.

        Raises:
            BoxLost: nobody reads at the other end.
        """
        body = marshal.dumps(command)
        head = len(body).to_bytes(4, "big")
        self._socket.settimeout(SEND_WITHIN_S)
        try:
            if fds:
                socket.send_fds(self._socket, [head], list(fds))
                self._socket.sendall(body)
            else:
                self._socket.sendall(head + body)
        except OSError as error:
            raise BoxLost(f"the box does not take commands: {error}") from error

    def receive(self, within_s: float) -> dict[str, Any]:
        """The next event.

        Raises:
            BoxLost: the socket ended, or nothing came in time.
        """
        deadline = time.monotonic() + within_s
        while (event := self._parsed()) is None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise BoxLost(f"the box did not answer within {within_s:g} s")
            self._socket.settimeout(left)
            try:
                self._take(self._socket.recv(1 << 18))
            except TimeoutError:
                continue
            except OSError as error:
                raise BoxLost(f"the box is gone: {error}") from error
        return event

    def poll(self) -> dict[str, Any] | None:
        """The next event if it is there already; raises BoxLost like `receive`."""
        if (event := self._parsed()) is not None:
            return event
        self._socket.setblocking(False)
        try:
            self._take(self._socket.recv(1 << 18))
        except BlockingIOError:
            return None
        except OSError as error:
            raise BoxLost(f"the box is gone: {error}") from error
        return self._parsed()

    def hang_up(self) -> None:
        """Tell the supervisor that we are gone; the descriptor stays valid for who waits on it."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()

    def _take(self, data: bytes) -> None:
        if not data:
            raise BoxLost("the box is gone: its supervisor has ended")
        self._waiting += data

    def _parsed(self) -> dict[str, Any] | None:
        if len(self._waiting) < 4:
            return None
        length = int.from_bytes(self._waiting[:4], "big")
        if length > LARGEST_EVENT:
            raise BoxLost(f"the box sent an event of {length} bytes")
        if len(self._waiting) < 4 + length:
            return None
        body = bytes(self._waiting[4 : 4 + length])
        del self._waiting[: 4 + length]
        event: dict[str, Any] = json.loads(body)
        return event
