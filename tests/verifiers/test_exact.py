"""Text answers."""

import pytest

from tests.verifiers.judging import judge
from verifiers.contract import Outcome
from verifiers.engine import Engine
from verifiers.words import dated, digits_of

RIGHT = [
    ("rome", ["Rome"], {}),
    ("  Rome. ", ["Rome"], {}),
    ('"Rome"', ["Rome"], {}),
    ("**Rome**", ["Rome"], {}),
    ("Ｒｏｍｅ", ["Rome"], {}),
    ("new   york", ["New York"], {}),
    ("Answer: Rome", ["Rome"], {"slot": "answer_line"}),
    ("NYC", ["New York", "NYC"], {}),
    ("Rome", ["Rome"], {"case": "keep"}),
    ("seven", ["7"], {"number_words": True}),
    ("twenty-one", ["21"], {"number_words": True}),
    ("one hundred and five", ["105"], {"number_words": True}),
    ("July 4, 1776", ["4 July 1776"], {"dates": True}),
    ("1776-07-04", ["4th of July, 1776"], {"dates": True}),
    ("The capital is Rome.", ["Rome"], {"match": "contains"}),
    ("It is New York, of course", ["new york"], {"match": "contains"}),
    ("the verdict: not guilty", ["not guilty"], {"match": "contains"}),
]

WRONG = [
    ("Romee", ["Rome"], {}),
    ("Rome", ["rome"], {"case": "keep"}),
    ("13", ["12"], {}),
    ("seven", ["7"], {}),
    ("03/04/2020", ["4 March 2020"], {"dates": True}),
    ("Rome and Paris", ["Rome"], {}),
    ("It is Rome", ["Rome"], {}),
    ("Romeo", ["Rome"], {"match": "contains"}),
    ("117", ["17"], {"match": "contains"}),
    ("It is Paris or London or Rome", ["Rome"], {"match": "contains"}),
    ("It is not Rome", ["Rome"], {"match": "contains"}),
    ("Rome " + "word " * 40, ["Rome"], {"match": "contains"}),
    ("Rome it is, yes", ["Rome"], {"match": "contains", "max_words": 2}),
]


@pytest.mark.parametrize(("answer", "golds", "params"), RIGHT)
def test_right_texts_are_verified(engine: Engine, answer: str, golds: list[str], params: dict[str, object]) -> None:
    reference = {"answers": golds, "distractors": ["Paris", "London", "York"]}
    verdict = judge(engine, "exact", answer, reference, {"slot": "raw", **params})
    assert verdict.outcome is Outcome.VERIFIED, verdict


@pytest.mark.parametrize(("answer", "golds", "params"), WRONG)
def test_wrong_texts_fail(engine: Engine, answer: str, golds: list[str], params: dict[str, object]) -> None:
    reference = {"answers": golds, "distractors": ["Paris", "London", "York"]}
    verdict = judge(engine, "exact", answer, reference, {"slot": "raw", **params})
    assert (verdict.outcome, verdict.reward) == (Outcome.FAILED, 0.0), verdict


@pytest.mark.parametrize(
    "reference",
    [{}, {"answers": []}, {"answers": [" "]}, {"answer": ""}, {"answer": "..."}, {"answer": None}, {"answers": "Rome"},
     {"answer": "Rome", "distractors": ["rome"]}],
)  # fmt: skip
def test_a_gold_that_holds_nothing_is_a_bad_reference(engine: Engine, reference: dict[str, object]) -> None:
    for response in ("Rome", ""):
        verdict = judge(engine, "exact", response, reference, {"slot": "raw"})
        assert (verdict.outcome, verdict.reward, verdict.code) == (Outcome.VERIFIER_ERROR, None, "bad_reference")


@pytest.mark.parametrize(
    ("text", "day"),
    [("4 July 1776", "1776-07-04"), ("July 4th, 1776", "1776-07-04"), ("the 4th of july 1776", "1776-07-04"),
     ("1776-7-4", "1776-07-04"), ("25/12/2020", "2020-12-25"), ("12/25/2020", "2020-12-25"), ("03/04/2020", None),
     ("04/04/2020", "2020-04-04"), ("Saturday, July 4, 1776", "1776-07-04"),
     ("July 1776", None), ("13 Foo 2020", None)],
)  # fmt: skip
def test_days_are_read_when_they_can_mean_one_day_only(text: str, day: str | None) -> None:
    assert dated(text) == day


@pytest.mark.parametrize(
    ("text", "digits"),
    [("seven", "7"), ("twenty one", "21"), ("twenty-one apples", "21 apples"), ("two hundred", "200"),
     ("three thousand four hundred and five", "3405"), ("one million", "1000000"), ("one two", "1 2"), ("and", "and"),
     ("a and b", "a and b"), ("well-known twenty", "well-known 20")],
)  # fmt: skip
def test_number_words_become_digits(text: str, digits: str) -> None:
    assert digits_of(text) == digits
