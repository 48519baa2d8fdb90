"""The shared cases of code verifiers, found by TASKMILL_CASES or beside the repository."""

import json
import os
from pathlib import Path
from typing import Any

from sandbox.contract import Backend, Limits
from verifiers import composer
from verifiers.contract import Case, Context, Finding, Response, Verdict
from verifiers.registry import checked

FOLDERS = (os.environ.get("TASKMILL_CASES"), str(Path(__file__).parents[3] / "shared" / "cases"))


def lines(file: str, **wanted: str) -> list[dict[str, Any]]:
    """The lines of a case file with these fields, `$rep` expanded; none where the file is not."""
    for folder in FOLDERS:
        path = Path(folder or "/nowhere") / file
        if path.is_file():
            found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
            kept = [line for line in found if all(line.get(key) == value for key, value in wanted.items())]
            return [expanded(line) for line in kept]
    return []


def missing(file: str) -> str:
    return f"no {file}: set TASKMILL_CASES to the folder that holds it"


def expanded(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"$rep"}:
            return "".join(text * count for text, count in value["$rep"])
        return {key: expanded(item) for key, item in value.items()}
    return [expanded(item) for item in value] if isinstance(value, list) else value


def _no_parts(case: Case) -> Verdict:
    raise AssertionError("code verifiers have no parts")


def context(sandbox: Backend, **limits: Any) -> Context:
    return Context(sandbox, Limits(**{"wall_s": 5, "memory_mb": 256, **limits}), "python", {}, 0, _no_parts)


def judged(
    module: Any, response: Response, reference: dict[str, Any], params: dict[str, Any], lent: Context
) -> Finding:
    """What the module finds, after its schemas and its lint."""
    assert not (faults := checked(module.name, params, reference).faults), faults
    before = json.dumps([reference, params])
    found: Finding = module.verify(response, reference, params, lent)
    assert json.dumps([reference, params]) == before
    assert composer.reward(found, params.get("rewards")) is not None or not found.outcome.valid
    return found
