"""One number, exact unless the task declares a tolerance, with or without a unit.

Not covered: arithmetic left to the reader (`3*4`), roots, constants; `math` reads those.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from verifiers import quantity, slots
from verifiers.contract import Context, CostClass, Finding, Outcome, Relation, Response
from verifiers.numbers import Number, TooComplex
from verifiers.peel import peel
from verifiers.response import visible
from verifiers.shapes import ANSWER, answers_of, blank_answers, text_params

name, version = "numeric", "1"
cost: CostClass = "µs"

params_schema: Mapping[str, Any] = text_params(**quantity.PARAMS)
reference_schema: Mapping[str, Any] = {
    "type": "object",
    "properties": {"answer": ANSWER},
    "required": ["answer"],
    "additionalProperties": False,
}


def lint(reference: Mapping[str, Any], params: Mapping[str, Any]) -> Sequence[str]:
    if found := blank_answers(reference):
        return found
    gold = _gold(reference, params)
    return ["the answer is not one number"] if gold is None else quantity.faults(gold, params)


def relate(a: Mapping[str, Any], b: Mapping[str, Any], params: Mapping[str, Any]) -> Relation:
    first, second = (_gold(side, params) for side in (a, b))
    if first is None or second is None:
        return "compatible"
    if quantity.compare(first, second, {**params, "abs_tol": 0, "rel_tol": 0}) == "ok":
        return "equal"
    tolerant = "abs_tol" in params or "rel_tol" in params
    return "compatible" if tolerant and quantity.compare(first, second, params) == "ok" else "contradict"


def verify(response: Response, reference: Mapping[str, Any], params: Mapping[str, Any], context: Context) -> Finding:
    text = visible(response, params)
    if isinstance(text, Finding):
        return text
    if not any(char.isalnum() for char in text):
        return Finding(Outcome.FORMAT_ERROR, "empty", "no letter and no digit")
    locale = params.get("locale", "auto")
    answer = slots.find(text, params.get("slot", "auto"), lambda found: quantity.is_number(found.text, locale))
    if answer is None:
        return Finding(Outcome.FORMAT_ERROR, "no_answer", "the answer slot is missing or empty")
    if answer.slot == "raw" and params.get("slot", "auto") == "auto" and not quantity.is_number(answer.text, locale):
        return Finding(Outcome.FORMAT_ERROR, "no_answer", "no slot and no number")
    gold = _gold(reference, params)
    if gold is None:
        raise ValueError("the reference passed its lint and is no number")
    return _judged(answer, gold, params)


def _gold(reference: Mapping[str, Any], params: Mapping[str, Any]) -> Number | None:
    """The gold; a JSON number is read as JSON, a text as the task's locale says."""
    answer = reference["answer"]
    return quantity.gold_of(answers_of(reference)[0], params if isinstance(answer, str) else {})


def _judged(answer: slots.Answer, gold: Number, params: Mapping[str, Any]) -> Finding:
    peeled = tuple(peel(part) for part in answer.parts)
    try:
        code = quantity.judge(peeled, gold, params)
    except TooComplex as error:
        code = "too_complex"
        detail = f"over a limit: {error}"
    else:
        detail = "" if code == "ok" else quantity.MEANING[code]
    outcome = Outcome.VERIFIED if code == "ok" else Outcome.FAILED
    return Finding(outcome, code, detail, answer.text, ", ".join(peeled)[:4000], "number")
