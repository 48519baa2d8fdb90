"""What a sandbox promises: limits, requests, results, boxes and backends.

A program's status says what happened, never what its text says. Our own failure is `sandbox_error` or one of the
exceptions below, is tried again, and is never a reward. A result comes within the wall limit + 1 s whatever the
program does, and then nothing of the program is left.

The contract is synchronous: the thread that starts a program waits for it, so a box never outlives its caller's
thread (`--die-with-parent` watches the spawning thread) and no event loop has to exist in workers, the CLI or tests.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from socket import socket
from typing import Any, Protocol


class SandboxError(Exception):
    """Ours, never the program's: no reward may come of it.

    SandboxError
    ├── SandboxUnavailable   no box could be had; nothing has run; try again later
    ├── BoxLost              the box died under the program; the result is unknown, the box is gone
    └── UnsupportedLanguage  the image lacks it; trying again will not help
    """


class SandboxUnavailable(SandboxError):
    """No box could be had. Nothing has run; the message says why and what would help."""


class BoxLost(SandboxError):
    """The box died under the program. The result is unknown and the box is gone."""


class UnsupportedLanguage(SandboxError):
    """The image has no such language. Trying again will not help."""


class BadRequest(ValueError):
    """A limit, a path or a size is outside its documented range; `field` names it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class ExecStatus(StrEnum):
    OK = "ok"
    NONZERO_EXIT = "nonzero_exit"
    SIGNAL = "signal"
    WALL_LIMIT = "wall_limit"
    CPU_LIMIT = "cpu_limit"
    MEMORY_LIMIT = "memory_limit"
    OUTPUT_LIMIT = "output_limit"
    PROCESS_LIMIT = "process_limit"
    DISK_LIMIT = "disk_limit"
    COMPILE_ERROR = "compile_error"
    SANDBOX_ERROR = "sandbox_error"


RANGES: Mapping[str, tuple[float, float]] = {
    "wall_s": (0.1, 3600),
    "cpu_s": (0.1, 7200),
    "memory_mb": (16, 16384),
    "output_kb": (1, 16384),
    "processes": (1, 512),
    "disk_mb": (1, 4096),
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one program. `cpu_s` defaults to twice `wall_s`; a value outside `RANGES` is refused, never clamped."""

    wall_s: float = 10.0
    cpu_s: float | None = None
    memory_mb: int = 512
    output_kb: int = 1024
    processes: int = 32
    disk_mb: int = 64

    def __post_init__(self) -> None:
        for name, (low, high) in RANGES.items():
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not math.isfinite(value) or not low <= value <= high:
                raise BadRequest(f"limits.{name}", f"must be a number from {low:g} to {high:g}, not {value!r}")

    @property
    def cpu_seconds(self) -> float:
        return self.cpu_s if self.cpu_s is not None else min(2 * self.wall_s, RANGES["cpu_s"][1])


@dataclass(frozen=True, slots=True)
class ExecRequest:
    """One program. `files` and `fetch` are paths relative to the work directory, which is cwd and HOME.

    `driver` is code of ours (text of a standard-library-only Python file) that runs in place of the main file, laid
    outside the work directory, with the main file's path as first argument and a duplex channel on descriptor 3:
    verifiers talk to candidate code through it.
    """

    language: str
    code: str
    files: Mapping[str, str] = field(default_factory=dict)
    stdin: str = ""
    args: Sequence[str] = ()
    limits: Limits = field(default_factory=Limits)
    image: str = "python"
    fetch: Sequence[str] = ()
    driver: str | None = None


@dataclass(frozen=True, slots=True)
class Artefact:
    """A file asked for with `fetch`; `refused` says why there is no content."""

    path: str
    size: int
    content_base64: str | None
    refused: str | None


@dataclass(frozen=True, slots=True)
class ExecResult:
    """How a program ended. Exactly one of `exit_code` and `signal` is set when it ended by itself, none when killed.

    `limits_enforced` maps memory, processes, cpu, disk, syscalls to the method (cgroup2, cgroup1, rlimit, poll, tmpfs,
    seccomp, none). `memory_mb` and `processes` are peaks. `phases` are seconds of queue, start, run, collect, kill.
    """

    status: ExecStatus
    stage: str
    exit_code: int | None
    signal: int | None
    stdout: str
    stderr: str
    stdout_truncated: bool
    stderr_truncated: bool
    wall_s: float
    cpu_s: float
    memory_mb: float
    processes: int
    limits_enforced: Mapping[str, str]
    artefacts: Sequence[Artefact]
    phases: Mapping[str, float]
    evidence: Sequence[str]
    backend: str
    image: str
    retryable: bool


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend can do here and how. `missing` maps what it lacks to the command that would add it."""

    backend: str
    isolated: bool
    languages: Sequence[str]
    limits_enforced: Mapping[str, str]
    details: Mapping[str, Any]
    missing: Mapping[str, str]


class Running(Protocol):
    """A started program. The caller must `wait` or `kill`; both are idempotent."""

    channel: socket | None
    """Our end of descriptor 3 of the box, present when the request had a driver. `wait` and `kill` close it."""

    def wait(self) -> ExecResult:
        """Wait for the end of the program or its limits.

        Raises:
            BoxLost: the box died and it cannot be laid to the program.
        """

    def kill(self) -> None:
        """End the program now; nothing of it is left when this returns."""


class Box(Protocol):
    """One box serves one owner, once: several runs of the same submission, never two submissions."""

    def start(self, request: ExecRequest) -> Running:
        """Start one program; the work directory is as empty as at first, and no process of an earlier run is left.

        Raises:
            BoxLost: the box is gone.
            UnsupportedLanguage: the image lacks the language.
        """

    def run(self, request: ExecRequest) -> ExecResult:
        """`start` and `wait`."""

    def close(self) -> None:
        """Free everything. Idempotent."""


class Backend(Protocol):
    name: str

    def capabilities(self) -> Capabilities: ...

    def create(self, limits: Limits, image: str = "python") -> Box:
        """Have a fresh box whose programs may use up to `limits`.

        Raises:
            SandboxUnavailable: isolation or a slot could not be had.
        """

    def run(self, request: ExecRequest) -> ExecResult:
        """One program in a box of its own. Whatever the program does is a status of the result.

        Raises:
            SandboxUnavailable, BoxLost, UnsupportedLanguage, BadRequest.
        """

    def close(self) -> None:
        """End every box and free every slot. Idempotent."""
