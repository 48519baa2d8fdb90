"""Control groups, version 1 or 2 or none: one leaf per box, with limits that are read back from the kernel.

A leaf's name holds the process that owns it (`taskmill.<pid namespace>.<pid>.<start time>.<serial>`), so leaves whose
owner is dead are swept at the next start and nobody else's are touched.

Not covered: delegation by moving ourselves out of the own group (version 2 forbids children beside processes). Where
neither the own group nor its parent hands memory and pids down, there is no group and the box is measured instead.
"""

import itertools
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

OVERHEAD_BYTES = 24 << 20
"""Room for the supervisor and the files it lays, on top of the program's limit."""
REMOVE_WITHIN_S = 1.0
"""A group stays busy for some milliseconds after its last process has died."""
PREFIX = "taskmill"
_serial = itertools.count(1)


class LimitNotHeld(OSError):
    """The kernel took a limit and reads back another."""


class Usage(NamedTuple):
    """Totals since the leaf was made, but for the peaks, which are since `reset_peak`."""

    cpu_s: float
    memory_peak: int
    processes_now: int
    out_of_memory: int
    forks_refused: int


def _read(path: Path) -> str:
    return path.read_text().strip()


def _keyed(path: Path, key: str) -> int:
    """One value of a `key value` file; 0 where the file or the key is absent."""
    try:
        rows = dict(line.split(maxsplit=1) for line in path.read_text().splitlines() if " " in line)
    except OSError:
        return 0
    value = rows.get(key, "0")
    return int(value) if value.isdigit() else 0


def _number(path: Path) -> int:
    try:
        text = _read(path)
    except OSError:
        return 0
    return int(text) if text.isdigit() else 0


