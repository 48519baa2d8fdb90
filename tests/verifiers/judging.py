"""One line to have a response judged."""

from collections.abc import Mapping
from typing import Any

from verifiers.contract import Case, Response, Verdict
from verifiers.engine import Engine


def judge(
    engine: Engine, verifier: str, response: Response, reference: Mapping[str, Any], params: Mapping[str, Any]
) -> Verdict:
    """The engine's verdict."""
    return engine.verify(Case(verifier, params, reference, response))
