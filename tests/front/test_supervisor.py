"""The embedded mode: one command, children that are watched, nothing left behind."""

import os
import signal
from pathlib import Path

import psutil
import pytest

from processes import Process, free_port, run_to_end, wait_ready
from taskmill_client import Client
from tests.conftest import wait_until

pytestmark = pytest.mark.timeout(120)


def _up(tmp_path: Path, port: int) -> Process:
    return Process(tmp_path / "up.log", "up", TASKMILL_DATA=str(tmp_path / "data"), TASKMILL_PORT=str(port))


def _family(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def _child(pid: int, word: str) -> psutil.Process:
    return next(child for child in psutil.Process(pid).children() if word in child.cmdline())


def test_a_killed_child_is_started_again_and_no_connection_is_refused(tmp_path: Path) -> None:
    port = free_port()
    with _up(tmp_path, port) as service:
        wait_ready(f"http://127.0.0.1:{port}", service)
        key = (tmp_path / "data" / "admin.key").read_text().strip()
        assert (tmp_path / "data" / "admin.key").stat().st_mode & 0o777 == 0o600
        assert service.popen is not None
        with Client(f"http://127.0.0.1:{port}", key) as client:
            for word in ("api", "worker"):
                old = _child(service.popen.pid, word)
                old.kill()
                wait_until(lambda old=old: not old.is_running() or old.status() == psutil.STATUS_ZOMBIE)
                job = client.jobs.create("factory.generate", {"generator": "text.reverse", "accepted": 5, "seed": 1})
                assert client.jobs.wait(job["id"], timeout_s=60)["status"] == "done"


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_when_it_ends_its_children_end(end: signal.Signals, tmp_path: Path) -> None:
    """D29, and the lifeline: even a SIGKILL of the supervisor leaves no process behind."""
    port = free_port()
    service = _up(tmp_path, port).start()
    try:
        wait_ready(f"http://127.0.0.1:{port}", service)
        assert service.popen is not None
        family = _family(service.popen.pid)
        assert len(family) >= 2
        os.kill(service.popen.pid, end)
        wait_until(
            lambda: not [p for p in family if p.is_running() and p.status() != psutil.STATUS_ZOMBIE], within_s=40
        )
    finally:
        service.stop()


def test_a_taken_port_is_said(tmp_path: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run_to_end("up", TASKMILL_DATA=str(tmp_path), TASKMILL_PORT=port)
    assert done.returncode == 1
    assert "--port" in done.stderr
