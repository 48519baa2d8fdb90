"""The writable places of a box: emptying them and collecting files from them. Part of the supervisor: standard library
only, no imports of ours. Everything of the program is dead when these run.
"""

from __future__ import annotations

import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # costs more than everything else here
    from collections.abc import Iterator


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
