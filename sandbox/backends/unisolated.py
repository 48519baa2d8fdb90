"""The weaker backend, for who names it: the same supervisor without namespaces.

Limits are rlimits and measurements, every process below the supervisor is killed, the work directory is a temporary
folder. **There is no isolation**: a program sees the machine's files, network and processes as the service's own user.
Results carry `backend="unisolated"`.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sandbox.backends._backend import BoxBackend
from sandbox.backends._cell import Process
from sandbox.backends._cgroup import Leaf
from sandbox.backends._slots import Slot
from sandbox.box_files import empty_folder
from sandbox.contract import Limits
from sandbox.image import SUPERVISOR, base_interpreter
from sandbox.languages import environment


class FolderHousing:
    """A temporary folder; the supervisor removes it too when the service is killed."""

    name = "unisolated"
    isolated = False
    syscalls = "none"

    def __init__(self) -> None:
        self.root: str | None = tempfile.mkdtemp(prefix="taskmill-box-")
        self.work, self.run_folder, self._scratch = (f"{self.root}/{name}" for name in ("box", "run", "tmp"))
        self.places = (self.work, self.run_folder, self._scratch)

    def open(self, control_fd: int, limits: Limits) -> Process:
        for place in self.places:
            os.makedirs(place, exist_ok=True)
        errors, theirs = os.pipe()
        try:
            popen = subprocess.Popen(
                [str(base_interpreter()), "-I", "-S", str(SUPERVISOR[0]), str(control_fd)],
                env={},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=theirs,
                pass_fds=[control_fd],
                start_new_session=True,
            )
        except BaseException:
            os.close(errors)
            raise
        finally:
            os.close(theirs)
        return Process(popen, None, errors)

    def leaf(self) -> Leaf | None:
        return None

    def argv(self, words: Sequence[str]) -> list[str]:
        """The same command with this machine's own paths."""
        first, rest = words[0], list(words[1:])
        if first.startswith("/usr/local/bin/python"):
            first = str(base_interpreter())
        elif first.startswith("/box/"):
            first = self.work + first.removeprefix("/box")
        else:
            first = shutil.which(Path(first).name) or first
        return [first, *rest]

    def environment(self) -> dict[str, str]:
        return environment({"HOME": self.work, "TMPDIR": self._scratch})

    def remedy(self, errors: str) -> str:
        return ""

    def clear(self) -> None:
        if self.root is not None and os.path.isdir(self.root):
            empty_folder(self.root)
            os.rmdir(self.root)


class UnisolatedBackend(BoxBackend):
    """Programs as plain child processes."""

    name = "unisolated"

    def __init__(self, boxes: int) -> None:
        super().__init__(boxes, own_uids=False)

    def _housing(self, slot: Slot) -> FolderHousing:
        return FolderHousing()

    def _image_name(self) -> str:
        return "unisolated"

    def _details(self) -> dict[str, Any]:
        return {"python": str(base_interpreter())}
