"""Programs that read standard input and write standard output.

Each test is a process of its own in one box; the expected output and the comparison stay here. The order of judgement
is: limits, then the way of ending, then the output. The first test that fails decides.

Not covered: a program that recognises a test by its input; only more tests stop that.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from sandbox.contract import BoxLost, ExecRequest, ExecResult, ExecStatus, Limits
from verifiers.code_answer import CODE_PARAMS, LANGUAGES, code_in, limits_of, sandbox_of
from verifiers.code_compare import same_output
from verifiers.contract import Context, CostClass, Finding, Outcome, Relation, Response

name, version = "code_stdio", "1"
cost: CostClass = "box"

CHECKER_LIMITS = Limits(wall_s=30, memory_mb=1024, processes=32)
LIMITED = frozenset(status for status in ExecStatus if status.endswith("_limit"))
_SHOWN = 2_000

params_schema: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "language": {"enum": list(LANGUAGES), "default": "python"},
        "checker": {
            "type": "object",
            "properties": {
                "kind": {"enum": ["tokens", "lines", "exact", "program"], "default": "tokens"},
                "float_abs": {"type": "number", "minimum": 0},
                "float_rel": {"type": "number", "minimum": 0},
                "ignore_case": {"type": "boolean", "default": False},
            },
            "additionalProperties": False,
        },
        "exit_code": {"enum": ["zero", "any"], "default": "zero"},
        "partial": {"enum": ["none", "fraction"], "default": "none"},
        **CODE_PARAMS,
    },
    "additionalProperties": False,
}
reference_schema: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "tests": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1000,
            "items": {
                "type": "object",
                "properties": {
                    "stdin": {"type": "string"},
                    "stdout": {"type": "string"},
                    "args": {"type": "array", "maxItems": 64, "items": {"type": "string", "pattern": "^[^\\x00]*$"}},
                },
                "required": ["stdin", "stdout"],
                "additionalProperties": False,
            },
        },
        "checker_code": {"type": "string", "minLength": 1},
    },
    "required": ["tests"],
    "additionalProperties": False,
}


class _Fault(NamedTuple):
    """Why a test is not passed."""

    outcome: Outcome
    code: str
    words: str


def lint(reference: Mapping[str, Any], params: Mapping[str, Any]) -> Sequence[str]:
    checker = params.get("checker", {})
    kind = checker.get("kind", "tokens")
    found = []
    if kind == "program" and "checker_code" not in reference:
        found.append("/reference/checker_code: a program checker needs its code")
    if kind != "program" and "checker_code" in reference:
        found.append("/reference/checker_code: is used by checkers of kind program only")
    if kind != "tokens" and ("float_abs" in checker or "float_rel" in checker):
        found.append("/verifier/params/checker: a tolerance needs the kind tokens")
    if kind in ("exact", "program") and checker.get("ignore_case"):
        found.append(f"/verifier/params/checker: ignore_case says nothing to the kind {kind}")
    return found


def relate(a: Mapping[str, Any], b: Mapping[str, Any], params: Mapping[str, Any]) -> Relation:
    checker = params.get("checker", {})
    first, second = _by_input(a), _by_input(b)
    if checker.get("kind") == "program":
        return "equal" if first == second and a.get("checker_code") == b.get("checker_code") else "compatible"
    if any(not same_output(first[key], second[key], checker) for key in first.keys() & second.keys()):
        return "contradict"
    return "equal" if first.keys() == second.keys() else "compatible"


def _by_input(reference: Mapping[str, Any]) -> dict[tuple[str, tuple[str, ...]], str]:
    return {(test["stdin"], tuple(test.get("args", ()))): test["stdout"] for test in reference["tests"]}


def verify(response: Response, reference: Mapping[str, Any], params: Mapping[str, Any], context: Context) -> Finding:
    code = code_in(response, params, params.get("language", "python"))
    if isinstance(code, Finding):
        return code
    results = _run(code, reference, params, context)
    faults = _judged(results, reference, params, context)
    if isinstance(faults, Finding):
        return faults._replace(extracted=code)
    image = results[-1].image
    total = len(reference["tests"])
    first = next((i for i, fault in enumerate(faults) if fault), None)
    if first is None and len(faults) == total:
        return Finding(Outcome.VERIFIED, "ok", extracted=code, process=_process(params, faults, total), image=image)
    first = len(faults) - 1 if first is None else first
    fault = faults[first] or _Fault(Outcome.FAILED, "wrong", "a test was not run")
    detail = f"test {first + 1} of {total}: {fault.words}"
    evidence = _evidence(first, reference["tests"][first], results[first])
    return Finding(
        fault.outcome,
        fault.code,
        detail,
        extracted=code,
        process=_process(params, faults, total),
        image=image,
        evidence=evidence,
    )


def _process(params: Mapping[str, Any], faults: Sequence[_Fault | None], total: int) -> float | None:
    return faults.count(None) / total if params.get("partial") == "fraction" else None


def _run(code: str, reference: Mapping[str, Any], params: Mapping[str, Any], context: Context) -> list[ExecResult]:
    """Run the tests in one box, in order, until one of them settles the matter."""
    limits = limits_of(params, context)
    results: list[ExecResult] = []
    with closing(sandbox_of(context).create(limits, context.image)) as box:
        for test in reference["tests"]:
            request = ExecRequest(
                params.get("language", "python"),
                code,
                files=context.files,
                stdin=test["stdin"],
                args=test.get("args", ()),
                limits=limits,
                image=context.image,
            )
            result = box.run(request)
            if result.status == ExecStatus.SANDBOX_ERROR:
                raise BoxLost(f"the sandbox could not run test {len(results) + 1}")
            results.append(result)
            ended = _ending(result, params)
            if ended and (ended.code == "compile" or params.get("partial") != "fraction"):
                break
            if params.get("partial") != "fraction" and _differs(test, result, params):
                break
    return results


def _ending(result: ExecResult, params: Mapping[str, Any]) -> _Fault | None:
    """What the way of ending says, before any output is looked at."""
    if result.status in LIMITED:
        return _Fault(Outcome.CANDIDATE_LIMIT, result.status.value, f"over its {result.status.replace('_', ' ')}")
    if result.status == ExecStatus.COMPILE_ERROR:
        return _Fault(Outcome.CANDIDATE_ERROR, "compile", "does not compile")
    if result.status == ExecStatus.SIGNAL:
        return _Fault(Outcome.CANDIDATE_ERROR, "exit_code", f"killed by signal {result.signal}")
    if result.status != ExecStatus.OK and params.get("exit_code", "zero") == "zero":
        return _Fault(Outcome.CANDIDATE_ERROR, "exit_code", f"left with exit code {result.exit_code}")
    return None


def _differs(test: Mapping[str, Any], result: ExecResult, params: Mapping[str, Any]) -> bool:
    checker = params.get("checker", {})
    return checker.get("kind") != "program" and not same_output(test["stdout"], result.stdout, checker)


def _judged(
    results: Sequence[ExecResult], reference: Mapping[str, Any], params: Mapping[str, Any], context: Context
) -> list[_Fault | None] | Finding:
    """A fault or none for each test that was run, or the finding that the checker itself is broken."""
    wrong = _Fault(Outcome.FAILED, "wrong", "the output is not the expected one")
    faults = [
        _ending(result, params) or (wrong if _differs(test, result, params) else None)
        for test, result in zip(reference["tests"], results, strict=False)
    ]
    if params.get("checker", {}).get("kind") != "program":
        return faults
    # The candidate's box is closed by now: nobody waits for a box while holding one.
    with closing(sandbox_of(context).create(CHECKER_LIMITS)) as box:
        for i, fault in enumerate(faults):
            if fault is not None:
                continue
            request = _check_request(reference, reference["tests"][i], results[i])
            checked = box.run(request)
            if checked.status == ExecStatus.SANDBOX_ERROR:
                raise BoxLost("the sandbox could not run the checker")
            if checked.exit_code not in (0, 1):
                words = f"the checker ended with {checked.status} on test {i + 1}"
                return Finding(Outcome.VERIFIER_ERROR, "bad_reference", words, image=checked.image)
            if checked.exit_code == 1:
                faults[i] = _Fault(Outcome.FAILED, "wrong", "the checker rejects the output")
                if params.get("partial") != "fraction":
                    return faults[: i + 1]
    return faults


def _check_request(reference: Mapping[str, Any], test: Mapping[str, Any], result: ExecResult) -> ExecRequest:
    files = {"input": test["stdin"], "expected": test["stdout"], "output": result.stdout}
    return ExecRequest("python", reference["checker_code"], files=files, args=tuple(files), limits=CHECKER_LIMITS)


def _evidence(index: int, test: Mapping[str, Any], result: ExecResult) -> Mapping[str, Any]:
    return {
        "test": index,
        "stdin": test["stdin"][:_SHOWN],
        "expected": test["stdout"][:_SHOWN],
        "stdout": result.stdout[:_SHOWN],
        "stderr": result.stderr[-_SHOWN:],
        "status": str(result.status),
        "exit_code": result.exit_code,
        "signal": result.signal,
    }
