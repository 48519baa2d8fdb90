"""The supervisor inside every box: process 1 of its namespace, standard library only, started with `-I -S`.
`box_files` and `box_processes` are its other two parts.

It takes commands from the host over one socket (4-byte length, then a marshalled dict), lays files, starts one program
at a time, reaps every process of the box, and answers in JSON: started, ended (with the raw wait status), collected.
The host decides statuses, deadlines and caps; this file only acts and reports.

It makes itself non-dumpable before anything foreign runs, so its memory, environment and descriptors are closed to a
candidate of the same uid; SIGKILL and SIGSTOP from inside the namespace do not reach process 1. The socket is never
inherited. Outside a namespace (the unisolated backend) it is a sub-reaper and kills only its own descendants.

Imports are few because each costs milliseconds per box: json alone would add ten.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` would add its enums to every start
import _socket
import fcntl
import marshal
import os
import resource
import select
import sys
import time

if __package__:
    from sandbox.box_files import collect, empty_folder
    from sandbox.box_processes import census, detached, forget_ipc, kill_all, libc, proportional
else:  # in a box: this folder is not on the path of an isolated start
    sys.path.insert(0, os.path.dirname(sys.argv[0]))
    from box_files import collect, empty_folder  # type: ignore[import-not-found, no-redef]
    from box_processes import (  # type: ignore[import-not-found, no-redef]
        census,
        detached,
        forget_ipc,
        kill_all,
        libc,
        proportional,
    )

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` costs more than everything else here
    from typing import Any

PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_NAME = 4, 36, 15
POLL_S = 0.02
"""How often the box is measured where no control group does it; the reference cost is below 1 % of a core."""
INODES = 65536
"""Most inodes of one writable place; a tmpfs made without privileges bounds only bytes."""


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


root: str | None = None
"""The folder to remove at the end, where the box is not a namespace that vanishes by itself."""


def main(control_fd: int) -> None:
    global root
    control = _socket.socket(fileno=control_fd)
    control.settimeout(None)
    os.set_inheritable(control_fd, False)
    _become_init()
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_read, False)
    os.set_blocking(wake_write, False)
    _signal.signal(_signal.SIGCHLD, lambda *_: None)
    _signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    setup = read_frame(control).command
    box, root = Box(setup), setup["root"]
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
        raise OSError(1, "prctl(PR_SET_DUMPABLE)")
    libc.prctl(PR_SET_NAME, b"init", 0, 0, 0)
    if os.getpid() != 1:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGPIPE):
        _signal.signal(number, _signal.SIG_IGN)
    os.umask(0o022)


# ── the wire ──


class Frame:
    """One command, and the descriptors that came with it."""

    def __init__(self, command: dict[str, Any], fds: list[int]) -> None:
        self.command = command
        self.fds = fds


def read_frame(control: Any) -> Frame:
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
    return Frame(marshal.loads(body), fds)  # noqa: S302


def answer(control: Any, text: str) -> None:
    data = text.encode()
    control.sendall(len(data).to_bytes(4, "big") + data)


def _leave() -> None:
    kill_all()
    if root is not None:
        try:
            empty_folder(root)
            os.rmdir(root)
        except OSError:
            pass  # the host removes it as well, and may have been first
    os._exit(0)


def _obey(box: Box, control: Any) -> None:
    frame = read_frame(control)
    command, fds = frame.command, frame.fds
    try:
        _COMMANDS[command["do"]](box, control, command, fds)
    except OSError as error:
        answer(control, f'{{"event": "fault", "errno": {error.errno or 0}}}')
    finally:
        for fd in fds:
            os.close(fd)


# ── commands ──


def _lay(box: Box, control: Any, command: dict[str, Any], fds: list[int]) -> None:
    """Empty every writable place, then write the files. No process of an earlier program is alive here."""
    if command["clean"]:
        kill_all()
        forget_ipc()
        for place in box.places:
            _open_again(box, place)
            empty_folder(place)
    for path, content, mode in command["files"]:
        folder = os.path.dirname(path)
        if folder not in box.places:
            os.makedirs(folder, 0o755, exist_ok=True)
        fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        with open(fd, "wb") as file:
            file.write(content)
    answer(control, '{"event": "laid"}')


def _open_again(box: Box, place: str) -> None:
    """A program owns its folders and may have closed them to us."""
    os.chmod(place, 0o755 if place == box.work else 0o1777)


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
        answer(control, f'{{"event": "fault", "errno": {int(failure)}}}')
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
        os.execve(command["argv"][0], command["argv"], command["env"])  # noqa: S606 — a shell is what must not be here
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
    _open_again(box, box.work)
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
    if box.measured:
        _measure(box)  # a last look: a program may end faster than it is measured
        box.peak_processes = max(box.peak_processes, census().tasks + (box.status is not None))
    ended = box.status
    kill_all()
    free = [os.statvfs(place) for place in box.places]
    full = any(item.f_blocks and item.f_bavail * item.f_frsize < 65536 for item in free)
    full = full or any(item.f_files and item.f_favail == 0 for item in free)
    full = full or box.reason == "inodes"
    box.main = 0
    answer(
        control,
        f'{{"event": "ended", "status": {-1 if ended is None else ended}, "reason": "{box.reason}", '
        f'"cpu_s": {_reaped_cpu() - box.cpu_before:.6f}, "memory": {box.peak_memory}, '
        f'"processes": {box.peak_processes}, "inodes": {box.peak_inodes}, "full": {"true" if full else "false"}}}',
    )


def _reaped_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _measure(box: Box) -> str:
    """Measure the box; the name of the limit that is exceeded, else an empty text."""
    limits = box.limits
    for place in box.places:
        space = os.statvfs(place)
        box.peak_inodes = max(box.peak_inodes, space.f_files - space.f_ffree)
    if box.peak_inodes > INODES and os.getpid() == 1:
        return "inodes"
    if not box.measured:
        return ""
    found = census()
    tasks, memory, cpu = found.tasks, found.memory, found.cpu_s
    box.peak_processes = max(box.peak_processes, tasks)
    files = _files_in_memory(box)
    if memory + files > limits["memory"]:
        memory = proportional(memory)
    box.peak_memory = max(box.peak_memory, memory + files)
    if memory + files > limits["memory"]:
        return "memory"
    if tasks > limits["processes"]:
        return "processes"
    if _reaped_cpu() - box.cpu_before + cpu > limits["cpu"]:
        return "cpu"
    return ""


def _files_in_memory(box: Box) -> int:
    """Pages of files that are in no process's resident size."""
    if os.getpid() != 1:
        return 0
    found = [os.statvfs(place) for place in box.places]
    return sum((item.f_blocks - item.f_bfree) * item.f_frsize for item in found) + detached()


if __name__ == "__main__":
    main(int(sys.argv[1]))
