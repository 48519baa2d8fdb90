"""The read-only tree that every box of this machine sees as `/usr/local` and `/etc`: an interpreter and its library.

It is a copy, because the interpreter may live below a closed folder (a home of mode 0700) that a slot's uid cannot
enter, and because the service's own packages must not be importable by candidates. It holds no `site-packages`, no
`.pth` file, no tests. The copy is made once, in a world-reachable cache folder, under a name that is the digest of its
content; a lock lets one process stage while others wait, and a rename shows the finished tree or none.

Not covered: what lies below the host's `/usr` is bound as it is, but for `/usr/local`, `/usr/src` and `dist-packages`.
"""

import fcntl
import functools
import hashlib
import os
import py_compile
import shutil
import stat
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sandbox.contract import SandboxUnavailable

LAYOUT = "1"
"""Bump when the staged tree changes shape."""
SUPERVISOR = [Path(__file__).parent / f"{name}.py" for name in ("box_init", "box_files", "box_processes")]
UNUSED_S = 30 * 86400
LEFT_OUT = {
    "site-packages",
    "dist-packages",
    "test",
    "tests",
    "idlelib",
    "tkinter",
    "turtledemo",
    "ensurepip",
    "lib2to3",
    "pydoc_data",
    "config",
}
BOX_UID = 1000
BOX_USER = "user"
ETC = {
    "passwd": (
        "root:x:0:0:root:/root:/bin/sh\n"
        f"{BOX_USER}:x:{BOX_UID}:{BOX_UID}::/box:/bin/sh\n"
        "nobody:x:65534:65534::/:/bin/false\n"
    ),
    "group": f"root:x:0:\n{BOX_USER}:x:{BOX_UID}:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost box\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "hostname": "box\n",
    "ld.so.cache": "",
}


@dataclass(frozen=True)
class Image:
    """A staged tree: `local` becomes /usr/local and `etc` becomes /etc."""

    digest: str
    local: Path
    etc: Path
    supervisor: str
    """Path of the supervisor inside the box."""
    python: str
    """Path of the interpreter inside the box."""
    own_libraries: bool
    """Whether the interpreter needs the shared libraries beside it."""

    @property
    def name(self) -> str:
        return f"python@{self.digest[:16]}"


def cache_folder() -> Path:
    """A folder of ours that every uid can reach, made when it is not there.

    Raises:
        SandboxUnavailable: no such folder can be had.
    """
    given = os.environ.get("TASKMILL_SANDBOX_CACHE")
    options = [Path(given)] if given else _usual_folders()
    for folder in options:
        try:
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        except OSError:
            continue
        if _safe(folder):
            return folder
    raise SandboxUnavailable(
        f"no folder for the sandbox's image: tried {', '.join(map(str, options))}. It must be owned by this user, not "
        "writable by others and, for root, reachable by every user; set TASKMILL_SANDBOX_CACHE to one"
    )


def _usual_folders() -> list[Path]:
    fallback = Path(tempfile.gettempdir()) / f"taskmill-sandbox-{os.getuid()}"
    if os.getuid() == 0:
        return [Path("/var/cache/taskmill-sandbox"), fallback]
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return [Path(home) / "taskmill-sandbox", fallback]


