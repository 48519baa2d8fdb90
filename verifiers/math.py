"""Mathematical answers: numbers, expressions, equations, inequalities, intervals, sets, tuples, matrices, times, words.

Tiers, cheapest first: the same text; the number tier; the second parser with exact values at fixed points; math-verify
for what that parser cannot read. The first two run in the calling thread (`quick`), the others in a killable worker.
Not covered: proofs, answers that are equal only under an assumption, units inside equations.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from verifiers import comparison, quantity, slots, symbolic
from verifiers.contract import Case, Context, CostClass, Finding, Outcome, Relation, Response
from verifiers.expression import Malformed
from verifiers.forms import is_number
from verifiers.glyphs import tidy
from verifiers.golds import Gold, declared_fault, gold_of
from verifiers.numbers import TooComplex, parse
from verifiers.peel import peel
from verifiers.response import visible
from verifiers.shapes import ANSWER, ANSWERS, answers_of, blank_answers, text_params
from verifiers.structures import ALL_WORDS, EMPTY_WORDS, read
from verifiers.words import normal

name, version = "math", "1"
cost: CostClass = "ms"
warm_imports = (*symbolic.WARM_IMPORTS, "mpmath", "pint")

ANSWER_TYPES = (
    "auto", "number", "expression", "equation", "relation", "interval", "set", "list", "tuple", "matrix", "time",
    "text",
)  # fmt: skip
params_schema: Mapping[str, Any] = text_params(
    **quantity.PARAMS,
    answer_type={"enum": list(ANSWER_TYPES), "default": "auto"},
    form={"enum": ["evaluated", "any", "simplified"]},
    relations={"enum": ["solved", "strict"], "default": "solved"},
    free_constants={"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 16}, "maxItems": 8},
)
reference_schema: Mapping[str, Any] = {
    "type": "object",
    "properties": {"answer": ANSWER, "answers": ANSWERS},
    "anyOf": [{"required": ["answer"]}, {"required": ["answers"]}],
    "additionalProperties": False,
}

_WORKER_RECURSION = 20_000
_WORDS = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}")
_MATHEMATICAL = re.compile(
    r"[0-9π∞√]|\\(?:pi|infty|frac|sqrt|binom|sum|int|log|ln)|(?<![A-Za-z])(?:[ei]|pi|sqrt|log|ln|exp)(?![A-Za-z])"
)
_COMMON_WORDS = """sin cos tan log exp sqrt and or pi arcsin arccos arctan sinh cosh tanh frac percent real numbers gcd
lcm max min begin end pmatrix bmatrix matrix array left right infty cup cap text"""
_KNOWN_WORDS = frozenset(_COMMON_WORDS.split())
_PROSE = 3


def warm() -> None:
    """What a worker does before its first case."""
    sys.setrecursionlimit(_WORKER_RECURSION)  # Python frames only: 400 tokens may nest deeply
    symbolic.warm()
    quantity.gold_of("1 cm", {})


def lint(reference: Mapping[str, Any], params: Mapping[str, Any]) -> Sequence[str]:
    if found := blank_answers(reference):
        return found
    return [fault for answer in answers_of(reference) if (fault := declared_fault(answer, params))]


def relate(a: Mapping[str, Any], b: Mapping[str, Any], params: Mapping[str, Any]) -> Relation:
    """By parsed values. Only numbers and words are ever said to contradict each other."""
    first, second = answers_of(a), answers_of(b)
    wanted = params.get("answer_type", "auto")
    shared = [(x, y) for x in first for y in second if _agree(gold_of(x, wanted), gold_of(y, wanted))]
    if {x for x, _ in shared} == set(first) and {y for _, y in shared} == set(second):
        return "equal"
    if shared or params.get("abs_tol") or params.get("rel_tol"):
        return "compatible"
    plain = all(gold_of(x, wanted).number or gold_of(x, wanted).words for x in (*first, *second))
    return "contradict" if plain else "compatible"


def _agree(a: Gold, b: Gold) -> bool:
    if a.number and b.number:
        return quantity.compare(a.number, b.number, {}) == "ok"
    return a.squeezed == b.squeezed


def gold_case(case: Case) -> Case:
    """The case with its own reference as the answer, to tell whose fault a lost worker was."""
    answer = answers_of(case.reference)[0]
    return replace(case, response=answer, params={**case.params, "slot": "raw", "think": "keep"})


def quick(response: Response, reference: Mapping[str, Any], params: Mapping[str, Any]) -> Finding | None:
    """The finding, where the text itself or the number tier settles the matter."""
    found = _slot(response, reference, params)
    if isinstance(found, Finding):
        return found
    codes = [_quick_code(gold, found.peeled, params) for gold in found.golds]
    if "ok" in codes:
        return _finding("ok", found, found.golds[codes.index("ok")].tier)
    return None if None in codes else _finding(codes[0] or "wrong", found, found.golds[0].tier)


def verify(response: Response, reference: Mapping[str, Any], params: Mapping[str, Any], context: Context) -> Finding:
    found = _slot(response, reference, params)
    if isinstance(found, Finding):
        return found
    first: tuple[str, str] | None = None
    for gold in found.golds:
        code, tier = _quick_code(gold, found.peeled, params), gold.tier
        if code is None:
            code, tier = _full_code(gold, found.peeled, params)
        if code == "ok":
            return _finding("ok", found, tier)
        first = first or (code, tier)
    code, tier = first or ("wrong", "text")
    return _finding(code, found, tier)


class _Found(NamedTuple):
    answer: slots.Answer
    peeled: tuple[str, ...]
    golds: tuple[Gold, ...]


def _slot(response: Response, reference: Mapping[str, Any], params: Mapping[str, Any]) -> Finding | _Found:
    text = visible(response, params)
    if isinstance(text, Finding):
        return text
    if not any(char.isalnum() or char in "∅∞" for char in text):
        return Finding(Outcome.FORMAT_ERROR, "empty", "no letter and no digit")
    wanted = params.get("answer_type", "auto")
    golds = tuple(gold_of(answer, wanted) for answer in answers_of(reference))
    slot = params.get("slot", "auto")
    answer = slots.find(text, slot, lambda found: _fits(found, golds, params))
    if answer is None:
        return Finding(Outcome.FORMAT_ERROR, "no_answer", "the answer slot is missing or empty")
    return _Found(answer, tuple(peel(part) for part in answer.parts), golds)


def _fits(answer: slots.Answer, golds: Sequence[Gold], params: Mapping[str, Any]) -> bool:
    """Whether a slot's text can be of the gold's kind: not prose, and for a number gold not without any number."""
    text = peel(answer.text)
    if any(gold.words for gold in golds):
        return bool(text)
    if text.lower() in EMPTY_WORDS or text.lower() in ALL_WORDS:
        return True
    if quantity.is_number(text[: quantity.LONGEST], params.get("locale", "auto")):
        return True
    words = [word for word in _WORDS.findall(text[:4_000]) if word.lower() not in _KNOWN_WORDS]
    if len(words) >= _PROSE:
        return False
    numeric = all(gold.shape.kind == "expression" and is_number(gold.shape.nodes[-1]) for gold in golds)
    return bool(_MATHEMATICAL.search(text[:4_000])) if numeric else bool(text)


def _quick_code(gold: Gold, peeled: Sequence[str], params: Mapping[str, Any]) -> str | None:
    """The code where microseconds are enough; None when the other tiers have to say."""
    joined = ", ".join(peeled)
    if gold.words:
        return "ok" if normal(joined) == gold.normal else "wrong"
    if len(joined) < quantity.LONGEST and _squeezed(joined) == gold.squeezed:
        return "ok"
    if gold.number is None or len(peeled) != 1:
        return None
    try:
        return _number_code(gold, peeled[0], params)
    except TooComplex:
        return "too_complex"


def _number_code(gold: Gold, text: str, params: Mapping[str, Any]) -> str | None:
    given = parse(text, params.get("locale", "auto"))
    if given is None or gold.number is None:
        return None
    if given.unit and not quantity.unit_fits(given, gold.number):
        return None
    code = quantity.compare(gold.number, given, params)
    form = params.get("form")
    if (code == "not_evaluated" and form == "any") or (form == "simplified" and not text.lstrip("+-").isdigit()):
        return None
    return code


@lru_cache(maxsize=8192)
def _squeezed(text: str) -> str:
    return tidy(text).replace(" ", "")


def _full_code(gold: Gold, peeled: Sequence[str], params: Mapping[str, Any]) -> tuple[str, str]:
    """The code and tier of the second parser, and of math-verify where that one cannot say."""
    joined = ", ".join(peeled)
    if gold.over_limit:
        return "wrong", "text"
    rules = comparison.Rules(params, gold.text)
    wanted = "list" if gold.shape.kind in ("set", "tuple") else "auto"
    try:
        given = read(joined, wanted)
        if len(peeled) > 1 and given.kind != "set":
            return "hedged", "parser"
        code = comparison.compare(gold.shape, given, rules)
    except (TooComplex, RecursionError, OverflowError):
        return "too_complex", "parser"
    except Malformed:
        return "wrong", "parser"
    return (code, "parser") if code != comparison.UNKNOWN else (_symbolic_code(gold, joined), "math_verify")


def _symbolic_code(gold: Gold, joined: str) -> str:
    try:
        return "ok" if symbolic.equal(gold.text, joined) else "wrong"
    except TooComplex:
        return "too_complex"


def _finding(code: str, found: _Found, tier: str) -> Finding:
    outcome = Outcome.VERIFIED if code == "ok" else Outcome.FAILED
    detail = "" if code == "ok" else quantity.MEANING.get(code, "over a limit")
    return Finding(outcome, code, detail, found.answer.text, _squeezed(", ".join(found.peeled)[:4000]), tier)
