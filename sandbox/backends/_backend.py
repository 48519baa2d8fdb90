"""What both backends share: slots, the thread that starts boxes, one program in a box of its own."""

import contextlib
import os
import platform
import threading
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sandbox.backends._box import SupervisedBox
from sandbox.backends._cell import Cell, Housing
from sandbox.backends._slots import Slot, Slots
from sandbox.contract import (
    Capabilities,
    ExecRequest,
    ExecResult,
    Limits,
    SandboxError,
    SandboxUnavailable,
    UnsupportedLanguage,
)
from sandbox.languages import LANGUAGES

TRIES = 3
"""A box that did not start is tried again; nothing of the program has run then."""
SPAWN_WITHIN_S = 60.0
PROBE = Limits(wall_s=20, memory_mb=1024, processes=64)
PACKAGES = {
    "bash": "apt-get install bash",
    "c": "apt-get install gcc libc6-dev",
    "cpp": "apt-get install g++",
    "javascript": "apt-get install nodejs",
}


class BoxBackend:
    """A backend whose boxes are supervised by `box_init`; subclasses say where the boxes live."""

    name = ""

    def __init__(self, boxes: int, own_uids: bool) -> None:
        self._slots = Slots(boxes, own_uids)
        self._spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sandbox-spawner")
        self._lock = threading.Lock()
        self._offered: dict[str, bool] = {}
        self._boxes: weakref.WeakSet[SupervisedBox] = weakref.WeakSet()
        self._closed = False

    # ── what a backend says ──

    def _housing(self, slot: Slot) -> Housing:
        raise SandboxUnavailable("this backend has no boxes")

    def _image_name(self) -> str:
        return ""

    def _details(self) -> dict[str, Any]:
        return {}

    # ── the contract ──

    def create(self, limits: Limits, image: str = "python") -> SupervisedBox:
        if image != "python":
            raise UnsupportedLanguage(f"there is no image {image!r}; there is `python`")
        with self._lock:
            if self._closed:
                raise SandboxUnavailable("the sandbox is closed")
        name, slot = self._image_name(), self._slots.take()
        try:
            for _ in range(TRIES - 1):
                with contextlib.suppress(SandboxUnavailable):
                    return self._box(slot, limits, name)
            return self._box(slot, limits, name)
        except BaseException:
            self._slots.give(slot, clean=True)
            raise

    def run(self, request: ExecRequest) -> ExecResult:
        box = self.create(request.limits, request.image)
        try:
            return box.run(request)
        finally:
            box.close()

    def capabilities(self) -> Capabilities:
        """Start a real box and try every language in it."""
        details: dict[str, Any] = {"root": os.getuid() == 0, "slots_quarantined": self._slots.quarantined}
        try:
            box = self.create(PROBE)
        except SandboxUnavailable as error:
            return Capabilities(self.name, False, (), {}, details, {"isolation": str(error)})
        try:
            for name in LANGUAGES:
                _try_language(box, name)
            methods, isolated = box.enforced(), box.isolated
        finally:
            box.close()
        languages = ["python", *sorted(name for name, good in self._offered.items() if good)]
        missing = _missing(methods, languages) if isolated else {"isolation": "TASKMILL_SANDBOX_BACKEND=local"}
        return Capabilities(self.name, isolated, languages, methods, {**details, **self._details()}, missing)

    def close(self) -> None:
        with self._lock:
            self._closed = True
        for box in list(self._boxes):
            box.close()
        self._spawner.shutdown(wait=True)
        self._slots.close()

    # ── one box ──

    def _box(self, slot: Slot, limits: Limits, image: str) -> SupervisedBox:
        def freed(box: SupervisedBox, clean: bool) -> None:
            self._boxes.discard(box)
            self._slots.give(slot, clean)

        housing = self._housing(slot)
        box = SupervisedBox(housing, limits, self._spawn, self._offered, freed, slot.waited_s, image)
        self._boxes.add(box)
        return box

    def _spawn(self, housing: Housing, limits: Limits) -> Cell:
        """On one long-lived thread: the kernel ends a box when the *thread* that started it ends."""
        try:
            future = self._spawner.submit(Cell, housing, limits)
        except RuntimeError as error:
            raise SandboxUnavailable("the sandbox is closed") from error
        try:
            return future.result(timeout=SPAWN_WITHIN_S)
        except TimeoutError as error:
            future.add_done_callback(lambda late: late.exception() or late.result().destroy())
            raise SandboxUnavailable(f"the machine could not start a box within {SPAWN_WITHIN_S:g} s") from error
        except OSError as error:
            raise SandboxUnavailable(f"the machine could not start a box: {error}") from error


def _try_language(box: SupervisedBox, name: str) -> None:
    """Fill the table of offered languages; what a failure means is recorded there."""
    try:
        box.run(ExecRequest(name, LANGUAGES[name].probe, limits=PROBE))
    except SandboxError:
        return


def _missing(methods: Mapping[str, str], languages: Sequence[str]) -> dict[str, str]:
    """What this machine lacks, and the command that adds it."""
    found = {name: PACKAGES[name] for name in LANGUAGES if name not in languages and name in PACKAGES}
    if methods["memory"] == "poll":
        found["cgroup"] = (
            "run as root, or in a delegated group: `systemd-run --user --scope -p Delegate=yes taskmill up`"
        )
    if methods["syscalls"] == "none":
        found["seccomp"] = f"run on x86_64 or aarch64: there is no filter for {platform.machine()}"
    return found
