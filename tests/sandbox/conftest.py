"""Real boxes for the tests of the sandbox, and gauges of what they leave behind."""

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

import psutil
import pytest

from sandbox.backends import make_backend
from sandbox.backends._cgroup import detect
from sandbox.backends.local import LocalBackend
from sandbox.contract import Backend, ExecRequest, ExecResult, Limits, SandboxUnavailable

Execute = Callable[..., ExecResult]


def _needs_boxes(backend: Backend) -> None:
    try:
        backend.run(ExecRequest("python", "pass"))
    except SandboxUnavailable as error:
        backend.close()
        pytest.skip(f"no isolation on this machine: {error}")


@pytest.fixture(scope="session")
def grouped() -> Iterator[Backend]:
    backend = make_backend("local", 8)
    _needs_boxes(backend)
    yield backend
    backend.close()


@pytest.fixture(scope="session")
def measured() -> Iterator[Backend]:
    """As on a machine without control groups."""
    backend = LocalBackend(8, groups=False)
    _needs_boxes(backend)
    yield backend
    backend.close()


@pytest.fixture(params=["grouped", "measured"])
def backend(request: pytest.FixtureRequest) -> Backend:
    """The same promise with control groups and without them."""
    if request.param == "grouped" and detect() is None:
        pytest.skip("no control group can be made: run as root, or `systemd-run --user --scope -p Delegate=yes`")
    found: Backend = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def execute(backend: Backend) -> Execute:
    """Run a program: `execute(code, language=, limits=Limits fields)`."""

    def run(code: str, language: str = "python", limits: dict[str, float] | None = None, **rest: object) -> ExecResult:
        bounds = Limits(**{"wall_s": 10, "memory_mb": 256, **(limits or {})})  # type: ignore[arg-type]
        return backend.run(ExecRequest(language, code, limits=bounds, **rest))  # type: ignore[arg-type]

    return run


class Gauge(NamedTuple):
    """What a box could leave behind on the machine."""

    children: int
    zombies: int
    mounts: int
    groups: int
    descriptors: int
    temporary: frozenset[str]


def gauge() -> Gauge:
    import tempfile

    me = psutil.Process()
    children = me.children(recursive=True)
    groups = detect()
    own = f".{os.getpid()}."
    folders = [] if groups is None else [path for base in groups.folders() for path in base.glob(f"taskmill.*{own}*")]
    with open("/proc/self/mounts") as file:
        mounts = len(file.readlines())
    return Gauge(
        len(children),
        sum(child.is_running() and child.status() == psutil.STATUS_ZOMBIE for child in children),
        mounts,
        len(folders),
        me.num_fds(),
        frozenset(name for name in os.listdir(tempfile.gettempdir()) if name.startswith("taskmill-box-")),
    )