def start_time(pid: int) -> str | None:
    """When a process started, in clock ticks after boot; None when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19].decode()
    except OSError:
        return None


def _owner() -> str:
    return f"{os.stat('/proc/self/ns/pid').st_ino}.{os.getpid()}.{start_time(os.getpid())}"


@dataclass(frozen=True)
class Hierarchy:
    """Where leaves are made: one folder for version 2, one for each controller for version 1."""

    version: int
    memory: Path
    pids: Path
    cpu: Path

    @property
    def name(self) -> str:
        return f"cgroup{self.version}"

    def folders(self) -> list[Path]:
        return list(dict.fromkeys((self.memory, self.pids, self.cpu)))

    def leaf(self) -> "Leaf":
        """Make one; OSError when the folders are not ours to write."""
        name = f"{PREFIX}.{_owner()}.{next(_serial)}"
        leaf = Leaf(Hierarchy(self.version, self.memory / name, self.pids / name, self.cpu / name))
        made: list[Path] = []
        try:
            for folder in leaf.at.folders():
                folder.mkdir()
                made.append(folder)
        except OSError:
            for folder in made:
                folder.rmdir()
            raise
        return leaf

    def sweep(self) -> int:
        """Remove the leaves of dead owners; their number."""
        namespace, swept = str(os.stat("/proc/self/ns/pid").st_ino), 0
        for base in self.folders():
            for folder in base.glob(f"{PREFIX}.*"):
                parts = folder.name.split(".")
                if len(parts) != 5 or parts[1] != namespace or start_time(int(parts[2])) == parts[3]:
                    continue
                swept += _remove(folder)
        return swept


@dataclass(frozen=True)
class Leaf:
    """The group of one box."""

    at: Hierarchy

    def limit(self, memory_bytes: int, processes: int) -> None:
        """Bound the box and read the bounds back.

        Raises:
            LimitNotHeld: the kernel reads back something else.
        """
        memory, tasks = memory_bytes + OVERHEAD_BYTES, processes + 1
        if self.at.version == 2:
            _write_back(self.at.memory / "memory.max", memory)
            _write_if_there(self.at.memory / "memory.swap.max", 0)
        else:
            bound, with_swap = self.at.memory / "memory.limit_in_bytes", self.at.memory / "memory.memsw.limit_in_bytes"
            # Memory may not exceed memory + swap at any moment, so the order depends on the direction of the change.
            swap_first = with_swap.exists() and _number(with_swap) < memory
            for path in (with_swap, bound) if swap_first else (bound, with_swap):
                if path.exists():
                    _write_back(path, memory)
        _write_back(self.at.pids / "pids.max", tasks)

    def add(self, pid: int) -> None:
        for folder in self.at.folders():
            (folder / "cgroup.procs").write_text(str(pid))

    def usage(self) -> Usage:
        at = self.at
        if at.version == 2:
            cpu = _keyed(at.cpu / "cpu.stat", "usage_usec") / 1e6
            peak = _number(at.memory / "memory.peak")
            oom = _keyed(at.memory / "memory.events", "oom_kill")
        else:
            cpu = _number(at.cpu / "cpuacct.usage") / 1e9
            peak = _number(at.memory / "memory.max_usage_in_bytes")
            oom = _keyed(at.memory / "memory.oom_control", "oom_kill")
        refused = _keyed(at.pids / "pids.events", "max")
        return Usage(cpu, peak, _number(at.pids / "pids.current"), oom, refused)

    def cpu_s(self) -> float:
        if self.at.version == 2:
            return _keyed(self.at.cpu / "cpu.stat", "usage_usec") / 1e6
        return _number(self.at.cpu / "cpuacct.usage") / 1e9

    def processes_now(self) -> int:
        return _number(self.at.pids / "pids.current")

    def reset_peak(self) -> None:
        """Version 1 can forget its peak; version 2 keeps it for the life of the leaf."""
        if self.at.version == 1:
            (self.at.memory / "memory.max_usage_in_bytes").write_text("0")

    def remove(self) -> bool:
        """Kill what is left in it and remove it; whether it is gone."""
        return all([_remove(folder) for folder in self.at.folders()])


def _write_back(path: Path, value: int) -> None:
    path.write_text(str(value))
    page = os.sysconf("SC_PAGE_SIZE")
    found = _number(path)
    if found not in (value, value // page * page):
        raise LimitNotHeld(f"{path.name} was set to {value} and reads {found}")


def _write_if_there(path: Path, value: int) -> None:
    if path.exists():
        _write_back(path, value)


def _remove(folder: Path) -> bool:
    deadline = time.monotonic() + REMOVE_WITHIN_S
    while True:
        try:
            folder.rmdir()
            return True
        except FileNotFoundError:
            return True
        except OSError:
            if time.monotonic() > deadline:
                return False
        _kill_members(folder)
        time.sleep(0.002)


def _kill_members(folder: Path) -> None:
    try:
        members = (folder / "cgroup.procs").read_text().split()
    except OSError:
        return
    for pid in members:
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            continue


def _mounts() -> tuple[dict[str, Path], Path | None]:
    """Mount points of version 1 by controller, and of version 2."""
    first: dict[str, Path] = {}
    second: Path | None = None
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind, options, *_ = line.split()
        if kind == "cgroup":
            first.update({option: Path(where) for option in options.split(",")})
        elif kind == "cgroup2":
            second = Path(where)
    return first, second


def _own() -> dict[str, str]:
    """Our own group by controller; the empty name is version 2."""
    found: dict[str, str] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            found[controller] = path.lstrip("/")
    return found


def _usable(folder: Path, hands_down: Callable[[Path], bool]) -> bool:
    return folder.is_dir() and os.access(folder, os.W_OK) and hands_down(folder)


def _version_2(mount: Path, own: str) -> Hierarchy | None:
    def hands_down(folder: Path) -> bool:
        try:
            return {"memory", "pids"} <= set(_read(folder / "cgroup.subtree_control").split())
        except OSError:
            return False

    here = mount / own
    for folder in (here, here.parent if own else here):
        if _usable(folder, hands_down):
            return Hierarchy(2, folder, folder, folder)
    return None


def _version_1(mounts: dict[str, Path], own: dict[str, str]) -> Hierarchy | None:
    chosen: list[Path] = []
    for controller in ("memory", "pids", "cpuacct"):
        if controller not in mounts:
            return None
        mount = mounts[controller]
        here = mount / own.get(controller, "")
        # In a container the path may name a folder that is not mounted here; the mount's top is the own group then.
        folder = next((path for path in (here, mount) if _usable(path, lambda _: True)), None)
        if folder is None:
            return None
        chosen.append(folder)
    return Hierarchy(1, *chosen)


def detect() -> Hierarchy | None:
    """Where this process can bound boxes, tried with a real leaf; None where it cannot."""
    try:
        first, second = _mounts()
        own = _own()
    except OSError:
        return None
    options = [_version_2(second, own.get("", "")) if second else None, _version_1(first, own)]
    for hierarchy in options:
        if hierarchy is None:
            continue
        try:
            leaf = hierarchy.leaf()
        except OSError:
            continue
        try:
            leaf.limit(64 << 20, 8)
            return hierarchy
        except OSError:
            continue
        finally:
            leaf.remove()
    return None
