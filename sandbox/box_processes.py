"""The processes of a box: counting, measuring and ending them. Part of the supervisor: standard library only.

Process 1 of a namespace sees and ends everything in it; elsewhere only our own descendants count.
"""

import _signal  # type: ignore[import-not-found]  # `signal` would add its enums to every start
import ctypes
import os
import time

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")

libc = ctypes.CDLL(None, use_errno=True)


class Census:
    """Tasks (threads too), resident bytes and CPU seconds of living processes."""

    def __init__(self, tasks: int, memory: int, cpu_s: float) -> None:
        self.tasks = tasks
        self.memory = memory
        self.cpu_s = cpu_s


def census() -> Census:
    """Tasks, resident bytes and CPU seconds of every process of the box but ourselves."""
    tasks = memory = ticks = 0
    for pid in others():
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        ticks += sum(int(field) for field in fields[11:15])
        tasks += int(fields[17])
        memory += int(fields[21]) * PAGE
    return Census(tasks, memory, ticks / TICKS)


def proportional(resident: int) -> int:
    """Pages shared after a fork count once; resident sums count them once per process."""
    total = 0
    for pid in others():
        try:
            with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
                for line in file:
                    if line.startswith(b"Pss:"):
                        total += int(line.split()[1]) * 1024
        except (OSError, ProcessLookupError):
            continue
    return min(total, resident) if total else resident


def detached() -> int:
    """Bytes of memory files and of System V segments that nobody has attached."""
    files: dict[int, int] = {}
    for pid in others():
        try:
            names = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            continue
        for name in names:
            path = f"/proc/{pid}/fd/{name}"
            try:
                if os.readlink(path).startswith("/memfd:"):
                    found = os.stat(path)
                    files[found.st_ino] = found.st_blocks * 512
            except OSError:
                continue
    return sum(files.values()) + _unattached()


def _unattached() -> int:
    try:
        with open("/proc/sysvipc/shm", "rb") as file:
            rows = [row.split() for row in file.read().splitlines()[1:]]
    except OSError:
        return 0
    return sum(int(row[14]) for row in rows if row[6] == b"0")


def others() -> list[int]:
    """Every process of the namespace but us, or every descendant where we have no namespace."""
    me = os.getpid()
    if me == 1:
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"]
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue
    found: list[int] = []
    level = {me}
    while level:
        level = {pid for pid, parent in parents.items() if parent in level}
        found += level
    return found


def kill_all() -> None:
    """SIGKILL to everything until nothing is left to reap."""
    while True:
        try:
            if os.getpid() == 1:
                os.kill(-1, _signal.SIGKILL)
            else:
                for number in (_signal.SIGSTOP, _signal.SIGKILL):  # stopped first: they fork while we count them
                    for pid in others():
                        _shoot(pid, number)
        except ProcessLookupError:
            pass
        try:
            pid, _ = os.waitpid(-1, 0 if os.getpid() == 1 else os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            time.sleep(0.001)


def _shoot(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def forget_ipc() -> None:
    """System V segments outlive their processes; remove those of this namespace."""
    if os.getpid() != 1:
        return
    for kind in ("shm", "sem", "msg"):
        try:
            with open(f"/proc/sysvipc/{kind}", "rb") as file:
                rows = file.read().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            _remove_ipc(kind, int(row.split()[1]))


def _remove_ipc(kind: str, key: int) -> None:
    """IPC_RMID is 0. One that is gone already is no fault."""
    if kind == "shm":
        libc.shmctl(key, 0, None)
    elif kind == "sem":
        libc.semctl(key, 0, 0)
    else:
        libc.msgctl(key, 0, None)
