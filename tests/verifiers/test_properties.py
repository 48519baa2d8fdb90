"""Laws of every text verifier: a gold answers itself, dress changes nothing, a wrong extra never pays, inputs stay."""

import copy
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.verifiers.judging import judge
from verifiers.contract import Outcome
from verifiers.engine import Engine
from verifiers.numbers import TooComplex, parse
from verifiers.peel import peel
from verifiers.registry import VERIFIERS

MODEST = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
INTEGERS = st.integers(-(10**40), 10**40)
FRACTIONS = st.fractions(max_denominator=10**6)
DRESSES = (
    "{}", " {} ", "${}$", "\\({}\\)", "\\boxed{{{}}}", "Answer: {}", "**Final answer:** {}", "#### {}",
    "<answer>{}</answer>", "The answer is {}.", "<think>maybe 3</think>{}",
    "\\boxed{{\\text{{{}}}}}", "\\boxed{{\\left({}\\right)}}",
    "**{}**",     "Long story, told at length.\n" * 50 + "\\boxed{{{}}}",
)  # fmt: skip
EXPRESSIONS = st.recursive(
    st.sampled_from(["x", "y", "2", "7", "\\pi", "x_1", "\\frac{1}{3}"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]}+{pair[1]})"),
        st.tuples(inner, inner).map(lambda pair: f"{pair[0]} \\cdot {pair[1]}"),
        inner.map(lambda body: f"\\sqrt{{{body}}}"),
        inner.map(lambda body: f"\\sin({body})"),
        inner.map(lambda body: f"({body})^2"),
    ),
    max_leaves=6,
)


def spellings(value: int) -> list[str]:
    """Ways to write one integer."""
    text = str(value)
    found = [
        text,
        f"{value}.0",
        f"{value}.",
        text.replace("-", "\u2212"),
        f"{value:,}",
        f"{value:,}".replace(",", "{,}"),
    ]
    found.append(text.translate(str.maketrans("0123456789", "０１２３４５６７８９")))
    return [*found, f"+{text}"] if value >= 0 else found


@MODEST
@given(value=INTEGERS, dress=st.sampled_from(DRESSES), data=st.data())
@pytest.mark.parametrize("verifier", ["numeric", "math"])
def test_dress_and_spelling_change_nothing(
    engine: Engine, verifier: str, value: int, dress: str, data: st.DataObject
) -> None:
    spelled = data.draw(st.sampled_from(spellings(value)))
    gold = data.draw(st.sampled_from(spellings(value)))
    assume("," not in spelled or "left(" not in dress)  # in brackets a comma separates
    verdict = judge(engine, verifier, dress.format(spelled), {"answer": gold}, {})
    assert verdict.outcome is Outcome.VERIFIED, (verdict, dress, spelled)


@MODEST
@given(value=INTEGERS, off=st.sampled_from(["plus", "minus", "sign", "ten"]), dress=st.sampled_from(DRESSES))
@pytest.mark.parametrize("verifier", ["numeric", "math"])
def test_near_misses_never_pay(engine: Engine, verifier: str, value: int, off: str, dress: str) -> None:
    wrong = {"plus": value + 1, "minus": value - 1, "sign": -value or 1, "ten": value * 10 or 10}[off]
    verdict = judge(engine, verifier, dress.format(wrong), {"answer": str(value)}, {})
    assert verdict.outcome is Outcome.FAILED, verdict


@MODEST
@given(value=INTEGERS, other=INTEGERS, join=st.sampled_from([" or ", ", ", " and ", "; ", " to "]))
@pytest.mark.parametrize("verifier", ["numeric", "math"])
def test_a_hedge_never_pays(engine: Engine, verifier: str, value: int, other: int, join: str) -> None:
    other = other if other != value else value + 1
    for text in (f"{value}{join}{other}", f"{other}{join}{value}"):
        verdict = judge(engine, verifier, f"\\boxed{{{text}}}", {"answer": str(value)}, {})
        assert verdict.outcome is Outcome.FAILED, verdict


