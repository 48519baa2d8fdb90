"""From what was observed to one status, in a fixed order; never from what the program printed."""

import os
import signal
from dataclasses import dataclass

from sandbox.contract import ExecStatus


@dataclass(frozen=True)
class Observed:
    """`raw` is the wait status of the main process, None when it did not end by itself; `cause` names what ended it:
    output, wall, cpu, memory, processes, inodes, stopped, or nothing of ours."""

    raw: int | None
    cause: str
    cpu_over: bool
    out_of_memory: bool
    memory_nearly_used: bool
    fork_refused: bool
    place_full: bool
    stage: str

    @property
    def clean(self) -> bool:
        return self.raw == 0 and self.cause == ""

    @property
    def exit_code(self) -> int | None:
        if self.raw is None or self.cause or not os.WIFEXITED(self.raw):
            return None
        return os.WEXITSTATUS(self.raw)

    @property
    def signal(self) -> int | None:
        if self.raw is None or self.cause or not os.WIFSIGNALED(self.raw):
            return None
        return os.WTERMSIG(self.raw)


_OURS = {"output": ExecStatus.OUTPUT_LIMIT, "wall": ExecStatus.WALL_LIMIT, "cpu": ExecStatus.CPU_LIMIT}
_OF_MEMORY = (signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS)


def decide(seen: Observed) -> ExecStatus:
    if seen.cause in _OURS:
        return _OURS[seen.cause]
    if seen.cpu_over:
        return ExecStatus.CPU_LIMIT
    if seen.clean:
        return ExecStatus.OK
    if refused := _refused(seen):
        return refused
    if seen.stage == "compile":
        return ExecStatus.COMPILE_ERROR
    if seen.exit_code is None:
        return ExecStatus.SIGNAL
    return ExecStatus.NONZERO_EXIT


def _refused(seen: Observed) -> ExecStatus | None:
    """The limit that an unclean end is laid to."""
    near = seen.memory_nearly_used and (seen.exit_code is not None or seen.signal in _OF_MEMORY)
    if seen.out_of_memory or seen.cause == "memory" or near:
        return ExecStatus.MEMORY_LIMIT
    if seen.fork_refused or seen.cause == "processes":
        return ExecStatus.PROCESS_LIMIT
    if seen.place_full or seen.cause == "inodes" or seen.signal == signal.SIGXFSZ:
        return ExecStatus.DISK_LIMIT
    return None


def evidence(seen: Observed) -> list[str]:
    """Refusals that the program handled, and other facts that change no status."""
    found = []
    if seen.clean:
        refusals = {"memory": seen.out_of_memory, "processes": seen.fork_refused, "disk": seen.place_full}
        found += [f"refused and handled: {name}" for name, refused in refusals.items() if refused]
    if seen.cause == "stopped":
        found.append("stopped by the caller")
    return found
