"""The default backend: bubblewrap's namespaces, no daemon, no root needed. See `_bwrap`, `_cgroup`, `_seccomp`.

Not covered: a kernel bug reachable through the allowed system calls, and CPU side channels between boxes.
"""

import os
import platform
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sandbox.backends import _bwrap, _seccomp
from sandbox.backends._box import SupervisedBox, enforced
from sandbox.backends._cell import Cell, Housing, Process
from sandbox.backends._cgroup import Hierarchy, Leaf, detect
from sandbox.backends._slots import Slot, Slots
from sandbox.contract import Capabilities, ExecRequest, ExecResult, Limits, SandboxError, SandboxUnavailable
from sandbox.image import Image, stage
from sandbox.languages import LANGUAGES, environment

TRIES = 3
"""A box that did not start is tried again; nothing of the program has run then."""


class NamespaceHousing:
    """One slot's place in the kernel."""

    name = "local"
    isolated = True
    work = "/box"
    run_folder = _bwrap.RUN_FOLDER
    places = _bwrap.PLACES

    def __init__(self, image: Image, hierarchy: Hierarchy | None, uid: int | None) -> None:
        self._image = image
        self._hierarchy = hierarchy
        self._uid = uid
        self._libraries = {"LD_LIBRARY_PATH": "/usr/local/lib"} if image.own_libraries else {}
        self.syscalls = "seccomp" if _seccomp.program() else "none"

    def open(self, control_fd: int, limits: Limits) -> Process:
        spawned = _bwrap.spawn(self._image, limits.disk_mb << 20, control_fd, self._uid)
        return Process(spawned.process, spawned.info, spawned.errors)

    def leaf(self) -> Leaf | None:
        return self._hierarchy.leaf() if self._hierarchy is not None else None

    def argv(self, words: Sequence[str]) -> list[str]:
        return list(words)

    def environment(self) -> dict[str, str]:
        return environment(self._libraries)

    def remedy(self, errors: str) -> str:
        return _remedy(errors)

    def clear(self) -> None:
        """Everything of a namespace is gone with its last process."""


def _remedy(errors: str) -> str:
    """What would help, from bubblewrap's own message."""
    if any(word in errors for word in ("uid map", "new namespace", "user namespace", "not permitted")):
        return (
            "User namespaces are not allowed here: `sysctl -w user.max_user_namespaces=10000`, and on Ubuntu "
            "`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`; in a container start it with "
            "`--security-opt seccomp=unconfined --security-opt systempaths=unconfined`, or choose another backend "
            "explicitly with TASKMILL_SANDBOX_BACKEND"
        )
    if "proc" in errors:
        return "A container hides parts of /proc: start it with `--security-opt systempaths=unconfined`"
    return "`taskmill sandbox doctor` shows what is missing"


