"""The embedded mode: one API process and one worker process, watched, restarted, and ended together.

The listening socket belongs to the supervisor: while the API is restarted, connections wait instead of being refused.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path

from service.settings import Settings

STOP_WAIT_S = 30.0
CRASHES, CRASH_WINDOW_S = 3, 60.0


class StartFailed(Exception):
    """A part of the service could not be started; the message says which and what to do."""


class Child:
    """One supervised process. Its output goes to `<data>/logs/<name>.log`."""

    def __init__(self, name: str, arguments: list[str], log: Path, descriptors: tuple[int, ...] = ()) -> None:
        self.name = name
        self.log = log
        self._arguments = arguments
        self._descriptors = descriptors
        self._crashes: deque[float] = deque(maxlen=CRASHES)
        self._lifeline: int | None = None
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        ours, theirs = os.pipe()  # the child reads `ours`; `theirs` stays open here as long as this process lives
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "taskmill", *self._arguments, "--lifeline-fd", str(ours)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # or a terminal's Ctrl-C would reach it twice
                pass_fds=(ours, *self._descriptors),
            )
        os.close(ours)
        self._lifeline = theirs

    def restart_if_dead(self) -> str | None:
        """Start it again after a crash; the reason to give up, if it crashes again and again."""
        if self.process is None or self.process.poll() is None:
            return None
        self._release()
        self._crashes.append(time.monotonic())
        if len(self._crashes) == CRASHES and self._crashes[-1] - self._crashes[0] < CRASH_WINDOW_S:
            return f"{self.name} ended {CRASHES} times within a minute (exit {self.process.returncode}); see {self.log}"
        self.start()
        return None

    def stop(self, deadline: float) -> None:
        """Ask it to end, wait, and kill it when it does not."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(timeout=5)
        self._release()

    def _release(self) -> None:
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None


class Supervisor:
    """API and worker of one data folder. Use as a context manager; `failure` says why it gave up, if it did."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._socket = listen(settings.host, settings.port)
        host, port = self._socket.getsockname()[:2]
        self.url = f"http://{host}:{port}"
        logs = settings.data / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        descriptor = self._socket.fileno()
        self.api = Child("api", ["api", "--listen-fd", str(descriptor)], logs / "api.log", (descriptor,))
        self.worker = Child("worker", ["worker"], logs / "worker.log")
        self.failure: str | None = None
        self._ending = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="supervisor", daemon=True)

    def __enter__(self) -> "Supervisor":
        for child in (self.api, self.worker):
            child.start()
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._watcher.join(timeout=5)
        deadline = time.monotonic() + STOP_WAIT_S
        for child in (self.api, self.worker):  # both are asked first, then waited for
            if child.process is not None and child.process.poll() is None:
                child.process.send_signal(signal.SIGTERM)
        for child in (self.api, self.worker):
            child.stop(deadline)
        self._socket.close()

    def wait_ready(self, within_s: float = 60.0) -> None:
        """Wait until the service answers that it is ready.

        Raises:
            StartFailed: it gave up or was not ready in time.
        """
        import httpx

        deadline = time.monotonic() + within_s
        answer = "no answer yet"
        while time.monotonic() < deadline:
            if self.failure:
                raise StartFailed(self.failure)
            try:
                response = httpx.get(f"{self.url}/readyz", timeout=5)
                if response.status_code == 200:
                    return
                answer = response.text
            except httpx.HTTPError as error:
                answer = str(error)
            self._ending.wait(0.1)
        raise StartFailed(f"not ready within {within_s:.0f} s: {answer}; see {self.api.log}")

    def wait(self) -> None:
        """Block until the service has given up; Ctrl-C and SIGTERM end it earlier."""
        while self.failure is None and not self._ending.wait(0.5):
            pass

    def _watch(self) -> None:
        while not self._ending.wait(0.2):
            for child in (self.api, self.worker):
                self.failure = child.restart_if_dead()
                if self.failure:
                    return


def listen(host: str, port: int) -> socket.socket:
    """The listening socket.

    Raises:
        StartFailed: the address is taken or cannot be had.
    """
    try:
        return socket.create_server((host, port), backlog=2048)
    except OSError as error:
        raise StartFailed(f"cannot listen on {host}:{port}: {error.strerror}; choose another --port") from error
