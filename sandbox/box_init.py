"""The supervisor inside every box: process 1 of its namespace, standard library only, started with `-I -S`.

It takes commands from the host over one socket (4-byte length, then a marshalled dict), lays files, starts one program
at a time, reaps every process of the box, and answers in JSON: started, ended (with the raw wait status), collected.
The host decides statuses, deadlines and caps; this file only acts and reports.

It makes itself non-dumpable before anything foreign runs, so its memory, environment and descriptors are closed to a
candidate of the same uid; SIGKILL and SIGSTOP from inside the namespace do not reach process 1. The socket is never
inherited. Outside a namespace (the unisolated backend) it is a sub-reaper and kills only its own descendants.

Imports are few because each costs milliseconds per box: json alone would add ten.
"""

import ctypes
import fcntl
import marshal
import os
import resource
import select
import stat
import sys
import time
from collections.abc import Iterator
from typing import Any

import _signal
import _socket

PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_NAME = 4, 36, 15
POLL_S = 0.02
"""How often the box is measured where no control group does it; the reference cost is below 1 % of a core."""
INODES = 65536
"""Most inodes of one writable place; a tmpfs made without privileges bounds only bytes."""
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")

libc = ctypes.CDLL(None, use_errno=True)


class Box:
    """What the host told us about this box, and what has been seen of the program that runs in it."""

    def __init__(self, setup: dict[str, Any]) -> None:
        self.work: str = setup["work"]
        self.places: list[str] = setup["places"]
        self.measured: bool = setup["measured"]
        self.main = 0
        self.status: int | None = None
        self.asked = False
        self.reason = ""
        self.limits: dict[str, float] = {}
        self.peak_memory = 0
        self.peak_processes = 0
        self.peak_inodes = 0
        self.cpu_before = 0.0
        self.next_tick = 0.0


def main(control_fd: int) -> None:
    control = _socket.socket(fileno=control_fd)
    control.settimeout(None)
    os.set_inheritable(control_fd, False)
    _become_init()
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_read, False)
    os.set_blocking(wake_write, False)
    _signal.signal(_signal.SIGCHLD, lambda *_: None)
    _signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    setup, _ = read_frame(control)
    box = Box(setup)
    answer(control, '{"event": "ready"}')
    poller = select.poll()
    poller.register(control_fd, select.POLLIN)
    poller.register(wake_read, select.POLLIN)
    while True:
        ready = {fd for fd, _ in poller.poll(POLL_S * 1000 if box.main else None)}
        if wake_read in ready:
            os.read(wake_read, 4096)
        if box.main:
            _watch(box, control)
        if control_fd in ready:
            _obey(box, control)


def _become_init() -> None:
    """Close ourselves to the candidate, and ignore what it could send."""
    if libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_DUMPABLE)")
    libc.prctl(PR_SET_NAME, b"init", 0, 0, 0)
    if os.getpid() != 1:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGPIPE):
        _signal.signal(number, _signal.SIG_IGN)
    os.umask(0o022)


# ── the wire ──


