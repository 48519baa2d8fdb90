"""The shared case file, as far as its verifiers exist: right verdicts, in time, twice, from threads, inputs kept."""

import copy
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from verifiers.contract import Case, Verdict
from verifiers.engine import Engine
from verifiers.registry import VERIFIERS

FILE = "verifier_cases.jsonl"
FOLDERS = (os.environ.get("TASKMILL_CASES"), str(Path(__file__).parents[3] / "shared" / "cases"))
REMEDY = f"no {FILE}: set TASKMILL_CASES to the folder that holds it"
BOXED = frozenset(("code_stdio", "code_asserts", "code_function", "repo_patch", "terminal_state"))
SLOWEST_MS = 1_500


def _file() -> Path | None:
    return next((Path(folder, FILE) for folder in FOLDERS if folder and Path(folder, FILE).is_file()), None)


def _expanded(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"$rep"}:
            return "".join(text * times for text, times in value["$rep"])
        return {key: _expanded(inner) for key, inner in value.items()}
    return [_expanded(inner) for inner in value] if isinstance(value, list) else value


def _needed(name: str, params: Any) -> set[str]:
    found = {name}
    for part in params.get("parts", ()) if name == "composite" else ():
        found |= _needed(part["verifier"], part.get("params", {}))
    return found


def _lines() -> list[dict[str, Any]]:
    file = _file()
    lines = [json.loads(line) for line in file.read_text().splitlines()] if file else []
    return [line for line in map(_expanded, lines) if not _needed(line["verifier"], line["params"]) & BOXED]


LINES = _lines()
RUNNABLE = [line for line in LINES if _needed(line["verifier"], line["params"]) <= set(VERIFIERS)]


def _case(line: dict[str, Any]) -> Case:
    return Case(line["verifier"], line["params"], line["reference"], line["response"])


def _agrees(right: dict[str, Any], verdict: Verdict) -> bool:
    if verdict.outcome not in right.get("outcome_in", [right.get("outcome")]):
        return False
    if "reward" not in right:
        return True
    if right["reward"] is None or verdict.reward is None:
        return right["reward"] is verdict.reward
    return abs(right["reward"] - verdict.reward) < 1e-6


def test_the_case_file_is_there() -> None:
    if not LINES:
        pytest.skip(REMEDY)
    assert RUNNABLE


@pytest.mark.parametrize("line", RUNNABLE, ids=lambda line: line["id"])
def test_case(engine: Engine, line: dict[str, Any]) -> None:
    before = copy.deepcopy(line)
    verdict = engine.verify(_case(line))
    assert _agrees(line["right"], verdict), (verdict, line["why"])
    assert verdict.cost.verify_ms < SLOWEST_MS
    assert line == before


def test_all_at_once_twice_and_from_threads_agree(engine: Engine) -> None:
    if not RUNNABLE:
        pytest.skip(REMEDY)
    cases = [_case(line) for line in RUNNABLE]
    with ThreadPoolExecutor(4) as threads:
        runs = [engine.verify_many(cases), *threads.map(engine.verify_many, [cases] * 3)]
    shown = [[(v.outcome, v.reward, v.code, v.extracted, v.fingerprint) for v in run] for run in runs]
    assert all(run == shown[0] for run in shown)
    assert all(_agrees(line["right"], verdict) for line, verdict in zip(RUNNABLE, runs[0], strict=True))
