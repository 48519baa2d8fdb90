"""A live box on the host's side: its processes, its socket, its group; made, watched, destroyed."""

import contextlib
import errno
import json
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sandbox.backends._cgroup import Leaf
from sandbox.contract import BoxLost, Limits, SandboxUnavailable
from sandbox.control import Control

READY_WITHIN_S = 20.0
"""A box is up in about 40 ms; under heavy load of the machine it may take seconds."""
DEAD_WITHIN_S = 1.0


@dataclass(frozen=True)
class Process:
    """What a housing started: the process to reap, the pipe that names the supervisor (if not itself), its errors."""

    popen: "subprocess.Popen[bytes]"
    info: int | None
    errors: int


class ProgramNotFound(BoxLost):
    """The image has no such program; the box is given up all the same."""


class Housing(Protocol):
    """Where a program lives: in a namespace of its own, or (explicitly) not."""

    @property
    def name(self) -> str: ...

    @property
    def isolated(self) -> bool: ...

    @property
    def work(self) -> str:
        """The work directory, as the program sees it."""

    @property
    def run_folder(self) -> str:
        """Where drivers are laid."""

    @property
    def places(self) -> Sequence[str]:
        """Every folder that the program can write; emptied between programs."""

    @property
    def root(self) -> str | None:
        """A folder that the supervisor removes when we are gone."""

    @property
    def syscalls(self) -> str:
        """How system calls are bounded."""

    def open(self, control_fd: int, limits: Limits) -> Process: ...

    def leaf(self) -> Leaf | None: ...

    def argv(self, words: Sequence[str]) -> list[str]: ...

    def environment(self) -> dict[str, str]: ...

    def remedy(self, errors: str) -> str: ...

    def clear(self) -> None: ...


class Cell:
    """One supervisor and everything below it."""

    def __init__(self, housing: Housing, limits: Limits) -> None:
        self.limits = limits
        self._isolated = housing.isolated
        self.leaf = housing.leaf()
        self._popen: subprocess.Popen[bytes] | None = None
        self._fds: list[int] = []
        self._closed: bool | None = None
        self._gone = False
        self._ending = threading.RLock()
        ours, theirs = socket.socketpair()
        self.control = Control(ours)
        try:
            with theirs:
                process = housing.open(theirs.fileno(), limits)
            self._start(process, housing)
        except BaseException:
            self.destroy()
            raise

    def _start(self, process: Process, housing: Housing) -> None:
        self._popen = process.popen
        self._errors = process.errors
        self._fds.append(process.errors)
        if process.info is not None:
            self._fds.append(process.info)
        self._outer = os.pidfd_open(process.popen.pid)
        self._fds.append(self._outer)
        try:
            pid = process.popen.pid if process.info is None else _child_pid(process.info)
            self.died = os.pidfd_open(pid)
            self._fds.append(self.died)
            if self.leaf is not None:
                self.leaf.add(pid)
            self.control.send(
                {
                    "work": housing.work,
                    "places": list(housing.places),
                    "root": housing.root,
                    "measured": self.leaf is None,
                }
            )
            self.control.receive(READY_WITHIN_S)
        except (BoxLost, OSError, ValueError) as error:
            said = self.errors()
            raise SandboxUnavailable(
                f"the box did not start: {said or error}. {housing.remedy(said)}".strip()
            ) from error

    def errors(self) -> str:
        """What bubblewrap or the supervisor wrote to its own error stream."""
        os.set_blocking(self._errors, False)
        with contextlib.suppress(OSError):
            return os.read(self._errors, 4096).decode("utf-8", "replace").strip()
        return ""

    @property
    def alive(self) -> bool:
        return self._closed is None and not _ready(self.died, 0)

    def command(self, command: dict[str, Any], expect: str, fds: Sequence[int] = (), within_s: float = 30.0) -> None:
        """Send and wait for the one event that answers.

        Raises:
            BoxLost: the box is gone, or could not do it.
        """
        self.control.send(command, fds)
        event = self.control.receive(within_s)
        if event["event"] == "fault":
            if event["errno"] == errno.ENOENT and command["do"] == "exec":
                raise ProgramNotFound(f"there is no {command['argv'][0]} in the box")
            raise BoxLost(f"the supervisor could not {command['do']}: {os.strerror(event['errno'])}")
        if event["event"] != expect:
            raise BoxLost(f"the supervisor answered {event['event']!r} to {command['do']!r}")

    def kill(self) -> None:
        """SIGKILL to the supervisor: the kernel then ends its whole namespace. Without one it must do that itself.

        Whoever closes the box and whoever follows its program may both end it: they use the descriptors in turns,
        and after `destroy` their numbers may be somebody else's.
        """
        with self._ending:
            if not self._gone:
                self._kill()

    def _kill(self) -> None:
        if not self._isolated and self._popen is not None:
            self.control.hang_up()
            if _ready(self._outer, DEAD_WITHIN_S):
                return
        for fd in (getattr(self, "died", None), getattr(self, "_outer", None)):
            if fd is not None:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(fd, signal.SIGKILL)
                _ready(fd, DEAD_WITHIN_S)

    def destroy(self) -> bool:
        """Kill, reap, remove. Idempotent; False when something could not be removed."""
        with self._ending:
            return self._destroy()

    def _destroy(self) -> bool:
        if self._closed is not None:
            return self._closed
        self._closed = False
        try:
            clean = self._reap()
            if self.leaf is not None:
                clean = self.leaf.remove() and clean
            self._closed = clean
        finally:
            self._gone = True
            self.control.close()
            for fd in self._fds:
                os.close(fd)
            self._fds.clear()
        return clean

    def _reap(self) -> bool:
        if self._popen is None:
            return True
        self.kill()
        try:
            self._popen.wait(DEAD_WITHIN_S)
        except subprocess.TimeoutExpired:
            return False
        return True


def _ready(fd: int, within_s: float) -> bool:
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    return bool(poller.poll(within_s * 1000))


def _child_pid(info: int) -> int:
    """The supervisor's pid as bubblewrap reports it, once the namespaces exist."""
    text, deadline = b"", time.monotonic() + READY_WITHIN_S
    while not text.rstrip().endswith(b"}"):
        if not _ready(info, max(0.0, deadline - time.monotonic())):
            raise BoxLost("bubblewrap did not report in time")
        data = os.read(info, 4096)
        if not data:
            raise BoxLost("bubblewrap ended before the box was up")
        text += data
    return int(json.loads(text)["child-pid"])