@MODEST
@given(value=FRACTIONS)
@pytest.mark.parametrize("verifier", ["numeric", "math"])
def test_fractions_are_exact(engine: Engine, verifier: str, value: Fraction) -> None:
    gold = f"\\frac{{{value.numerator}}}{{{value.denominator}}}"
    nearly = value + Fraction(1, 10**12)
    right = judge(engine, verifier, f"{2 * value.numerator}/{2 * value.denominator}", {"answer": gold}, {"slot": "raw"})
    wrong = judge(engine, verifier, f"{nearly.numerator}/{nearly.denominator}", {"answer": gold}, {"slot": "raw"})
    assert (right.outcome, wrong.outcome) == (Outcome.VERIFIED, Outcome.FAILED)


@MODEST
@given(text=EXPRESSIONS)
def test_an_expression_answers_itself_and_not_its_neighbour(engine: Engine, text: str) -> None:
    same = judge(engine, "math", f"\\boxed{{0+{text}}}", {"answer": text}, {"form": "any"})
    other = judge(engine, "math", f"\\boxed{{{text}+1}}", {"answer": text}, {"form": "any"})
    assert (same.outcome, other.outcome) == (Outcome.VERIFIED, Outcome.FAILED), text


@MODEST
@given(items=st.lists(st.integers(-99, 99), min_size=2, max_size=6, unique=True), extra=st.integers(100, 199))
def test_sets_have_no_order_and_extras_never_pay(engine: Engine, items: list[int], extra: int) -> None:
    gold = {"answer": ", ".join(map(str, items))}
    turned = ", ".join(map(str, reversed(items)))
    found = [
        judge(engine, "math", f"\\boxed{{{text}}}", gold, {}).outcome
        for text in (turned, f"\\{{{turned}\\}}", f"{turned}, {extra}", ", ".join(map(str, items[1:])))
    ]
    assert found == [Outcome.VERIFIED, Outcome.VERIFIED, Outcome.FAILED, Outcome.FAILED]


@MODEST
@given(word=st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=12), dress=st.sampled_from(DRESSES[:11]))
def test_words_answer_themselves(engine: Engine, word: str, dress: str) -> None:
    verdict = judge(engine, "exact", dress.format(word), {"answer": word}, {})
    assert verdict.outcome is Outcome.VERIFIED, (verdict, word)


@MODEST
@given(text=st.text(max_size=300), verifier=st.sampled_from(["exact", "numeric", "math"]))
def test_any_text_gets_the_same_valid_verdict_twice(engine: Engine, text: str, verifier: str) -> None:
    reference: dict[str, Any] = {"answer": "17"}
    params: dict[str, Any] = {}
    before = copy.deepcopy((reference, params))
    first, second = (judge(engine, verifier, text, reference, params) for _ in range(2))
    assert first.outcome.valid
    assert first.reward is not None
    assert (first.outcome, first.code, first.extracted) == (second.outcome, second.code, second.extracted)
    assert (reference, params) == before


@MODEST
@given(
    text=st.text(st.sampled_from("0123456789.,-+^*/(){}[]\\ =<>!|xfracsqtboe$%&_'\"√π½²"), max_size=60),
    gold=st.sampled_from(["7", "x^2+1", "1,2", "(1,2]", "x<3", "x=5", "\\{1,2\\}", "(1,2)", "y=2x", "even"]),
)
def test_no_arrangement_of_signs_is_our_fault(engine: Engine, text: str, gold: str) -> None:
    verdict = judge(engine, "math", text, {"answer": gold}, {"slot": "raw"})
    assert verdict.outcome.valid, (verdict, text)


@MODEST
@given(text=st.text(st.sampled_from("0123456789., -+eE^/%$x*{}\\frac"), max_size=40))
def test_reading_a_number_never_raises_anything_else(text: str) -> None:
    try:
        number = parse(peel(text))
    except TooComplex:
        return
    assert number is None or isinstance(number.value, int | Fraction)


@MODEST
@given(text=st.text(max_size=200))
def test_peeling_is_idempotent(text: str) -> None:
    once = peel(text)
    assert peel(peel(once)) == peel(once)


def test_every_verifier_says_what_it_is() -> None:
    for name, verifier in VERIFIERS.items():
        assert verifier.name == name
        assert verifier.version
        assert verifier.cost in ("µs", "ms", "box", "model")
        assert verifier.params_schema["additionalProperties"] is False
        assert verifier.reference_schema["additionalProperties"] is False
