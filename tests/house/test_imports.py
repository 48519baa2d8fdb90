"""H5–H7: floors, quiet imports, start-up cost."""

import json
import os
import subprocess
import sys
import time

import pytest

from tree import ROOT

QUIET = """
import json, os, sys, threading
before = set(os.environ.items()), threading.active_count(), len(os.listdir("/proc/self/fd"))
__import__(sys.argv[1])
after = set(os.environ.items()), threading.active_count(), len(os.listdir("/proc/self/fd"))
print(json.dumps({"quiet": before == after, "modules": sorted(m for m in sys.modules if "." not in m)}))
"""


def _fresh(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("package", "never"),
    [
        ("taskmill.cli.app", "rich pydantic sqlalchemy fastapi torch celery sympy datasketch httpx"),
        ("service", "celery torch datasketch sympy fastapi"),
        ("service.store.session", "celery torch datasketch sympy math_verify fastapi"),
        ("service.app", "torch datasketch sympy math_verify celery"),
        ("factory", "torch datasketch sympy"),
        ("verifiers.registry", "sympy math_verify datasketch torch pint"),
        ("sandbox.contract", "docker psutil"),
        ("trainer", "torch fastapi sqlalchemy"),
        ("taskmill_client", "pydantic torch sqlalchemy"),
    ],
)
def test_imports_are_quiet_and_light(package: str, never: str) -> None:
    """H6, H7: importing starts nothing and loads nothing heavy."""
    found = json.loads(_fresh("-c", QUIET, package))
    assert found["quiet"], f"importing {package} opened something, started a thread or changed the environment"
    assert not set(never.split()) & set(found["modules"])


def test_floors_hold() -> None:
    """H4, H5: import-linter's contracts of pyproject.toml."""
    command = [os.path.join(os.path.dirname(sys.executable), "lint-imports")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.bench
def test_help_answers_within_200_ms_and_service_imports_within_a_second() -> None:
    """Best of five; a time, so it runs only where it is asked for (`-m bench`)."""
    best = {"help": 9.0, "service": 9.0}
    for _ in range(5):
        for name, arguments in (("help", ("-m", "taskmill", "--help")), ("service", ("-c", "import service"))):
            start = time.perf_counter()
            _fresh(*arguments)
            best[name] = min(best[name], time.perf_counter() - start)
    assert best["help"] < 0.2
    assert best["service"] < 1.0
