"""Without root: the same statuses, every slot under the service's own uid, limits measured where no group is ours."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from sandbox.image import stage

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json
from sandbox.backends import make_backend
from sandbox.contract import ExecRequest, Limits
backend = make_backend("local", 2)
limits = Limits(wall_s=3, memory_mb=96, processes=12, disk_mb=8)
codes = [
    "print(open('/proc/self/status').read().split('CapEff:')[1].split()[0])",
    "x = [b'%d' % i * (8 << 20) for i in range(30)]",
    "import os, time\\nfor _ in range(40):\\n    if os.fork() == 0: time.sleep(2); os._exit(0)",
    "open('fill', 'wb').write(b'x' * (64 << 20))",
    "while True: pass",
]
results = [backend.run(ExecRequest("python", code, limits=limits)) for code in codes]
print(json.dumps([[r.status, r.stdout, r.limits_enforced] for r in results]))
backend.close()
"""


@pytest.mark.skipif(os.getuid() != 0, reason="the whole suite runs without root here already: run as root to compare")
def test_nobody_gets_the_same_boxes(tmp_path_factory: pytest.TempPathFactory) -> None:
    import shutil
    import site
    import tempfile

    if not shutil.which("setpriv"):
        pytest.skip("setpriv is not installed: apt-get install util-linux")
    image = stage()
    home = Path(tempfile.mkdtemp(prefix="taskmill-nobody-"))
    try:
        home.chmod(0o755)
        os.chown(home, 65534, 65534)
        done = subprocess.run(
            [
                "setpriv",
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
                str(image.local / "bin/python3"),
                "-B",
                "-",
            ],
            input=PROGRAM,
            env={
                "TASKMILL_SANDBOX_CACHE": str(home / "cache"),
                "LD_LIBRARY_PATH": str(image.local / "lib"),
                "PYTHONPATH": os.pathsep.join([str(ROOT), *site.getsitepackages()]),
            },
            cwd="/",
            capture_output=True,
            text=True,
            timeout=100,
        )
        if "PermissionError" in done.stderr or "No module named" in done.stderr:
            pytest.skip(f"the repository is closed to other users: chmod o+rX {ROOT} and its parents")
        assert done.returncode == 0, done.stderr
        results = json.loads(done.stdout)
        assert [status for status, _, _ in results] == [
            "ok",
            "memory_limit",
            "process_limit",
            "disk_limit",
            "wall_limit",
        ]
        assert results[0][1] == "0000000000000000\n"
        assert {found["memory"] for _, _, found in results} <= {"poll", "cgroup1", "cgroup2"}
    finally:
        shutil.rmtree(home, ignore_errors=True)
