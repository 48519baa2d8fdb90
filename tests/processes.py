"""Real processes of Taskmill for tests: the API and workers by hand, as in the distributed mode."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

import httpx

ROOT = Path(__file__).parents[1]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Process:
    """`python -m taskmill …`, restartable, its output in a file."""

    def __init__(self, log: Path, *arguments: str, **environment: str) -> None:
        self.log = log
        self._arguments = arguments
        self._environment = os.environ | {"PYTHONUNBUFFERED": "1"} | environment
        self.popen: subprocess.Popen[bytes] | None = None

    def start(self) -> "Process":
        with self.log.open("ab") as output:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", "taskmill", *self._arguments],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        return self

    @property
    def alive(self) -> bool:
        return self.popen is not None and self.popen.poll() is None

    def kill(self) -> None:
        """SIGKILL of the main process alone: its children must find out themselves."""
        assert self.popen is not None
        self.popen.kill()
        self.popen.wait(timeout=10)

    def stop(self, within_s: float = 30.0) -> int:
        """A polite end; whatever is left of its session is killed."""
        if self.popen is None:
            return 0
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)
            try:
                self.popen.wait(timeout=within_s)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait(timeout=5)
        return self.popen.returncode

    def tail(self, size: int = 4000) -> str:
        return self.log.read_text(errors="replace")[-size:] if self.log.exists() else ""

    def __enter__(self) -> "Process":
        return self.start()

    def __exit__(self, _t: type[BaseException] | None, _e: BaseException | None, _tb: TracebackType | None) -> None:
        self.stop()


def run_to_end(*arguments: str, within_s: float = 120, **environment: str) -> subprocess.CompletedProcess[str]:
    """One command of the CLI, to its end."""
    return subprocess.run(
        [sys.executable, "-m", "taskmill", *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=within_s,
    )


def wait_ready(url: str, process: Process, within_s: float = 60) -> None:
    """Until `/readyz` answers 200."""
    deadline = time.monotonic() + within_s
    last = "no answer"
    while time.monotonic() < deadline:
        if not process.alive:
            break
        try:
            answer = httpx.get(f"{url}/readyz", timeout=5)
            if answer.status_code == 200:
                return
            last = answer.text
        except httpx.HTTPError as error:
            last = repr(error)
        time.sleep(0.05)
    raise AssertionError(f"not ready: {last}\n{process.tail()}")
