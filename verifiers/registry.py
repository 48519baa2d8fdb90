"""The verifiers, by name. The only list: an unknown name is an error at admission."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from verifiers.contract import Verifier

VERIFIERS: Mapping[str, Verifier] = {}


class Fault(NamedTuple):
    """What is wrong with a task's verifier, params or reference: JSON pointer, stable code, the rule in words."""

    pointer: str
    code: str
    message: str


def check_task(name: str, params: Mapping[str, Any], reference: Mapping[str, Any]) -> list[Fault]:
    """Everything wrong with a task's verifier: unknown name, schema errors of params and reference, lint."""
    if name not in VERIFIERS:
        return [Fault("/verifier/name", "unknown_verifier", f"must be one of {', '.join(sorted(VERIFIERS))}")]
    return []
