import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sandbox.contract import Backend, BadRequest
from tests.verifiers.code_cases import context, judged, lines, missing
from tests.verifiers.doctested import doctested
from tests.verifiers.submissions import DISHONEST, HONEST
from verifiers import asserts_candidate, asserts_trusted, code_asserts
from verifiers.asserts_relay import driver
from verifiers.composer import reward
from verifiers.contract import Finding, Outcome
from verifiers.registry import check_task

CODE, CASES = "code_grading_cases.jsonl", "verifier_cases.jsonl"


def verify(
    sandbox: Backend, code: str, *asserts: str, setup: str = "", entries: Any = ("f",), **limits: Any
) -> Finding:
    reference, params = {"asserts": list(asserts), "setup": setup}, {"entries": list(entries)}
    return judged(code_asserts, code, reference, params, context(sandbox, **{"wall_s": 4, **limits}))


@pytest.mark.parametrize("name", HONEST)
def test_honest_code_is_verified(sandbox: Backend, name: str) -> None:
    code, asserts = HONEST[name]
    finding = verify(sandbox, code, *asserts)
    assert finding.outcome == Outcome.VERIFIED, finding
    assert finding.image


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("name", DISHONEST)
def test_what_is_not_proved_is_not_verified(sandbox: Backend, name: str) -> None:
    code, source, outcomes = DISHONEST[name]
    finding = verify(sandbox, code, source, wall_s=1.5)
    assert finding.outcome in outcomes, finding
    assert "42" not in finding.detail
    assert finding.code != "ok"


def test_a_later_assertion_fails_alone_and_is_evidence(sandbox: Backend) -> None:
    finding = verify(sandbox, "def f(x): return x", "assert f(1) == 1", "assert f(2) == 3", "assert f(3) == 3")
    assert (finding.outcome, finding.code, reward(finding)) == (Outcome.FAILED, "wrong", 0.0)
    assert finding.evidence["source"] == "assert f(2) == 3"
    assert finding.detail == "assertion 2 of 3 does not hold"


def test_codes_name_what_happened(sandbox: Backend) -> None:
    found = {
        name: verify(sandbox, DISHONEST[name][0], DISHONEST[name][1], wall_s=1).code
        for name in ("an own object", "an exception", "a syntax error", "no entry", "an endless loop", "hard exit")
    }
    assert list(found.values()) == ["not_plain_data", "exception", "compile", "no_entry", "wall_limit", "no_result"]


def test_a_setup_that_cannot_run_is_the_reference_s_fault(sandbox: Backend) -> None:
    finding = verify(sandbox, "def f(x): return x", "assert f(1) == 1", setup="import nowhere")
    assert (finding.outcome, finding.code, reward(finding)) == (Outcome.VERIFIER_ERROR, "bad_reference", None)


@pytest.mark.parametrize("code", ["def f(x): return 0", "def f(x): return []", "f = 0"])
def test_no_answer_can_make_a_setup_void(sandbox: Backend, code: str) -> None:
    """Law 5: if errors are void, crashing the grader is a strategy."""
    finding = verify(sandbox, code, "assert y == 1", setup="y = 1 / f(0)" if code[0] == "d" else "y = 1 / f")
    assert finding.outcome.valid
    assert finding.outcome != Outcome.VERIFIED


def test_a_setup_may_define_and_call(sandbox: Backend) -> None:
    setup = "def check(candidate):\n    assert candidate(2) == 4\nstart = f(1)"
    assert verify(sandbox, "def f(x): return x * 2", "check(f)", "assert start == 2", setup=setup).code == "ok"
    assert verify(sandbox, "def f(x): return x * 3", "check(f)", setup=setup).outcome == Outcome.FAILED


def test_more_verdicts_than_boxes_neither_block_nor_mix(sandbox: Backend) -> None:
    def one(i: int) -> Finding:
        return verify(sandbox, f"def f(x): return {i}", f"assert f(0) == {i}", wall_s=20)

    with ThreadPoolExecutor(8) as threads:
        assert {finding.outcome for finding in threads.map(one, range(16), timeout=100)} == {Outcome.VERIFIED}