def read_frame(control: Any) -> tuple[dict[str, Any], list[int]]:
    """One command and the descriptors that came with it. The end of the socket is the end of the box."""
    head, fds = b"", []
    while len(head) < 4:
        data, ancillary, _, _ = control.recvmsg(4 - len(head), _socket.CMSG_SPACE(16))
        if not data:
            _leave()
        head += data
        for level, kind, payload in ancillary:
            if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
                fds += [int.from_bytes(payload[i : i + 4], sys.byteorder) for i in range(0, len(payload) // 4 * 4, 4)]
    length, body = int.from_bytes(head, "big"), bytearray()
    while len(body) < length:
        data = control.recv(min(1 << 20, length - len(body)))
        if not data:
            _leave()
        body += data
    # Both ends are ours and of one interpreter version; nothing a candidate wrote is ever unmarshalled.
    return marshal.loads(body), fds  # noqa: S302


def answer(control: Any, text: str) -> None:
    data = text.encode()
    control.sendall(len(data).to_bytes(4, "big") + data)


def _leave() -> None:
    kill_all()
    os._exit(0)


def _obey(box: Box, control: Any) -> None:
    command, fds = read_frame(control)
    try:
        _COMMANDS[command["do"]](box, control, command, fds)
    except OSError as error:
        answer(control, '{"event": "fault", "errno": %d}' % (error.errno or 0))
    finally:
        for fd in fds:
            os.close(fd)


# ── commands ──


def _lay(box: Box, control: Any, command: dict[str, Any], fds: list[int]) -> None:
    """Empty every writable place, then write the files. No process of an earlier program is alive here."""
    if command["clean"]:
        kill_all()
        _forget_ipc()
        for place in box.places:
            empty_folder(place)
    for path, content, mode in command["files"]:
        folder = os.path.dirname(path)
        if folder not in box.places:
            os.makedirs(folder, 0o755, exist_ok=True)
        fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        with open(fd, "wb") as file:
            file.write(content)
    answer(control, '{"event": "laid"}')


def _exec(box: Box, control: Any, command: dict[str, Any], fds: list[int]) -> None:
    box.status, box.asked, box.reason = None, False, ""
    box.limits = command["limits"]
    box.peak_memory = box.peak_processes = box.peak_inodes = 0
    box.cpu_before = _reaped_cpu()
    gone_read, gone_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become_program(box, command, fds, gone_write)
    os.close(gone_write)
    failure = os.read(gone_read, 64)
    os.close(gone_read)
    if failure:
        os.waitpid(pid, 0)
        answer(control, '{"event": "fault", "errno": %d}' % int(failure))
        return
    box.main = pid
    answer(control, '{"event": "started"}')


def _become_program(box: Box, command: dict[str, Any], fds: list[int], gone: int) -> None:
    """In the forked child: limits, descriptors, signals, exec. A failure is written to `gone` as an errno."""
    code = 0
    try:
        os.setsid()
        libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # else /proc/self/oom_score_adj belongs to root
        _prefer_as_victim()
        gone = _move_up(gone)
        fds = [_move_up(fd) for fd in fds]
        for target, fd in enumerate(fds):
            os.dup2(fd, target, inheritable=True)
        os.closerange(len(fds), gone)
        os.closerange(gone + 1, 1 << 20)
        os.chdir(box.work)
        for name, soft, hard in command["rlimits"]:
            which = getattr(resource, name)
            resource.setrlimit(which, (soft, hard))
            if resource.getrlimit(which) != (soft, hard):
                raise OSError(22, name)
        _signal.set_wakeup_fd(-1)
        for number in _signal.valid_signals():
            if number not in (_signal.SIGKILL, _signal.SIGSTOP):
                _signal.signal(number, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, [])
        os.execve(command["argv"][0], command["argv"], command["env"])
    except OSError as error:
        code = error.errno or 1
    except BaseException:  # noqa: BLE001 — the forked copy of the supervisor must end here, whatever happens
        code = 22
    os.write(gone, b"%d" % code)
    os._exit(127)


def _prefer_as_victim() -> None:
    """Out of memory in the box ends the program, not its supervisor."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        return  # without /proc there is no choice of victim; the host still counts the event


def _move_up(fd: int) -> int:
    """A copy of the descriptor out of the way of 0 to 3."""
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 64)


def _kill(box: Box, control: Any, command: dict[str, Any], fds: list[int]) -> None:
    if box.main:
        box.asked = True
        _end(box, control)


def _collect(box: Box, control: Any, command: dict[str, Any], fds: list[int]) -> None:
    """Read the asked files after everything is dead; each is one JSON answer, the last one says how many."""
    import base64
    import json

    kill_all()
    for item in collect(box.work, command["paths"], command["file_bytes"], command["total_bytes"]):
        path, size, content, refused = item
        encoded = None if content is None else base64.b64encode(content).decode()
        event = {"event": "artefact", "path": path, "size": size, "content": encoded, "refused": refused}
        answer(control, json.dumps(event))
    answer(control, '{"event": "collected"}')


_COMMANDS = {"lay": _lay, "exec": _exec, "kill": _kill, "collect": _collect}


# ── watching one program ──


def _watch(box: Box, control: Any) -> None:
    _reap(box)
    if box.status is not None:
        return _end(box, control)
    now = time.monotonic()
    if now >= box.next_tick:
        box.next_tick = now + POLL_S
        box.reason = _measure(box)
        if box.reason:
            _end(box, control)
    return None


def _reap(box: Box) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid == box.main:
            box.status = status


def _end(box: Box, control: Any) -> None:
    """The main process has ended or must: nothing else of the program lives on."""
    if box.status is None and box.measured:
        _measure(box)
    ended = box.status
    kill_all(box)
    free = [os.statvfs(place) for place in box.places]
    full = any(item.f_blocks and item.f_bavail * item.f_frsize < 65536 for item in free)
    full = full or any(item.f_files and item.f_favail == 0 for item in free)
    status = -1 if ended is None else ended
    box.main = 0
    answer(
        control,
        '{"event": "ended", "status": %d, "reason": "%s", "cpu_s": %.6f, "memory": %d, "processes": %d, "inodes": %d, '
        '"full": %s}'
        % (
            status,
            box.reason,
            _reaped_cpu() - box.cpu_before,
            box.peak_memory,
            box.peak_processes,
            box.peak_inodes,
            "true" if full or box.reason == "inodes" else "false",
        ),
    )


def _reaped_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _measure(box: Box) -> str:
    """Measure the box; the name of the limit that is exceeded, else an empty text."""
    limits = box.limits
    for place in box.places:
        found = os.statvfs(place)
        box.peak_inodes = max(box.peak_inodes, found.f_files - found.f_ffree)
    if box.peak_inodes > INODES and os.getpid() == 1:
        return "inodes"
    if not box.measured:
        return ""
    tasks, memory, cpu = _census()
    box.peak_processes = max(box.peak_processes, tasks)
    files = _files_in_memory(box)
    if memory + files > limits["memory"]:
        memory = _proportional(memory)
    box.peak_memory = max(box.peak_memory, memory + files)
    if memory + files > limits["memory"]:
        return "memory"
    if tasks > limits["processes"]:
        return "processes"
    if _reaped_cpu() - box.cpu_before + cpu > limits["cpu"]:
        return "cpu"
    return ""


def _census() -> tuple[int, int, float]:
    """Tasks, resident bytes and CPU seconds of every process of the box but ourselves."""
    tasks = memory = ticks = 0
    for pid in _others():
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        ticks += sum(int(field) for field in fields[11:15])
        tasks += int(fields[17])
        memory += int(fields[21]) * PAGE
    return tasks, memory, ticks / TICKS


def _proportional(resident: int) -> int:
    """Pages shared after a fork count once; resident sums count them once per process."""
    total = 0
    for pid in _others():
        try:
            with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
                for line in file:
                    if line.startswith(b"Pss:"):
                        total += int(line.split()[1]) * 1024
        except (OSError, ProcessLookupError):
            continue
    return min(total, resident) if total else resident


def _files_in_memory(box: Box) -> int:
    if os.getpid() != 1:
        return 0
    found = [os.statvfs(place) for place in box.places]
    return sum((item.f_blocks - item.f_bfree) * item.f_frsize for item in found)


# ── ending processes ──


def _others() -> list[int]:
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
    found, level = [], {me}
    while level:
        level = {pid for pid, parent in parents.items() if parent in level}
        found += level
    return found


def kill_all(box: Box | None = None) -> None:
    """SIGKILL to everything until nothing is left to reap."""
    while True:
        try:
            if os.getpid() == 1:
                os.kill(-1, _signal.SIGKILL)
            else:
                for pid in _others():
                    _shoot(pid)
        except ProcessLookupError:
            pass
        try:
            pid, status = os.waitpid(-1, 0 if os.getpid() == 1 else os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            time.sleep(0.001)


def _shoot(pid: int) -> None:
    try:
        os.kill(pid, _signal.SIGKILL)
    except ProcessLookupError:
        return


# ── files ──


def empty_folder(path: str) -> None:
    """Remove everything below a folder on directory descriptors, without recursion: depth has no bound."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    top = os.open(path, flags)
    try:
        while True:
            with os.scandir(top) as entries:
                names = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
            if not names:
                return
            for name, is_folder in names:
                if not is_folder:
                    os.unlink(name, dir_fd=top)
                else:
                    _hoist(top, name, flags)
    finally:
        os.close(top)


def _hoist(top: int, name: str, flags: int) -> None:
    """Move the children of a folder up beside it and remove it: a tree of any depth becomes flat."""
    os.chmod(name, 0o700, dir_fd=top)
    folder = os.open(name, flags, dir_fd=top)
    try:
        with os.scandir(folder) as entries:
            children = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        for number, (child, is_folder) in enumerate(children):
            if is_folder:
                os.chmod(child, 0o700, dir_fd=folder)  # a folder without write permission cannot be moved
                os.rename(child, f".{time.monotonic_ns()}.{number}", src_dir_fd=folder, dst_dir_fd=top)
            else:
                os.unlink(child, dir_fd=folder)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)


def _forget_ipc() -> None:
    """System V segments outlive their processes; remove those of this namespace."""
    if os.getpid() != 1:
        return
    for kind, remove in (
        ("shm", lambda key: libc.shmctl(key, 0, None)),
        ("sem", lambda key: libc.semctl(key, 0, 0)),
        ("msg", lambda key: libc.msgctl(key, 0, None)),
    ):
        try:
            with open(f"/proc/sysvipc/{kind}", "rb") as file:
                rows = file.read().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            remove(int(row.split()[1]))


Found = tuple[str, int, bytes | None, str | None]


def collect(work: str, paths: list[str], file_bytes: int, total_bytes: int) -> Iterator[Found]:
    """Read regular files below the work directory; no link is followed and nothing blocks."""
    left, entries = total_bytes, 0
    for path in paths:
        queue = [path]
        while queue:
            item = queue.pop()
            entries += 1
            if entries > 1000:
                yield item, 0, None, "too many entries: 1000 are collected"
                return
            size, content, refused, children = _read_one(work, item, min(file_bytes, left))
            if children is not None and not refused:
                queue += [f"{item}/{name}" for name in sorted(children, reverse=True)]
                continue
            left -= len(content or b"")
            yield item, size, content, refused


def _read_one(work: str, path: str, cap: int) -> tuple[int, bytes | None, str | None, list[str] | None]:
    parts = path.split("/")
    if any(ord(letter) < 32 or 0xD800 <= ord(letter) < 0xE000 for letter in path):
        return 0, None, "odd name", None
    if len(parts) > 32:
        return 0, None, "deeper than 32 folders", None
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    folder = os.open(work, flags | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            below = os.open(part, flags | os.O_DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = below
        found = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            fd = os.open(parts[-1], flags | os.O_DIRECTORY, dir_fd=folder)
            try:
                return 0, None, None, os.listdir(fd)
            finally:
                os.close(fd)
        return _read_regular(folder, parts[-1], found, flags, cap)
    except FileNotFoundError:
        return 0, None, "not found", None
    except OSError as error:
        return 0, None, "a link or no folder in the path" if error.errno in (20, 40) else "not readable", None
    finally:
        os.close(folder)


def _read_regular(
    folder: int, name: str, found: os.stat_result, flags: int, cap: int
) -> tuple[int, bytes | None, str | None, None]:
    if stat.S_ISLNK(found.st_mode):
        return 0, None, "a link", None
    if not stat.S_ISREG(found.st_mode):
        return 0, None, "not a regular file", None
    if found.st_nlink > 1 and os.getpid() != 1:
        return found.st_size, None, "a hard link", None
    if found.st_size > cap:
        return found.st_size, None, f"larger than {cap} bytes", None
    fd = os.open(name, flags, dir_fd=folder)
    with open(fd, "rb") as file:
        return found.st_size, file.read(cap), None, None


if __name__ == "__main__":
    main(int(sys.argv[1]))
