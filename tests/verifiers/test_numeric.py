"""The rules for one number: spelling, tolerance, percent, units, hedges."""

import pytest

from tests.verifiers.judging import judge
from verifiers.contract import Outcome
from verifiers.engine import Engine

RIGHT = [
    ("1234567", "1,234,567", {}),
    ("1234567", "1{,}234{,}567", {}),
    ("1234567", "1\\,234\\,567", {}),
    ("3000", "3 000", {}),
    ("3000", "3~000", {}),
    ("1000", "€1.000,00", {}),
    ("1234.5", "1,234.50", {}),
    ("1234567", "1.234.567", {}),
    ("3,14", "3,14", {"locale": "eu"}),
    (3.14, "3,14", {"locale": "eu"}),
    ("1234", "1.234", {"locale": "eu"}),
    ("1234", "1,234", {"locale": "en"}),
    ("18", "\\$18", {}),
    ("18", "$18.00", {}),
    ("-5", "-$5", {}),
    ("-7", "\u22127", {}),
    ("42", "４２", {}),
    ("42", "+42.", {}),
    ("42", "0042", {}),
    ("0.5", "1/2", {}),
    ("2.5", "2 1/2", {}),
    ("-2.5", "-2\\frac12", {}),
    ("0.0003", "3e-4", {}),
    ("0.0003", "3 \\times 10^{-4}", {}),
    ("3000", "3 \\cdot 10^3", {}),
    ("100", "10²", {}),
    ("0.3", "0.30000000000000004", {}),
    ("40%", "0.4", {}),
    ("0.4", "40\\%", {}),
    ("40%", "40", {"percent": "face"}),
    ("40", "40%", {"percent": "face"}),
    ("9.8", "9.84", {"abs_tol": 0.05}),
    ("100", "101", {"rel_tol": 0.01}),
    ("12", "12\\,\\mathrm{cm}", {}),
    ("12 cm", "0.12 m", {}),
    ("12 cm", "120mm", {}),
    ("12 cm", "12", {}),
    ("12 cm", "12 cm", {"units": "required"}),
    ("12 cm", "0.12", {"units": "convert"}),
    ("12 cm", "12 kg", {"units": "ignore"}),
    ("20 degC", "68 degF", {}),
    ("5 m/s", "18 km/h", {}),
    ("9.81 m/s^2", "981 cm/s^2", {}),
    ("3 apples", "3 apple", {}),
    ("x = 7", "7", {}),
    ("7", "n = 7", {}),
    ("9", "12_7", {}),
    ("7", "7, 7", {"slot": "last_number"}),
    ("10000000000000000000000000000001", "1e31", {"rel_tol": 0.1}),
    ("5", "5.0", {"integer": True}),
    ("7", "\\text{7}", {}),
    (7, "7", {}),
    (0.1, "0.1", {}),
]

WRONG = [
    ("10000", "10001", {}),
    ("1234567", "1234568", {}),
    ("0.00000012", "0.00000049", {}),
    ("1267650600228229401496703205376", "1267650600228229401496703205377", {}),
    ("23", "2,3", {}),
    ("1234", "12,34", {}),
    ("1.5", "2 1/2", {}),
    ("2.5", "1 3/2", {}),
    ("1/3", "0.333", {}),
    ("0.333", "1/3", {}),
    ("0.4", "40", {}),
    ("40", "0.4", {}),
    ("9.8", "9.74", {"abs_tol": 0.05}),
    ("0", "0.0001", {"rel_tol": 0.01}),
    ("3", "3.0000000000000004", {}),
    ("5", "5 or 6", {}),
    ("5", "3, 5", {}),
    ("5", "4-6", {}),
    ("5", "from 5 to 6", {}),
    ("5", "\\pm 5", {}),
    ("5", "5 million", {}),
    ("12 cm", "12 m", {}),
    ("12 cm", "12 kg", {}),
    ("12 cm", "12", {"units": "required"}),
    ("7 m", "9**9**9 m", {}),
    ("7", "1" * 5000, {}),
    ("7", "1e10000000", {}),
    ("7", "10^{10000000}", {}),
    ("7", "abc", {}),
    ("7", "NaN", {}),
    ("7", "inf", {}),
    ("7", "7=8", {}),
    ("8", "7=8", {}),
    ("1024", "2^{10}", {}),
    ("5", "5.5", {"integer": True, "abs_tol": 1}),
]


@pytest.mark.parametrize(("gold", "answer", "params"), RIGHT)
def test_right_numbers_are_verified(engine: Engine, gold: object, answer: str, params: dict[str, object]) -> None:
    verdict = judge(engine, "numeric", answer, {"answer": gold}, {"slot": "raw", **params})
    assert (verdict.outcome, verdict.reward) == (Outcome.VERIFIED, 1.0), verdict


@pytest.mark.parametrize(("gold", "answer", "params"), WRONG)
def test_wrong_numbers_fail(engine: Engine, gold: str, answer: str, params: dict[str, object]) -> None:
    verdict = judge(engine, "numeric", answer, {"answer": gold}, {"slot": "raw", **params})
    assert (verdict.outcome, verdict.reward) == (Outcome.FAILED, 0.0), verdict


@pytest.mark.parametrize(
    ("reference", "params", "code"),
    [
        ({}, {}, "bad_reference"),
        ({"answer": ""}, {}, "bad_reference"),
        ({"answer": None}, {}, "bad_reference"),
        ({"answer": True}, {}, "bad_reference"),
        ({"answer": "seven"}, {}, "bad_reference"),
        ({"answer": "1, 2"}, {}, "bad_reference"),
        ({"answer": "7", "extra": 1}, {}, "bad_reference"),
        ({"answer": "2.5"}, {"integer": True}, "bad_reference"),
        ({"answer": "7"}, {"units": "required"}, "bad_reference"),
        ({"answer": "7"}, {"tolerance": 1}, "bad_params"),
        ({"answer": "7"}, {"abs_tol": -1}, "bad_params"),
        ({"answer": "7"}, {"abs_tol": float("nan")}, "bad_params"),
        ({"answer": "7"}, {"slot": "nowhere"}, "bad_params"),
        ({"answer": "7"}, {"rewards": {"failed": 1.0}}, "bad_params"),
        ({"answer": "7"}, {"rewards": {"verified": 2}}, "bad_params"),
        ({"answer": "7"}, {"rewards": {"format_error": 0.5}}, "bad_params"),
    ],
)
def test_a_bad_task_is_our_fault_whatever_the_answer(
    engine: Engine, reference: dict[str, object], params: dict[str, object], code: str
) -> None:
    for response in ("7", "", None):
        verdict = judge(engine, "numeric", response, reference, params)
        assert (verdict.outcome, verdict.reward, verdict.code) == (Outcome.VERIFIER_ERROR, None, code), verdict


def test_a_bad_param_is_named_by_its_pointer(engine: Engine) -> None:
    verdict = judge(engine, "numeric", "7", {"answer": "7"}, {"abs_tol": -1})
    assert verdict.detail.startswith("/verifier/params/abs_tol ")


def test_rewards_can_be_overridden(engine: Engine) -> None:
    rewards = {"verified": 0.5, "failed": -0.25, "format_error": -0.5}
    found = [judge(engine, "numeric", text, {"answer": "7"}, {"rewards": rewards}).reward for text in ("7", "8", "")]
    assert found == [0.5, -0.25, -0.5]
