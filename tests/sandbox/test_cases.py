"""The shared corpus of hostile and honest programs, where it is present, on every way of holding limits."""

import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

from sandbox.contract import Backend, ExecRequest, Limits, UnsupportedLanguage

FOLDER = Path(os.environ.get("TASKMILL_CASES", Path(__file__).parents[3] / "shared" / "cases"))
FILE = FOLDER / "sandbox_cases.jsonl"
CASES = [json.loads(line) for line in FILE.read_text().splitlines()] if FILE.exists() else []
MISSING = f"{FILE} is not there: set TASKMILL_CASES to the folder that holds it"


def text(value: Any) -> Any:
    """Expand `{"$rep": [[text, times], …]}`."""
    if isinstance(value, dict) and "$rep" in value:
        return "".join(part * times for part, times in value["$rep"])
    return value


@pytest.mark.skipif(not CASES, reason=MISSING)
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_every_case_ends_as_written(case: dict[str, Any], backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKMILL_CANARY_SECRET", "canary")
    limits = Limits(**case["limits"])
    files = {path: text(content) for path, content in case["files"].items()}
    args = [text(arg) for arg in case["args"]]
    request = ExecRequest(case["language"], text(case["code"]), files, text(case["stdin"]), args, limits)
    started = time.monotonic()
    try:
        result = backend.run(request)
    except UnsupportedLanguage as error:
        pytest.skip(f"{error}: `taskmill sandbox doctor` names the package")
    spent = time.monotonic() - started - result.phases["queue"] - result.phases["start"]
    assert result.status in case["expect_status"], result.stderr[-500:]
    if case["expect_stdout"] is not None:
        assert result.stdout == text(case["expect_stdout"])
    if case["forbid_stdout"]:
        assert not re.search(case["forbid_stdout"], result.stdout)
    stages = 2 if case["language"] in ("c", "cpp") else 1
    assert spent < stages * (limits.wall_s + 1)
    assert "sandbox_error" not in result.status
