"""The default backend: bubblewrap's namespaces, no daemon, no root needed. See `_bwrap`, `_cgroup`, `_seccomp`.

Not covered: a kernel bug reachable through the allowed system calls, and CPU side channels between boxes.
"""

import os
import platform
import threading
from collections.abc import Sequence
from typing import Any

from sandbox.backends import _bwrap, _seccomp
from sandbox.backends._backend import BoxBackend
from sandbox.backends._cell import Process
from sandbox.backends._cgroup import Hierarchy, Leaf, detect
from sandbox.backends._slots import Slot
from sandbox.contract import Limits, SandboxUnavailable
from sandbox.image import Image, stage
from sandbox.languages import environment


class NamespaceHousing:
    """One slot's place in the kernel."""

    name = "local"
    isolated = True
    work = "/box"
    run_folder = _bwrap.RUN_FOLDER
    places = _bwrap.PLACES
    root = None

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


class LocalBackend(BoxBackend):
    """Boxes of bubblewrap. Cheap to make: the image is staged and the groups are found at the first box."""

    name = "local"

    def __init__(self, boxes: int, groups: bool = True) -> None:
        """`groups=False` measures boxes instead of using control groups, as on a machine without them."""
        super().__init__(boxes, own_uids=os.getuid() == 0)
        self._groups = groups
        self._prepare_once = threading.Lock()
        self._prepared: tuple[Image, Hierarchy | None] | None = None

    def _prepare(self) -> tuple[Image, Hierarchy | None]:
        with self._prepare_once:
            if self._prepared is None:
                if platform.system() != "Linux":
                    raise SandboxUnavailable(
                        "namespaces need Linux: run Taskmill in a Linux container, or choose the weaker backend "
                        "explicitly with TASKMILL_SANDBOX_BACKEND=unisolated"
                    )
                _bwrap.binary()
                hierarchy = detect() if self._groups else None
                if hierarchy is not None:
                    hierarchy.sweep()
                self._prepared = stage(), hierarchy
            return self._prepared

    def _housing(self, slot: Slot) -> NamespaceHousing:
        image, hierarchy = self._prepare()
        return NamespaceHousing(image, hierarchy, slot.uid)

    def _image_name(self) -> str:
        return self._prepare()[0].name

    def _details(self) -> dict[str, Any]:
        image, hierarchy = self._prepare()
        group = None if hierarchy is None else {"version": hierarchy.version, "folder": str(hierarchy.memory)}
        return {
            "image": image.name,
            "bubblewrap": _bwrap.version(),
            "bubblewrap_path": str(_bwrap.binary()),
            "cgroup": group,
        }