def _safe(folder: Path) -> bool:
    """Ours, closed to writers, and for root open to the slots' uids on the whole way down."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        return False
    if not os.access(folder, os.W_OK):
        return False
    if os.getuid() != 0:
        return True
    return all(path.stat().st_mode & 0o001 for path in (folder, *folder.resolve().parents))


@contextmanager
def locked(folder: Path, name: str) -> Iterator[None]:
    """One process at a time; a killed holder frees the lock."""
    fd = os.open(folder / f"{name}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


@functools.cache
def stage() -> Image:
    """The image of this interpreter, staged when it is not there yet (about a second, once)."""
    cache = cache_folder()
    key = _source_key()
    pointer = cache / f"{key}.digest"
    with locked(cache, "stage"):
        if pointer.exists() and (cache / pointer.read_text()).is_dir():
            os.utime(pointer)
            return _image(cache / pointer.read_text())
        for leftover in cache.glob("stage-*"):  # of a process that was killed while it staged
            shutil.rmtree(leftover, ignore_errors=True)
        _forget_unused(cache)
        work = Path(tempfile.mkdtemp(prefix="stage-", dir=cache))
        try:
            digest = _fill(work)
            _publish(work, cache / digest)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        fresh = pointer.with_suffix(".new")
        fresh.write_text(digest)
        fresh.replace(pointer)
        return _image(cache / digest)


def _forget_unused(cache: Path) -> None:
    """Remove trees that no process has asked for in a long time: a box may still be bound to a younger one."""
    for pointer in cache.glob("*.digest"):
        if time.time() - pointer.stat().st_mtime > UNUSED_S:
            shutil.rmtree(cache / pointer.read_text(), ignore_errors=True)
            pointer.unlink()


def _image(tree: Path) -> Image:
    return Image(
        digest=tree.name,
        local=tree / "local",
        etc=tree / "etc",
        supervisor="/usr/local/libexec/box_init.pyc",
        python=f"/usr/local/bin/{_python_name()}",
        own_libraries=any((tree / "local" / "lib").glob("*.so*")),
    )


def _python_name() -> str:
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def base_interpreter() -> Path:
    """The interpreter below any virtual environment."""
    return Path(getattr(sys, "_base_executable", sys.executable)).resolve()


def _library() -> Path:
    return Path(sysconfig.get_path("stdlib", vars={"base": sys.base_prefix, "installed_base": sys.base_prefix}))


def _source_key() -> str:
    """Cheap to compute and changes with the interpreter, the supervisor and the layout."""
    text = [source.read_bytes() for source in SUPERVISOR]
    found = base_interpreter().stat()
    library = (_library() / "os.py").stat()
    parts = [LAYOUT, sys.version, sys.base_prefix, str(base_interpreter()), found.st_size, found.st_mtime_ns]
    parts += [library.st_mtime_ns, sorted(ETC.items()), sorted(LEFT_OUT), text]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def _fill(work: Path) -> str:
    """Copy everything into the work folder; the digest of what is there."""
    name = _python_name()
    local, etc = work / "local", work / "etc"
    (local / "bin").mkdir(parents=True)
    (local / "libexec").mkdir()
    (etc / "alternatives").mkdir(parents=True)
    shutil.copy2(base_interpreter(), local / "bin" / name)
    for alias in ("python3", "python"):
        (local / "bin" / alias).symlink_to(name)
    library = local / "lib" / name
    shutil.copytree(_library(), library, ignore=_ignored, symlinks=False, ignore_dangling_symlinks=True)
    (library / "site-packages").mkdir()
    _copy_shared_libraries(local / "lib")
    for file, text in ETC.items():
        (etc / file).write_text(text)
    (etc / "localtime").symlink_to("/usr/share/zoneinfo/UTC")
    _compile_missing(library)
    for source in SUPERVISOR:
        py_compile.compile(
            str(source),
            cfile=str(local / "libexec" / f"{source.stem}.pyc"),
            dfile=source.name,
            doraise=True,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
    return _open_and_digest(work)


def _ignored(folder: str, names: list[str]) -> set[str]:
    return {
        name
        for name in names
        if name in LEFT_OUT or name.startswith("config-") or name.endswith((".a", ".pth", ".opt-1.pyc", ".opt-2.pyc"))
    }


def _copy_shared_libraries(target: Path) -> None:
    """libpython, and for an interpreter with libraries of its own (conda) those beside it."""
    source = Path(sys.base_prefix) / "lib"
    system = Path(sys.base_prefix) in (Path("/usr"), Path("/usr/local"))
    for file in source.glob("libpython*.so*" if system else "lib*.so*"):
        if file.is_file():
            shutil.copy2(file, target / file.name, follow_symlinks=True)


def _compile_missing(library: Path) -> None:
    """An interpreter that was installed without byte code would compile its library again in every box."""
    tag = sys.implementation.cache_tag
    for source in library.rglob("*.py"):
        compiled = source.parent / "__pycache__" / f"{source.stem}.{tag}.pyc"
        if compiled.exists() or "lib-dynload" in source.parts:
            continue
        try:
            py_compile.compile(str(source), cfile=str(compiled), doraise=True)
        except py_compile.PyCompileError:
            continue  # a template with a .py name is no module


def _open_and_digest(work: Path) -> str:
    """Make the tree readable by every uid and writable by none; the digest of names, modes and contents.

    Byte code is left out of the digest: it holds times of the machine that compiled it.
    """
    total = hashlib.sha256()
    for folder, folders, files in os.walk(work):
        folders.sort()
        if folder != str(work):  # a folder without write permission could not be renamed by its owner
            os.chmod(folder, 0o755)  # noqa: S103 — every slot's uid reads it
        for name in sorted(files):
            path = Path(folder) / name
            relative = str(path.relative_to(work))
            if path.is_symlink():
                total.update(f"{relative} -> {os.readlink(path)}\n".encode())
                continue
            executable = bool(path.stat().st_mode & 0o100)
            path.chmod(0o555 if executable else 0o444)
            if "__pycache__" not in relative:
                with path.open("rb") as file:
                    total.update(
                        f"{relative} {executable} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode()
                    )
    work.chmod(0o755)
    return total.hexdigest()


def _publish(work: Path, target: Path) -> None:
    try:
        work.rename(target)
    except OSError:
        if not target.is_dir():
            raise
