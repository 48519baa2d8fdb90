"""The README's examples run as they stand, against a real service."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from processes import ROOT, Process, free_port, run_to_end, wait_ready

README = (ROOT / "README.md").read_text()
SHELL = re.findall(r"```bash\n(.*?)```", README, re.DOTALL)
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.timeout(180)
def test_the_examples_run(tmp_path: Path) -> None:
    """The REST example makes, judges and lists; the trainer example leases, verifies and completes."""
    port = free_port()
    data = tmp_path / ".taskmill"
    environment = {"TASKMILL_DATA": str(data), "TASKMILL_PORT": str(port), "TASKMILL_SPLIT_HOLDOUT_SHARE": "0"}
    environment["TASKMILL_SPLIT_EVAL_SHARE"] = "0"
    with Process(tmp_path / "up.log", "up", **environment) as service:
        wait_ready(f"http://127.0.0.1:{port}", service)
        shell = SHELL[0].replace("127.0.0.1:8700", f"127.0.0.1:{port}")
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", shell],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr + service.tail()
        assert '"outcome":"verified"' in done.stdout.replace(" ", "")
        assert '"stdout":"42\\n"' in done.stdout.replace(" ", "")
        _wait_for_an_active_task(data, port)
        python = PYTHON[0].replace("127.0.0.1:8700", f"127.0.0.1:{port}")
        python += "        assert len(rewards) == 4\nassert lease['items']\n"
        done = subprocess.run(
            [sys.executable, "-c", python], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def _wait_for_an_active_task(data: Path, port: int) -> None:
    from taskmill_client import Client
    from tests.conftest import wait_until

    with Client(f"http://127.0.0.1:{port}", (data / "admin.key").read_text().strip()) as client:
        wait_until(lambda: list(client.tasks.list(status="active")), within_s=30)


def test_both_examples_are_about_ten_lines() -> None:
    assert len(SHELL[0].splitlines()) <= 11
    assert len(PYTHON[0].splitlines()) <= 11


@pytest.mark.parametrize("link", re.findall(r"\]\(((?!https?:)[^)]+)\)", README))
def test_links_lead_somewhere(link: str) -> None:
    assert (ROOT / link.split("#")[0]).exists(), link


def test_every_command_has_help() -> None:
    done = run_to_end("--help")
    assert done.returncode == 0
    for command in ("up", "api", "worker", "import", "verify", "execute", "train", "keys", "db", "sandbox", "factory"):
        assert re.search(rf"^  {command}\s", done.stdout, re.MULTILINE), command
