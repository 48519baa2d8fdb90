"""What a sandbox on this machine can hold, for `taskmill sandbox doctor` and the service's health page."""

import ctypes
import os
import platform
import shutil
from pathlib import Path
from typing import Any

from sandbox.backends import make_backend
from sandbox.contract import Capabilities


def examine(kind: str) -> dict[str, Any]:
    """Start a real box of that backend, try every language in it, and say how each limit is held."""
    backend = make_backend(kind, 1)
    try:
        found = backend.capabilities()
    finally:
        backend.close()
    return {**_plain(found), "machine": machine()}


def _plain(found: Capabilities) -> dict[str, Any]:
    return {
        "backend": found.backend,
        "isolated": found.isolated,
        "languages": list(found.languages),
        "limits_enforced": dict(found.limits_enforced),
        "details": dict(found.details),
        "missing": dict(found.missing),
    }


def machine() -> dict[str, Any]:
    """Facts about the kernel that decide what can be held."""
    return {
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "root": os.getuid() == 0,
        "user_namespaces": _number("/proc/sys/user/max_user_namespaces"),
        "apparmor_restricts_user_namespaces": _number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
        "cgroup": _groups(),
        "landlock_abi": _landlock(),
        "docker": shutil.which("docker"),
    }


def _number(path: str) -> int | None:
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):
        return None


def _groups() -> list[str]:
    kinds = {line.split()[2] for line in Path("/proc/self/mounts").read_text().splitlines()}
    return sorted(kinds & {"cgroup", "cgroup2"})


def _landlock() -> int | None:
    """The version that `landlock_create_ruleset(NULL, 0, VERSION)` answers; None without Landlock."""
    if platform.machine() not in ("x86_64", "aarch64"):
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    answer = int(libc.syscall(444, None, 0, 1))
    return answer if answer > 0 else None