class LocalBackend:
    """Boxes of bubblewrap. Cheap to make: the image is staged and the groups are found at the first box."""

    name = "local"

    def __init__(self, boxes: int) -> None:
        self._slots = Slots(boxes, own_uids=os.getuid() == 0)
        self._spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sandbox-spawner")
        self._lock = threading.Lock()
        self._prepared: tuple[Image, Hierarchy | None] | None = None
        self._offered: dict[str, bool] = {}
        self._boxes: weakref.WeakSet[SupervisedBox] = weakref.WeakSet()
        self._closed = False

    def _prepare(self) -> tuple[Image, Hierarchy | None]:
        with self._lock:
            if self._closed:
                raise SandboxUnavailable("the sandbox is closed")
            if self._prepared is None:
                if platform.system() != "Linux":
                    raise SandboxUnavailable(
                        "namespaces need Linux: run Taskmill in a Linux container, or choose the weaker backend "
                        "explicitly with TASKMILL_SANDBOX_BACKEND=unisolated"
                    )
                _bwrap.binary()
                hierarchy = detect()
                if hierarchy is not None:
                    hierarchy.sweep()
                self._prepared = stage(), hierarchy
            return self._prepared

    def create(self, limits: Limits, image: str = "python") -> SupervisedBox:
        if image != "python":
            raise SandboxUnavailable(f"there is no image {image!r}; there is `python`")
        staged, hierarchy = self._prepare()
        for attempt in range(TRIES):
            slot = self._slots.take()
            try:
                return self._box(NamespaceHousing(staged, hierarchy, slot.uid), limits, slot, staged.name)
            except SandboxUnavailable:
                self._slots.give(slot, clean=True)
                if attempt == TRIES - 1:
                    raise
            except BaseException:
                self._slots.give(slot, clean=True)
                raise
        raise SandboxUnavailable("no box could be started")

    def _box(self, housing: Housing, limits: Limits, slot: Slot, image: str) -> SupervisedBox:
        def freed(box: SupervisedBox, clean: bool) -> None:
            self._boxes.discard(box)
            self._slots.give(slot, clean)

        box = SupervisedBox(housing, limits, self._spawn, self._offered, freed, slot.waited_s, image)
        self._boxes.add(box)
        return box

    def _spawn(self, housing: Housing, limits: Limits) -> Cell:
        """On one long-lived thread: the kernel ends a box when the *thread* that started it ends."""
        try:
            return self._spawner.submit(Cell, housing, limits).result(timeout=60)
        except TimeoutError as error:
            raise SandboxUnavailable("the machine could not start a box within 60 s") from error
        except RuntimeError as error:
            raise SandboxUnavailable("the sandbox is closed") from error
        except OSError as error:
            raise SandboxUnavailable(f"the machine could not start a box: {error}") from error

    def run(self, request: ExecRequest) -> ExecResult:
        box = self.create(request.limits, request.image)
        try:
            return box.run(request)
        finally:
            box.close()

    def capabilities(self) -> Capabilities:
        """Start a real box and try every language in it."""
        details: dict[str, Any] = {"root": os.getuid() == 0, "slots_quarantined": self._slots.quarantined}
        limits = Limits(wall_s=20, memory_mb=1024, processes=64)
        try:
            box = self.create(limits)
        except SandboxUnavailable as error:
            return Capabilities(self.name, False, (), {}, details, {"isolation": str(error)})
        try:
            for name in LANGUAGES:
                _try_language(box, name)
            cell = box._ready_cell(limits)
            methods = enforced(cell, box._housing)
        finally:
            box.close()
        languages = ["python", *sorted(name for name, good in self._offered.items() if good)]
        staged, hierarchy = self._prepare()
        details |= {"image": staged.name, "bubblewrap": _bwrap.version(), "bubblewrap_path": str(_bwrap.binary())}
        details["cgroup"] = (
            None if hierarchy is None else {"version": hierarchy.version, "group": str(hierarchy.memory)}
        )
        return Capabilities(self.name, True, languages, methods, details, _missing(methods, languages))

    def close(self) -> None:
        with self._lock:
            self._closed = True
        for box in list(self._boxes):
            box.close()
        self._spawner.shutdown(wait=True)
        self._slots.close()


def _try_language(box: SupervisedBox, name: str) -> None:
    language = LANGUAGES[name]
    try:
        box.run(ExecRequest(name, language.probe, limits=Limits(wall_s=20, memory_mb=1024, processes=64)))
    except SandboxError:
        return


_PACKAGES = {"bash": "apt-get install bash", "c": "apt-get install gcc libc6-dev", "cpp": "apt-get install g++"}


def _missing(methods: dict[str, str], languages: Sequence[str]) -> dict[str, str]:
    found = {name: _PACKAGES.get(name, "apt-get install nodejs") for name in LANGUAGES if name not in languages}
    if methods["memory"] == "poll":
        found["cgroup"] = "run as root, or with a delegated group: `systemd-run --user --scope -p Delegate=yes …`"
    if methods["syscalls"] == "none":
        found["seccomp"] = f"no filter for {platform.machine()}; x86_64 and aarch64 have one"
    return found