@pytest.mark.parametrize(
    ("reference", "params", "pointer"),
    [
        ({"asserts": []}, {"entries": ["f"]}, "/reference/asserts"),
        ({"asserts": ["assert f("]}, {"entries": ["f"]}, "/reference/asserts/0"),
        ({"asserts": ["# f"]}, {"entries": ["f"]}, "/reference/asserts/0"),
        ({"asserts": ["assert g() == 1"]}, {"entries": ["f"]}, "/reference/asserts"),
        ({"asserts": ["assert f()"], "setup": "def"}, {"entries": ["f"]}, "/reference/setup"),
        ({"asserts": ["assert f()"]}, {}, "/verifier/params"),
        ({"asserts": ["assert f()"]}, {"entries": ["f", "class"]}, "/verifier/params/entries"),
        ({"asserts": ["assert f()"]}, {"entries": ["f", "a.b"]}, "/verifier/params/entries/1"),
        ({"asserts": ["assert f()"]}, {"entries": ["f"], "language": "c"}, "/verifier/params/language"),
    ],
)
def test_a_bad_task_is_refused_before_any_response(reference: Any, params: Any, pointer: str) -> None:
    assert [fault.pointer for fault in check_task("code_asserts", params, reference)] == [pointer]


def test_references_relate_by_what_they_expect_of_one_call() -> None:
    def relate(first: list[str], second: list[str]) -> str:
        return code_asserts.relate({"asserts": first}, {"asserts": second}, {"entries": ["f"]})

    assert relate(["assert f(1) == 2", "assert f(2)"], ["assert f(2)", "assert f(1) == 2"]) == "equal"
    assert relate(["assert f(1) == 2"], ["assert f(3) == 2"]) == "compatible"
    assert relate(["assert f(1) == 2"], ["assert f( 1 ) == 3"]) == "contradict"


def test_a_limit_out_of_range_is_refused() -> None:
    with pytest.raises(BadRequest):
        context(None, wall_s=0)  # type: ignore[arg-type]


@pytest.mark.parametrize("side", [asserts_candidate, asserts_trusted])
def test_a_driver_is_one_text_of_the_standard_library(side: Any) -> None:
    text = driver(side)
    compile(text, "driver.py", "exec")
    assert "verifiers" not in [line.split()[1].split(".")[0] for line in text.splitlines() if line.startswith("from ")]


# ── doctest examples of a real library ──


def _functions() -> list[Any]:
    recipes = pytest.importorskip("more_itertools.recipes", reason="`pip install more-itertools==11.2.1` adds it")
    more = pytest.importorskip("more_itertools.more")
    return list(doctested("more_itertools", [recipes, more]))


def test_the_examples_of_a_library_verify_its_functions(sandbox: Backend) -> None:
    """Every third of its functions; two of all need methods of an object that is no plain data."""
    functions = _functions()
    chosen = functions[::3][:40]
    assert len(chosen) == 40

    def judge(function: Any) -> Outcome:
        return verify(
            sandbox, function.source, *function.asserts, setup=function.setup, entries=function.entries, wall_s=20
        ).outcome

    with ThreadPoolExecutor(2) as threads:
        outcomes = list(threads.map(judge, chosen, timeout=100))
    share = outcomes.count(Outcome.VERIFIED) / len(outcomes)
    failed = [function.name for function, found in zip(chosen, outcomes, strict=True) if found != Outcome.VERIFIED]
    print(json.dumps({"functions": len(outcomes), "share": share, "failed": failed}))
    assert share > 0.9, failed


# ── the shared cases ──

GRADED = lines(CODE, kind="asserts")
LISTED = lines(CASES, verifier="code_asserts")


def test_the_case_files_are_there() -> None:
    if not (GRADED and LISTED):
        pytest.skip(missing(CODE))


@pytest.mark.parametrize("line", GRADED, ids=lambda line: line["id"])
def test_graded_case(sandbox: Backend, line: dict[str, Any]) -> None:
    task = line["task"]
    lent = context(sandbox, **task["limits"])
    right = [line["right"]] if isinstance(line["right"], str) else line["right"]
    found = judged(code_asserts, line["submission"], task["reference"], task["verifier"]["params"], lent)
    assert found.outcome in right, (found, line["why"])
    for gold in task["gold"]:
        assert judged(code_asserts, gold, task["reference"], task["verifier"]["params"], lent).outcome == "verified"


@pytest.mark.parametrize("line", LISTED, ids=lambda line: line["id"])
def test_listed_case(sandbox: Backend, line: dict[str, Any]) -> None:
    right = line["right"]
    found = judged(code_asserts, line["response"], line["reference"], line["params"], context(sandbox))
    assert found.outcome in right.get("outcome_in", [right.get("outcome")]), (found, line["why"])
    if "reward" in right:
        assert reward(found) == right["reward"]
