"""The service side of the worker processes: the template process, and one handle for each worker forked from it."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

START_S = 60.0
_CLOSE_S = 5.0


class WorkerLost(Exception):
    """A worker, or the template that should fork it, is gone. Nothing is known about its case."""


class Worker:
    """One forked worker: its link, and a handle that cannot hit another process."""

    def __init__(self, link: socket.socket, pid: int) -> None:
        self.link = link
        self.pid = pid
        self.judged = 0
        try:
            self._handle = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
        except ProcessLookupError:
            self._handle = None

    def cpu_seconds(self) -> float | None:
        """What it has used so far; None where the kernel does not say."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self) -> None:
        """End it now. Idempotent."""
        self.link.close()
        handle, self._handle = self._handle, None
        if handle is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            os.close(handle)


class Template:
    """The warm process that workers are forked from. Started when first needed, started again when it has died."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def fork(self) -> Worker:
        """A fresh worker.

        Raises:
            WorkerLost: no worker could be started.
        """
        with self._lock:
            for _ in range(2):  # the second time with a new template
                try:
                    return self._forked()
                except OSError:
                    self._end()
        raise WorkerLost("no worker could be started")

    def warm(self) -> None:
        """Start the template without waiting for it."""
        with self._lock, contextlib.suppress(OSError):
            if self._control is None:
                self._start()

    def close(self) -> None:
        """End the template and with it every worker. Idempotent."""
        with self._lock:
            self._end()

    def _forked(self) -> Worker:
        control = self._control or self._start()
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                socket.send_fds(control, [b"f"], [theirs.fileno()])
            answer = control.recv(8)
            if len(answer) < 8:
                raise ConnectionError("the template is gone")
        except OSError:
            ours.close()
            raise
        return Worker(ours, int.from_bytes(answer, "big"))

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        root = str(Path(__file__).resolve().parent.parent)
        path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""))))
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "verifiers.worker", str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # a Ctrl-C reaches the service alone, which then ends this
            )
        ours.settimeout(START_S)
        self._control = ours
        return ours

    def _end(self) -> None:
        control, self._control = self._control, None
        process, self._process = self._process, None
        if control is not None:
            control.close()
        if process is not None:
            try:
                process.wait(timeout=_CLOSE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(timeout=_CLOSE_S)
