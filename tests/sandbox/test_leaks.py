"""After hostile programs nothing is left, and after a killed service neither."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from sandbox.backends import make_backend
from sandbox.backends._cgroup import PREFIX, detect
from sandbox.contract import Backend, ExecRequest, Limits, SandboxUnavailable
from tests.conftest import wait_until
from tests.sandbox.conftest import gauge

ROOT = Path(__file__).parents[2]
SHORT = Limits(wall_s=0.4, memory_mb=64, output_kb=64, processes=12, disk_mb=8)
HOSTILE = [
    "import os\nwhile True: os.fork()",
    "import time; time.sleep(60)",
    "while True: print('x' * 10000)",
    "x = b'x' * (400 << 20)",
    "import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(60)",
    "open('f', 'wb').write(b'x' * (64 << 20))",
    "import os; os.kill(0, 19)",
    "import os\nfor _ in range(1200): os.mkdir('d'); os.chdir('d')",
    "import os; os.mkfifo('p'); open('p')",
    "import ctypes; ctypes.string_at(0)",
    "import os; os.close(1); os.close(2); os.kill(-1, 9)",
    "print(1",
]


@pytest.mark.parametrize("kind", ["local", "unisolated"])
def test_sixty_hostile_programs_leave_nothing(kind: str) -> None:
    backend = make_backend(kind, 2)
    try:
        for box in [backend.create(SHORT) for _ in range(2)]:  # a slot keeps its lock for the life of the service
            box.close()
    except SandboxUnavailable as error:
        backend.close()
        pytest.skip(f"no isolation on this machine: {error}")
    try:
        # Without namespaces, killing every process and forking without end would be felt by the machine itself.
        programs = [
            code for code in HOSTILE if kind == "local" or ("-1" not in code and "while True: os.fork" not in code)
        ]
        before = gauge()
        with ThreadPoolExecutor(2) as threads:
            requests = [ExecRequest("python", programs[i % len(programs)], limits=SHORT) for i in range(60)]
            results = list(threads.map(backend.run, requests))
        assert {result.backend for result in results} == {kind}
        wait_until(lambda: gauge().children <= before.children, within_s=5)
        assert gauge() == before
    finally:
        backend.close()


def test_eight_boxes_at_once_each_with_limits_of_their_own(backend: Backend) -> None:
    code = "import time\nx = b'j' * (40 << 20)\ntime.sleep(0.3)\nprint(len(x) >> 20)"
    request = ExecRequest("python", code, limits=Limits(memory_mb=72))
    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(backend.run, [request] * 16))
    assert {(result.status, result.stdout) for result in results} == {("ok", "40\n")}


def test_waiting_for_a_slot_is_a_phase_of_its_own() -> None:
    backend = make_backend("local", 1)
    try:
        request = ExecRequest("python", "import time; time.sleep(0.3)")
        with ThreadPoolExecutor(2) as threads:
            results = list(threads.map(backend.run, [request] * 2))
    except SandboxUnavailable as error:
        pytest.skip(f"no isolation on this machine: {error}")
    finally:
        backend.close()
    assert max(result.phases["queue"] for result in results) > 0.2
    assert max(result.wall_s for result in results) < 0.9


def test_a_box_outlives_the_thread_that_asked_for_it(backend: Backend) -> None:
    with ThreadPoolExecutor(1) as threads:
        box = threads.submit(backend.create, Limits()).result(timeout=20)
    try:
        assert box.run(ExecRequest("python", "print(1)")).stdout == "1\n"
    finally:
        box.close()


SERVICE = """
import sys
from sandbox.backends import make_backend
from sandbox.contract import ExecRequest, Limits
backend = make_backend(sys.argv[1], 1)
box = backend.create(Limits(wall_s=100))
running = box.start(ExecRequest("bash", "sleep 77.25 & setsid sleep 77.25 & sleep 77.25"))
print("up", flush=True)
running.wait()
"""


def _sleepers() -> list[int]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if process.info["cmdline"] == ["sleep", "77.25"] and process.status() != psutil.STATUS_ZOMBIE:
            found.append(process.pid)
    return found


@pytest.mark.faults
@pytest.mark.parametrize("kind", ["local", "unisolated"])
def test_a_killed_service_leaves_no_process_no_group_and_no_file(kind: str) -> None:
    before = gauge().temporary
    service = subprocess.Popen(
        [sys.executable, "-c", SERVICE, kind], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert service.stdout is not None
        assert service.stderr is not None
        line = service.stdout.readline()
        if not line:
            pytest.skip(f"no box on this machine: {service.stderr.read().decode()[-300:]}")
        wait_until(lambda: len(_sleepers()) == 3)
    finally:
        service.send_signal(signal.SIGKILL)
        service.communicate(timeout=10)
    wait_until(lambda: not _sleepers(), within_s=5)
    wait_until(lambda: gauge().temporary <= before, within_s=5)
    groups = detect()
    if groups is not None:
        groups.sweep()
        assert not [path for base in groups.folders() for path in base.glob(f"{PREFIX}.*.{service.pid}.*")]


def test_leaves_of_the_living_are_not_swept() -> None:
    groups = detect()
    if groups is None:
        pytest.skip("no control group can be made: run as root, or `systemd-run --user --scope -p Delegate=yes`")
    leaf = groups.leaf()
    try:
        groups.sweep()
        assert leaf.at.memory.is_dir()
    finally:
        assert leaf.remove()
    assert not leaf.at.memory.exists()


def test_the_service_stays_small_whatever_a_program_prints(grouped: Backend) -> None:
    before = psutil.Process().memory_info().rss
    for _ in range(3):
        grouped.run(ExecRequest("python", "import os\nwhile True: os.write(1, b'x' * 65536)"))
    assert psutil.Process().memory_info().rss - before < 40 << 20


def test_descriptors_of_the_service_are_not_in_the_box(grouped: Backend) -> None:
    with open(ROOT / "pyproject.toml") as file:
        os.set_inheritable(file.fileno(), True)
        result = grouped.run(ExecRequest("python", "import os; print(sorted(os.listdir('/proc/self/fd')))"))
    assert result.stdout == "['0', '1', '2', '3']\n"  # 3 is the listing itself


def test_an_answer_comes_within_a_second_after_the_limit(backend: Backend) -> None:
    started = time.monotonic()
    result = backend.run(ExecRequest("python", HOSTILE[0], limits=Limits(wall_s=0.5, processes=200)))
    assert result.status in ("wall_limit", "process_limit", "memory_limit")
    assert time.monotonic() - started - result.phases["start"] - result.phases["queue"] < 1.8
