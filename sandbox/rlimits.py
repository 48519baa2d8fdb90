"""The resource limits of a program, set inside the box before exec and read back there."""

import math
import resource

from sandbox.contract import Limits

OPEN_FILES = 512
STACK_BYTES = 256 << 20
"""Where the machine knows no hard limit: deep recursion works, and threads still fit into the address space."""
ADDRESS_SPACE_FACTOR = 4
"""Address space is not memory (thread stacks, mapped files): the sum over the box is measured besides."""

Rlimit = tuple[str, int, int]


def _bounded(name: str, soft: int, hard: int | None = None) -> Rlimit:
    ceiling = resource.getrlimit(getattr(resource, name))[1]
    hard = soft if hard is None else hard
    if ceiling != resource.RLIM_INFINITY:
        soft, hard = min(soft, ceiling), min(hard, ceiling)
    return name, soft, hard


def rlimits(limits: Limits, *, measured: bool, own_user_namespace: bool) -> list[Rlimit]:
    """`measured`: no control group bounds memory and processes, so address space and the task count do too."""
    disk = limits.disk_mb << 20
    stack_hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    most = max(8 << 20, limits.memory_mb << 18) if measured else STACK_BYTES
    stack = most if stack_hard == resource.RLIM_INFINITY else min(stack_hard, most)
    found = [
        _bounded("RLIMIT_CORE", 0),
        _bounded("RLIMIT_NOFILE", OPEN_FILES),
        _bounded("RLIMIT_FSIZE", disk),
        _bounded("RLIMIT_CPU", math.ceil(limits.cpu_seconds) + 1),
        ("RLIMIT_STACK", stack, stack_hard),
        _bounded("RLIMIT_MSGQUEUE", 0),
    ]
    if measured:
        found.append(_bounded("RLIMIT_AS", (limits.memory_mb << 20) * ADDRESS_SPACE_FACTOR))
        if own_user_namespace:
            # Counted per user namespace, and the supervisor is one.
            found.append(_bounded("RLIMIT_NPROC", limits.processes + 1))
    return found
