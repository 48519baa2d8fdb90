"""Which gates a task must have passed to be served, and the version of each.

Bumping a gate's version here, or a verifier's in its module, voids the receipts made with the old one: the task's
`receipts_key` no longer equals `current_key`, so it is not servable until it is gated again.
"""

from collections.abc import Mapping

from verifiers.registry import VERIFIERS

GATE_VERSIONS: Mapping[str, str] = {"G0": "1", "G1": "1", "G2": "1", "G3": "1"}

REQUIRED: Mapping[str, tuple[str, ...]] = {}
"""Task types that require other gates than `DEFAULT`."""

DEFAULT = ("G0", "G1", "G2", "G3")


def required(task_type: str) -> tuple[str, ...]:
    """The gates that tasks of this type must have passed, in the order they are run."""
    return REQUIRED.get(task_type, DEFAULT)


def current_key(task_type: str, verifier: str) -> str:
    """What a servable task's `receipts_key` must be now."""
    gates = ",".join(f"{gate}:{GATE_VERSIONS[gate]}" for gate in required(task_type))
    return f"{verifier}@{VERIFIERS[verifier].version}|{gates}"


def current_keys() -> frozenset[str]:
    """Every key that is current for some verifier and some task type."""
    types = ("", *REQUIRED)
    return frozenset(current_key(task_type, verifier) for task_type in types for verifier in VERIFIERS)
