from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.contract import Backend
from tests.verifiers.code_cases import context, judged, lines, missing
from verifiers import code_stdio
from verifiers.code_compare import same_output
from verifiers.composer import reward
from verifiers.contract import Finding, Outcome
from verifiers.registry import check_task

CODE, CASES = "code_grading_cases.jsonl", "verifier_cases.jsonl"
SUM = [{"stdin": "1 2\n", "stdout": "3\n"}, {"stdin": "10 -4\n", "stdout": "6\n"}]


def verify(sandbox: Backend, code: Any, tests: Any = SUM, limits: Any = None, **params: Any) -> Finding:
    reference: dict[str, Any] = {"tests": tests} if isinstance(tests, list) else tests
    return judged(code_stdio, code, reference, params, context(sandbox, **(limits or {})))


# ── comparing ──


@pytest.mark.parametrize(
    ("expected", "given", "checker", "same"),
    [
        ("1 2\n", "1\n2", {}, True),
        ("1 2\n", "1 2 3", {}, False),
        ("YES", "yes", {}, False),
        ("YES", "yes", {"ignore_case": True}, True),
        ("0.5", "0.50", {}, False),
        ("0.5", "0.5000001", {"float_abs": 1e-6}, True),
        ("0.5", "0.51", {"float_abs": 1e-6}, False),
        ("1e9", "1000000001", {"float_rel": 1e-6}, True),
        ("1000000007", "1000000006", {"float_rel": 1e-3}, False),
        ("3", "3.0", {"float_abs": 1e-6}, True),
        ("3", "3.0000001", {"float_abs": 1e-3}, False),
        ("3.0", "nan", {"float_abs": 1e9}, False),
        ("3.0", "inf", {"float_rel": 1e9}, False),
        ("3.0", "1e999", {"float_rel": 1e9}, False),
        ("nan", "nan", {"float_abs": 1}, True),
        ("1.5", "1_5", {"float_abs": 100}, False),
        ("0.5", "٠.٥", {"float_abs": 1}, False),
        ("1.5", "1.5" + "0" * 2000, {"float_abs": 1}, False),
        ("a b\r\nc\r\n\n", "a b  \nc", {"kind": "lines"}, True),
        ("a b", "a  b", {"kind": "lines"}, False),
        (" a", "a", {"kind": "lines"}, False),
        ("a\n\nb", "a\nb", {"kind": "lines"}, False),
        ("a\n", "a", {"kind": "exact"}, False),
        ("a\n", "a\n", {"kind": "exact"}, True),
    ],
)
def test_outputs_compare_by_the_declared_checker(expected: str, given: str, checker: Any, same: bool) -> None:
    assert same_output(expected, given, checker) is same


@settings(max_examples=60)
@given(st.text(), st.sampled_from(["tokens", "lines", "exact"]))
def test_every_output_equals_itself(text: str, kind: str) -> None:
    assert same_output(text, text, {"kind": kind})


@settings(max_examples=60)
@given(st.lists(st.integers(), min_size=1), st.integers(min_value=1))
def test_no_tolerance_forgives_a_wrong_integer(numbers: list[int], off: int) -> None:
    wrong = [*numbers[:-1], numbers[-1] + off]
    assert not same_output(" ".join(map(str, numbers)), " ".join(map(str, wrong)), {"float_abs": 1e9, "float_rel": 1})


# ── lint, relate ──


@pytest.mark.parametrize(
    ("reference", "params", "pointer"),
    [
        ({"tests": []}, {}, "/reference/tests"),
        ({}, {}, "/reference"),
        ({"tests": SUM}, {"checker": {"kind": "program"}}, "/reference/checker_code"),
        ({"tests": SUM, "checker_code": "1"}, {}, "/reference/checker_code"),
        ({"tests": SUM}, {"checker": {"kind": "lines", "float_abs": 1}}, "/verifier/params/checker"),
        ({"tests": SUM}, {"checker": {"kind": "exact", "ignore_case": True}}, "/verifier/params/checker"),
        ({"tests": SUM}, {"cheker": {}}, "/verifier/params"),
        ({"tests": SUM}, {"language": "cobol"}, "/verifier/params/language"),
        ({"tests": SUM}, {"limits": {"wall_s": 0}}, "/verifier/params/limits/wall_s"),
        ({"tests": [{"stdin": "", "stdout": "", "args": ["\0"]}]}, {}, "/reference/tests/0/args/0"),
    ],
)
def test_a_bad_task_is_refused_before_any_response(reference: Any, params: Any, pointer: str) -> None:
    assert [fault.pointer for fault in check_task("code_stdio", params, reference)] == [pointer]


def test_references_relate_by_what_they_expect_of_one_input() -> None:
    def relate(first: Any, second: Any, **params: Any) -> str:
        return code_stdio.relate({"tests": first}, {"tests": second}, params)

    assert relate(SUM, [SUM[1], SUM[0]]) == "equal"
    assert relate(SUM, SUM[:1]) == "compatible"
    assert relate(SUM, [{**SUM[0], "stdout": "4"}]) == "contradict"
    assert relate(SUM, [{**SUM[0], "stdout": " 3"}]) == "compatible"


# ── judging ──

GOOD = "print(sum(map(int, input().split())))"


