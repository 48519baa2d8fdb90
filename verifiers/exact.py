"""Text answers: equal to an accepted answer, or containing one at word boundaries.

Not covered: synonyms, spelling errors and translations; nothing is matched fuzzily, numbers least of all.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from verifiers import relation, slots
from verifiers.contract import Context, CostClass, Finding, Outcome, Relation, Response
from verifiers.peel import peel
from verifiers.response import visible
from verifiers.shapes import ANSWER, ANSWERS, answers_of, blank_answers, text_params
from verifiers.words import dated, denied, normal, spans, tokens

name, version = "exact", "1"
cost: CostClass = "µs"

params_schema: Mapping[str, Any] = text_params(
    match={"enum": ["equal", "contains"], "default": "equal"},
    case={"enum": ["fold", "keep"], "default": "fold"},
    number_words={"type": "boolean", "default": False},
    dates={"type": "boolean", "default": False},
    max_words={"type": "integer", "minimum": 1, "maximum": 100_000},
)
reference_schema: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "answer": ANSWER,
        "answers": ANSWERS,
        "distractors": {"type": "array", "items": ANSWER, "maxItems": 1000},
    },
    "anyOf": [{"required": ["answer"]}, {"required": ["answers"]}],
    "additionalProperties": False,
}


def lint(reference: Mapping[str, Any], params: Mapping[str, Any]) -> Sequence[str]:
    found = blank_answers(reference)
    accepted = {_normal(answer, params) for answer in answers_of(reference)}
    if not found and "" in accepted:
        found.append("an answer holds nothing but punctuation")
    refused = {_normal(str(text), params) for text in reference.get("distractors", ())}
    if accepted & refused:
        found.append("an answer is also a distractor")
    return found


def relate(a: Mapping[str, Any], b: Mapping[str, Any], params: Mapping[str, Any]) -> Relation:
    return relation.of_sets(
        {_normal(answer, params) for answer in answers_of(a)}, {_normal(answer, params) for answer in answers_of(b)}
    )


def verify(response: Response, reference: Mapping[str, Any], params: Mapping[str, Any], context: Context) -> Finding:
    text = visible(response, params)
    if isinstance(text, Finding):
        return text
    answer = slots.find(text, params.get("slot", "auto"), lambda found: bool(peel(found.text)))
    if answer is None:
        return Finding(Outcome.FORMAT_ERROR, "no_answer", "the answer slot is missing or empty")
    if params.get("match") == "contains":
        return _contains(answer.text, reference, params)
    return _equal(answer, reference, params)


def _equal(answer: slots.Answer, reference: Mapping[str, Any], params: Mapping[str, Any]) -> Finding:
    given = _normal(answer.text, params)
    for accepted in answers_of(reference):
        if given == _normal(accepted, params):
            return Finding(Outcome.VERIFIED, "ok", "", answer.text, given, "text")
    code = "hedged" if len(answer.parts) > 1 else "wrong"
    return Finding(Outcome.FAILED, code, "not an accepted answer", answer.text, given, "text")


def _contains(text: str, reference: Mapping[str, Any], params: Mapping[str, Any]) -> Finding:
    given = _normal(text, params)
    words = tokens(given)
    best: Finding | None = None
    for accepted in answers_of(reference):
        wanted = tokens(_normal(accepted, params))
        found = spans(words, wanted)
        if not found:
            continue
        finding = _judged(words, found, len(wanted), reference, params)
        result = Finding(finding[0], finding[1], finding[2], text, given, "text")
        if result.outcome is Outcome.VERIFIED:
            return result
        best = best or result
    return best or Finding(Outcome.FAILED, "wrong", "no accepted answer occurs", text, given, "text")


def _judged(
    words: Sequence[str],
    found: Sequence[range],
    length: int,
    reference: Mapping[str, Any],
    params: Mapping[str, Any],
) -> tuple[Outcome, str, str]:
    if len(words) > params.get("max_words", 30 + 2 * length):
        return Outcome.FAILED, "wrong", "more words than the answer may have"
    for distractor in reference.get("distractors", ()):
        for other in spans(words, tokens(_normal(str(distractor), params))):
            if not any(other.start >= span.start and other.stop <= span.stop for span in found):
                return Outcome.FAILED, "hedged", "another candidate occurs too"
    if all(denied(words, span) for span in found):
        return Outcome.FAILED, "wrong", "the answer is denied"
    return Outcome.VERIFIED, "ok", ""


def _normal(text: str, params: Mapping[str, Any]) -> str:
    shown = normal(peel(text), fold=params.get("case") != "keep", number_words=bool(params.get("number_words")))
    return (dated(shown) or shown) if params.get("dates") else shown
