"""Functions judged by assertions, which the candidate never sees.

The assertions and their setup run in a trusted process in a box of its own. Each name in `entries` is a proxy there:
it sends arguments to the candidate's process, in another box, and gets plain data back. Iterators and functions cross
as handles. Every assertion must report from the trusted side: what is missing does not hold.

Not covered: functions that change their arguments in place (arguments are copies); results that are instances of the
candidate's own classes; entries that need more than module functions or methods of `Solution`.
"""

import ast
from collections.abc import Mapping, Sequence
from keyword import iskeyword
from typing import Any

from sandbox.contract import BoxLost, ExecResult, ExecStatus
from verifiers.asserts_relay import End, Told, judge
from verifiers.code_answer import CODE_PARAMS, code_in, limits_of, sandbox_of
from verifiers.contract import Context, CostClass, Finding, Outcome, Relation, Response
from verifiers.parsing import parse_python

name, version = "code_asserts", "1"
cost: CostClass = "box"

params_schema: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "language": {"enum": ["python"], "default": "python"},
        "entries": {
            "type": "array",
            "minItems": 1,
            "maxItems": 100,
            "uniqueItems": True,
            "items": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
        },
        **CODE_PARAMS,
    },
    "required": ["entries"],
    "additionalProperties": False,
}
reference_schema: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "asserts": {"type": "array", "minItems": 1, "maxItems": 1000, "items": {"type": "string", "minLength": 1}},
        "setup": {"type": "string", "default": ""},
    },
    "required": ["asserts"],
    "additionalProperties": False,
}

_BY_CODE: Mapping[str, tuple[Outcome, str, str]] = {
    "wrong": (Outcome.FAILED, "wrong", "does not hold"),
    "not_plain_data": (Outcome.FAILED, "not_plain_data", "got a result that is no plain data"),
    "bad_frame": (Outcome.FAILED, "not_plain_data", "got an answer that is none"),
    "exception": (Outcome.CANDIDATE_ERROR, "exception", "got an exception"),
    "compile": (Outcome.CANDIDATE_ERROR, "compile", "the code does not compile"),
    "no_entry": (Outcome.CANDIDATE_ERROR, "no_entry", "a function that was asked for is missing"),
    "calls": (Outcome.CANDIDATE_LIMIT, "calls", "needs too many calls"),
}


def lint(reference: Mapping[str, Any], params: Mapping[str, Any]) -> Sequence[str]:
    found = [f"/verifier/params/entries: {entry} is a keyword" for entry in params["entries"] if iskeyword(entry)]
    entries, used = set(params["entries"]), False
    sources = [("/reference/setup", reference.get("setup", ""))]
    sources += [(f"/reference/asserts/{i}", source) for i, source in enumerate(reference["asserts"])]
    for pointer, source in sources:
        tree = _parsed(source)
        if tree is None:
            found.append(f"{pointer}: is no Python")
        elif not tree.body and pointer != "/reference/setup":
            found.append(f"{pointer}: holds no statement")
        else:
            used = used or any(isinstance(node, ast.Name) and node.id in entries for node in ast.walk(tree))
    if not used and not found:
        found.append("/reference/asserts: no entry is ever used, so any code would pass")
    return found


def _parsed(source: str) -> ast.Module | None:
    try:
        return parse_python(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def relate(a: Mapping[str, Any], b: Mapping[str, Any], params: Mapping[str, Any]) -> Relation:
    if a.get("setup", "") != b.get("setup", ""):
        return "compatible"
    if set(a["asserts"]) == set(b["asserts"]):
        return "equal"
    first, second = _expected(a), _expected(b)
    if any(first[call] != second[call] for call in first.keys() & second.keys()):
        return "contradict"
    return "compatible"


def _expected(reference: Mapping[str, Any]) -> dict[str, Any]:
    """Of assertions `assert call == literal`: the call's text, and the literal."""
    found: dict[str, Any] = {}
    for source in reference["asserts"]:
        tree = _parsed(source)
        for node in tree.body if tree else ():
            test = node.test if isinstance(node, ast.Assert) else None
            if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
                try:
                    found[ast.unparse(test.left)] = ast.literal_eval(test.comparators[0])
                except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                    continue
    return found


def verify(response: Response, reference: Mapping[str, Any], params: Mapping[str, Any], context: Context) -> Finding:
    code = code_in(response, params, "python")
    if isinstance(code, Finding):
        return code
    task = {
        "entries": list(params["entries"]),
        "setup": reference.get("setup", ""),
        "asserts": list(reference["asserts"]),
    }
    told = judge(code, task, limits_of(params, context), sandbox_of(context), context)
    found = _found(told, task)
    return found._replace(extracted=code, image=told.image)


def _found(told: Told, task: Mapping[str, Any]) -> Finding:
    if told.end is End.REPORTED:
        return _reported(told, task)
    held = sum(1 for report in told.reports if report["at"] == "assert")
    evidence = _evidence(told, task, held)
    if told.end is End.CANDIDATE_FLOODED:
        return Finding(Outcome.FAILED, "not_plain_data", "an answer over its size", evidence=evidence)
    result = told.result
    if result is None or result.status == ExecStatus.SANDBOX_ERROR:
        raise BoxLost("a box ended without a result")
    if told.end is End.TRUSTED_GONE and not told.answers:
        raise RuntimeError("the trusted process ended before the candidate had any part in it")
    return _ended(result, told.end)._replace(evidence=evidence)


def _ended(result: ExecResult, end: End) -> Finding:
    """A process ended before every assertion had reported. If the trusted one did, what it was given is the cause."""
    if result.status.endswith("_limit"):
        return Finding(Outcome.CANDIDATE_LIMIT, result.status.value, f"over its {result.status.replace('_', ' ')}")
    if end is End.CANDIDATE_GONE and result.status != ExecStatus.OK:
        how = f"signal {result.signal}" if result.signal else f"exit code {result.exit_code}"
        return Finding(Outcome.CANDIDATE_ERROR, "exit_code", f"left with {how} during the assertions")
    return Finding(Outcome.FAILED, "no_result", "ended before every assertion had reported")


def _reported(told: Told, task: Mapping[str, Any]) -> Finding:
    if told.result is None or told.result.status != ExecStatus.OK:
        raise BoxLost("the trusted process did not end as it should")
    last, count = told.reports[-1], len(task["asserts"])
    proved = [report["id"] for report in told.reports if report["at"] == "assert" and report["code"] == "ok"]
    if last["at"] == "end" and last["count"] == count and proved == list(range(count)):
        return Finding(Outcome.VERIFIED, "ok", f"{count} assertions hold")
    if last.get("code") == "setup":
        return Finding(Outcome.VERIFIER_ERROR, "bad_reference", f"the setup raises {last['error']}")
    outcome, code, words = _BY_CODE.get(last.get("code", ""), (Outcome.FAILED, "no_result", "did not report"))
    where = f"assertion {len(proved) + 1} of {count} " if last["at"] == "assert" else ""
    return Finding(outcome, code, f"{where}{words}", evidence=_evidence(told, task, len(proved)))


def _evidence(told: Told, task: Mapping[str, Any], at: int) -> Mapping[str, Any]:
    found: dict[str, Any] = {"assertion": at, "end": str(told.end)}
    if at < len(task["asserts"]):
        found["source"] = task["asserts"][at][:2000]
    if told.reports:
        found["report"] = dict(told.reports[-1])
    if told.result is not None:
        found["status"] = str(told.result.status)
        found["stderr"] = told.result.stderr[-2000:]
    return found