@pytest.mark.parametrize(
    ("code", "outcome", "found"),
    [
        (GOOD, "verified", "ok"),
        ("import sys\nfor line in sys.stdin: print(sum(map(int, line.split())))", "verified", "ok"),
        (f"if __name__ == '__main__':\n    {GOOD}\n    exit()", "verified", "ok"),
        ("print(3)", "failed", "wrong"),
        ("", "format_error", "empty"),
        ("print(3", "candidate_error", "exit_code"),
        (f"{GOOD}\nraise SystemExit(3)", "candidate_error", "exit_code"),
        (f"{GOOD}\nimport os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "candidate_error", "exit_code"),
        ("import os\nos._exit(0)", "failed", "wrong"),
        ("while True: pass", "candidate_limit", "wall_limit"),
        ("while True: print('x' * 10000)", "candidate_limit", "output_limit"),
        ("import builtins\nbuiltins.print = lambda *a: None\nprint(3)", "failed", "wrong"),
    ],
)
def test_a_program_is_judged_by_what_it_did(sandbox: Backend, code: str, outcome: str, found: str) -> None:
    finding = verify(sandbox, code, limits={"wall_s": 1, "output_kb": 64})
    assert (finding.outcome, finding.code) == (outcome, found)
    assert outcome == "format_error" or finding.image


def test_a_test_leaves_nothing_for_the_next_one(sandbox: Backend) -> None:
    code = "import os\nprint(os.path.exists('seen'))\nopen('seen', 'w').close()\nopen('/tmp/seen', 'w').close()"
    tests = [{"stdin": "", "stdout": "False"}, {"stdin": "1", "stdout": "False"}]
    assert verify(sandbox, code, tests).outcome == Outcome.VERIFIED


def test_the_first_failing_test_decides_and_is_evidence(sandbox: Backend) -> None:
    finding = verify(sandbox, "a = input()\nprint(3) if a == '1 2' else print(1 / 0)")
    assert (finding.outcome, finding.evidence["test"]) == (Outcome.CANDIDATE_ERROR, 1)
    assert "ZeroDivisionError" in finding.evidence["stderr"]
    assert "6" not in finding.detail


def test_a_fraction_of_the_tests_pays_only_where_it_is_declared(sandbox: Backend) -> None:
    finding = verify(sandbox, "print(6)", partial="fraction")
    assert (finding.outcome, finding.process, reward(finding)) == (Outcome.FAILED, 0.5, 0.5)
    assert finding.evidence["test"] == 0
    assert verify(sandbox, "print(3)").process is None


def test_an_exit_code_may_be_declared_free(sandbox: Backend) -> None:
    assert verify(sandbox, f"{GOOD}\nexit(1)", exit_code="any").outcome == Outcome.VERIFIED
    assert verify(sandbox, "exit(1)", exit_code="any").outcome == Outcome.FAILED


def test_arguments_and_the_limits_of_params_reach_the_program(sandbox: Backend) -> None:
    tests = [{"stdin": "", "stdout": "a b", "args": ["a", "b"]}]
    assert verify(sandbox, "import sys\nprint(*sys.argv[1:])", tests).outcome == Outcome.VERIFIED
    reference = {"tests": SUM}
    slow = judged(code_stdio, "import time\ntime.sleep(20)", reference, {"limits": {"wall_s": 0.3}}, context(sandbox))
    assert (slow.outcome, slow.code) == (Outcome.CANDIDATE_LIMIT, "wall_limit")


CHECKER = """\
import sys
numbers = list(map(int, open(sys.argv[1]).read().split()))
given = list(map(int, open(sys.argv[3]).read().split()))
if given == [666]:
    sys.exit(7)
sys.exit(0 if len(given) == 2 and sum(given) == sum(numbers) else 1)
"""


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("a, b = map(int, input().split())\nprint(a - 5, b + 5)", "verified"),
        ("print(1, 2)", "failed"),
        ("print(666)", "verifier_error"),
        ("print(1 / 0)", "candidate_error"),
    ],
)
def test_a_program_checker_accepts_every_right_answer(sandbox: Backend, code: str, outcome: str) -> None:
    reference = {"tests": SUM, "checker_code": CHECKER}
    assert verify(sandbox, code, reference, checker={"kind": "program"}).outcome == outcome


def test_a_program_that_does_not_compile_says_so(sandbox: Backend) -> None:
    languages = sandbox.capabilities().languages
    if "c" not in languages:
        pytest.skip("there is no C here: `apt-get install gcc libc6-dev` adds it")
    code = '#include <stdio.h>\nint main(void) { int a, b; scanf("%d %d", &a, &b); printf("%d", a + b); }'
    assert verify(sandbox, code, language="c").outcome == Outcome.VERIFIED
    broken = verify(sandbox, "int main(void) { return", language="c")
    assert (broken.outcome, broken.code) == (Outcome.CANDIDATE_ERROR, "compile")


# ── the shared cases ──

GRADED = lines(CODE, kind="stdio")
LISTED = lines(CASES, verifier="code_stdio")


def test_the_case_files_are_there() -> None:
    if not (GRADED and LISTED):
        pytest.skip(missing(CODE))


@pytest.mark.parametrize("line", GRADED, ids=lambda line: line["id"])
def test_graded_case(sandbox: Backend, line: dict[str, Any]) -> None:
    task = line["task"]
    lent = context(sandbox, **task["limits"])
    right = [line["right"]] if isinstance(line["right"], str) else line["right"]
    found = judged(code_stdio, line["submission"], task["reference"], task["verifier"]["params"], lent)
    assert found.outcome in right, (found, line["why"])
    for gold in task["gold"]:
        assert judged(code_stdio, gold, task["reference"], task["verifier"]["params"], lent).outcome == "verified"


@pytest.mark.parametrize("line", LISTED, ids=lambda line: line["id"])
def test_listed_case(sandbox: Backend, line: dict[str, Any]) -> None:
    right = line["right"]
    if check_task("code_stdio", line["params"], line["reference"]):
        assert right.get("outcome") == "verifier_error"
        return
    found = judged(code_stdio, line["response"], line["reference"], line["params"], context(sandbox))
    assert found.outcome in right.get("outcome_in", [right.get("outcome")]), (found, line["why"])
    if "reward" in right:
        assert reward(found) == right["reward"]
