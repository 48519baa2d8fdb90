"""The rules for numbers and structures, a row each: gold, answer, params; and answers that attack the reader."""

import pytest

from tests.verifiers.judging import judge
from verifiers.contract import Outcome
from verifiers.engine import Engine
from verifiers.pool import STARVED_DEADLINE_S

RIGHT = [
    # numbers
    ("1/2", "\\dfrac{1}{2}", {}),
    ("1/2", "0.5", {}),
    ("\\frac12", ".5", {}),
    ("1000000", "10^6", {}),
    ("1000", "1000.0", {}),
    ("0.00012", "1.2 \\times 10^{-4}", {}),
    ("0.00012", "1.2e-4", {}),
    ("3\\cdot 10^8", "300000000", {}),
    ("12345", "１２３４５", {}),
    ("-3", "\u22123", {}),
    ("5", "+5", {}),
    ("7", "007", {}),
    ("2.5", "2½", {}),
    ("-7/4", "-1\\frac{3}{4}", {}),
    ("60\\%", "60", {"percent": "face"}),
    ("1/3", "0.\\overline{3}", {}),
    ("0.1\\overline{6}", "1/6", {}),
    ("9", "12_7", {}),
    ("255", "FF_{16}", {}),
    ("1000000", "1{,}000{,}000", {}),
    ("1000000", "1\\,000\\,000", {}),
    ("2500000", "2.5 million", {}),
    ("x = 5", "5", {}),
    ("5", "x = 5", {}),
    ("5", "x=2+3=5", {}),
    ("120", "5!=120", {}),
    ("2^{100}", "1267650600228229401496703205376", {}),
    ("\\frac{1}{2004!}", "\\frac{1}{2004!}", {}),
    ("2", "\\sqrt{4}", {}),
    ("3", "\\log_2 8", {}),
    ("-2", "\\sqrt[3]{-8}", {}),
    ("9.8", "9.79", {"abs_tol": 0.05}),
    ("3.14159", "\\pi", {"rel_tol": 0.001}),
    ("\\pi", "3.1416", {"abs_tol": 0.001}),
    # units
    ("6", "6 cm", {}),
    ("6", "6\\text{ cm}^2", {}),
    ("6", "6 \\text{ apples}", {}),
    ("6 m", "600 cm", {}),
    ("6 m", "6", {}),
    ("72 \\text{ km/h}", "20 \\text{ m/s}", {}),
    ("45^\\circ", "45", {}),
    ("45^\\circ", "45^{\\circ}", {}),
    ("45^\\circ", "\\frac{\\pi}{4}", {"units": "convert"}),
    ("\\frac{\\pi}{4}", "45^\\circ", {}),
    ("2\\sqrt{3}", "2\\sqrt{3} \\text{ cm}", {}),
    ("2\\sqrt{3} cm", "2\\sqrt{3}", {}),
    ("\\$18", "18", {}),
    ("18", "\\$18.00", {}),
    ("6 kg", "7 kg", {"units": "ignore", "abs_tol": 1}),
    # expressions
    ("x^2-1", "(x-1)(x+1)", {}),
    ("(x+1)^3", "x^3+3x^2+3x+1", {}),
    ("\\frac{x}{2}", "0.5x", {}),
    ("2\\sin x\\cos x", "\\sin 2x", {}),
    ("\\sin^2 x", "1-\\cos^2 x", {}),
    ("\\arctan x", "\\tan^{-1} x", {}),
    ("e^x", "\\exp(x)", {}),
    ("\\sqrt{2}+\\sqrt{3}", "\\sqrt{5+2\\sqrt{6}}", {}),
    ("\\frac{1}{\\sqrt{2}}", "\\frac{\\sqrt{2}}{2}", {}),
    ("4\\sqrt{2}", "4\\sqrt(2)", {}),
    ("\\ln 8", "3\\ln 2", {}),
    ("2^{n+1}", "2\\cdot 2^n", {}),
    ("\\binom{n}{2}", "\\frac{n(n-1)}{2}", {}),
    ("C_n^k", "\\binom{n}{k}", {}),
    ("a+bi", "bi+a", {}),
    ("3+4i", "4i+3", {}),
    ("1+i", "\\sqrt{2}e^{i\\pi/4}", {}),
    ("\\frac{1+\\sqrt{5}}{2}", "\\frac{\\sqrt5+1}{2}", {}),
    ("x_1+x_2", "x_2+x_1", {}),
    ("\\alpha\\beta", "\\beta\\alpha", {}),
    ("|x-1|", "\\lvert 1-x\\rvert", {}),
    ("x^2+C", "x^2+c", {"free_constants": ["C"]}),
    ("\\frac{n(n+1)}{2}", "n(n+1)/2", {}),
    ("f(x)=x^2", "x^2", {}),
    ("x^2", "f(x)=x^2", {}),
    ("-\\frac{1}{2}", "\\frac{-1}{2}", {}),
    ("5050", "\\sum_{k=1}^{100} k", {"form": "any"}),
    ("\\sqrt[3]{2}", "2^{1/3}", {}),
    ("\\lfloor x\\rfloor", "\\lfloor x \\rfloor", {}),
    # equations
    ("y=2x+3", "2x-y+3=0", {}),
    ("x^2+y^2=25", "25=x^2+y^2", {}),
    ("x^2+y^2=25", "2x^2+2y^2=50", {}),
    ("x=5", "x = 5", {}),
    ("m=5t", "m=5t", {}),
    # sets, lists, tuples
    ("1,2", "2, 1", {}),
    ("1,2", "2 and 1", {}),
    ("1,2", "\\{1,2\\}", {}),
    ("\\{1,2\\}", "\\{2,1,1\\}", {}),
    ("1,2", "x=1 or x=2", {}),
    ("x=1 \\text{ or } x=2", "1, 2", {}),
    ("1, 2, 3", "1, 2, and 3", {}),
    ("\\pm 2", "-2, 2", {}),
    ("2,-2", "\\pm 2", {}),
    ("1\\pm\\sqrt{2}", "1+\\sqrt2, 1-\\sqrt2", {}),
    ("x=\\pm 2", "x=2, x=-2", {}),
    ("(1,2)", "( 1 , 2 )", {}),
    ("(\\frac12, 3)", "(0.5, 3)", {}),
    ("(3,4)", "(x,y)=(3,4)", {}),
    ("(1,2),(3,4)", "(3,4),(1,2)", {}),
    ("u=4, v=9", "v=9, u=4", {}),
    ("(1, 2, 3)", "(1,2,3)", {}),
    ("\\frac{1}{2}, \\frac{1}{3}", "1/3, 0.5", {}),
    # regions
    ("x<1", "(-\\infty,1)", {}),
    ("(-\\infty,1]", "x \\le 1", {}),
    ("1<x\\le 2", "(1,2]", {}),
    ("1<x<3", "x>1 and x<3", {}),
    ("(1,3)", "1<x<3", {"answer_type": "interval"}),
    ("x\\in[1,2]", "1\\leq x\\leq 2", {}),
    ("(-\\infty,1)\\cup(2,\\infty)", "x<1 or x>2", {}),
    ("(0,1)\\cup(1,2)", "(1,2)\\cup(0,1)", {}),
    ("x\\ne 2", "(-\\infty,2)\\cup(2,\\infty)", {}),
    ("\\mathbb{R}", "(-\\infty,\\infty)", {}),
    ("(-\\infty,\\infty)", "\\text{all real numbers}", {}),
    ("\\emptyset", "\\text{no solution}", {}),
    ("\\{\\}", "\\varnothing", {}),
    ("[\\sqrt{2},\\infty)", "x\\ge\\sqrt2", {}),
    ("[1,2]", "[1,2]", {}),
    ("x>5", "5<x", {}),
    # matrices
    ("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "\\begin{bmatrix}1 & 2 \\\\ 3 & 4\\end{bmatrix}", {}),
    ("\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\begin{array}{c}1\\\\2\\end{array}", {}),
    ("\\begin{pmatrix}\\frac12&0\\\\0&1\\end{pmatrix}", "\\begin{pmatrix}0.5&0\\\\0&1\\end{pmatrix}", {}),
    # times and words
    ("5:30", "05:30", {"answer_type": "time"}),
    ("5:30 PM", "17:30", {"answer_type": "time"}),
    ("Tuesday", "tuesday", {}),
    ("\\text{even}", "even", {}),
    ("ABC", "ABC", {"answer_type": "text"}),
    ("silent", "\\text{Silent}.", {}),
    ("O(\\log n)", "O(\\log n)", {}),
    # what only math-verify reads
    ("\\int_0^1 x dx", "\\int_0^1 x dx", {}),
    ("1, 3, \\ldots, 2n-1", "1,3,\\ldots,2n-1", {}),
]  # fmt: skip

WRONG = [
    ("10000", "10001", {}),
    ("0.3333", "1/3", {}),
    ("1/3", "0.3333333333333333", {}),
    ("0.4", "40", {}),
    ("40\\%", "40", {}),
    ("40\\%", "4000", {}),
    ("1.5", "2 1/2", {}),
    ("5/2", "1 3/2", {}),
    ("23", "2,3", {}),
    ("1.234", "1,234", {}),
    ("12_7", "12_8", {}),
    ("x_1", "x_2", {}),
    ("1024", "2^{10}", {}),
    ("7", "3+4", {}),
    ("12", "3 \\cdot 4", {}),
    ("120", "5!", {}),
    ("0", "x-x", {}),
    ("1", "\\frac{x}{x}", {}),
    ("5050", "\\sum_{k=1}^{100}k", {}),
    ("1/3", "\\int_0^1 x^2 dx", {}),
    ("8", "7=8", {}),
    ("8", "x=7=8", {}),
    ("x=5", "3x+7=22", {}),
    ("x=5", "y=5", {}),
    ("5", "x=3 or x=5", {}),
    ("5", "3 or 5", {}),
    ("5", "3, 5", {}),
    ("5", "4-6", {}),
    ("5", "\\pm 5", {}),
    ("5", "[4,6]", {}),
    ("5", "5x", {}),
    ("5", "5t", {}),
    ("m=5t", "m=5", {}),
    ("m=5t", "m=10", {}),
    ("2x", "2", {}),
    ("x", "\\sqrt{x^2}", {}),
    ("2\\ln x", "\\ln(x^2)", {}),
    ("x^2+1", "x^2-1", {}),
    ("\\tan^{-1}x", "\\frac{1}{\\tan x}", {}),
    ("4", "4\\sqrt(2)", {}),
    ("x^2+C", "x^2+K", {}),
    ("x^2+C", "x^3+K", {"free_constants": ["C"]}),
    ("y=2x+3", "y=2x+4", {}),
    ("\\frac{x^2}{4}+\\frac{y^2}{3}=1", "\\frac{x^2}{16}+\\frac{y^2}{12}=1", {}),
    ("1,2,3", "1,2", {}),
    ("1,2", "1,2,3", {}),
    ("1,2", "1", {}),
    ("(1,2)", "(2,1)", {}),
    ("(1,2)", "[1,2]", {}),
    ("(1,2]", "(1,2)", {}),
    ("[1,2]", "(1,2)", {}),
    ("u=4, v=9", "u=9, v=4", {}),
    ("u=4, v=9", "u=4", {}),
    ("x<1", "x>1", {}),
    ("x<1", "x\\le 1", {}),
    ("(-\\infty,1)", "x<1", {"relations": "strict"}),
    ("(-\\infty,1)\\cup(2,\\infty)", "x<1", {}),
    ("\\mathbb{R}", "\\emptyset", {}),
    ("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "\\begin{pmatrix}1&3\\\\2&4\\end{pmatrix}", {}),
    ("\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\begin{pmatrix}1&2\\end{pmatrix}", {}),
    ("5:30", "10:60", {"answer_type": "time"}),
    ("5:30", "11:00", {"answer_type": "time"}),
    ("listen", "silent", {}),
    ("ABC", "CBA", {}),
    ("ab", "ba", {}),
    ("O(n)", "\\Theta(n)", {}),
    ("6 m", "6 cm", {}),
    ("6 m", "6 kg", {}),
    ("6 m", "6", {"units": "required"}),
    ("45^\\circ", "\\frac{\\pi}{4}", {}),
    ("5", "5 squared", {}),
    ("5", "5 or 6", {}),
    ("\\frac12", "\\frac{2}{4}", {"form": "simplified"}),
    ("7", "9^{9^{9^9}}", {}),
    ("7", "99999999!", {}),
    ("7", "\\binom{10^9}{5\\cdot 10^8}", {}),
    ("7", "\\sum_{k=1}^{10^9} k", {}),
    ("7", "1e99999999", {}),
    ("7", "__import__('os').getpid()", {}),
    ("1, 2, \\ldots, n", "1, 3, \\ldots, 2n-1", {}),
    ("0.00000012", "0.00000049", {}),
    ("\\frac{1}{2^{99}}", "\\frac{1}{2^{98}}", {}),
    ("e^{-1000}", "e^{-1001}", {}),
]  # fmt: skip

BAD_REFERENCES = [
    ("\\frac{63}{", {}),
    ("", {}),
    ("  ", {}),
    ("\\frac{1}", {}),
    ("x+", {}),
    ("(1,2", {}),
    ("x^2", {"answer_type": "number"}),
    ("5", {"answer_type": "matrix"}),
    ("5", {"units": "required"}),
    ("half past", {"answer_type": "time"}),
    ("2.5", {"integer": True}),
]


@pytest.mark.parametrize(("gold", "answer", "params"), RIGHT)
def test_right_answers_are_verified(engine: Engine, gold: str, answer: str, params: dict[str, object]) -> None:
    verdict = judge(engine, "math", f"The final answer is \\boxed{{{answer}}}.", {"answer": gold}, params)
    assert (verdict.outcome, verdict.reward) == (Outcome.VERIFIED, 1.0), verdict


@pytest.mark.parametrize(("gold", "answer", "params"), WRONG)
def test_wrong_answers_fail(engine: Engine, gold: str, answer: str, params: dict[str, object]) -> None:
    verdict = judge(engine, "math", f"The final answer is \\boxed{{{answer}}}.", {"answer": gold}, params)
    assert (verdict.outcome, verdict.reward) == (Outcome.FAILED, 0.0), verdict


@pytest.mark.parametrize(("gold", "params"), BAD_REFERENCES)
def test_a_gold_that_cannot_be_judged_by_is_a_bad_reference(
    engine: Engine, gold: str, params: dict[str, object]
) -> None:
    verdict = judge(engine, "math", "\\boxed{5}", {"answer": gold}, params)
    assert (verdict.outcome, verdict.reward, verdict.code) == (Outcome.VERIFIER_ERROR, None, "bad_reference"), verdict


@pytest.mark.parametrize("gold", [gold for gold, _, _ in RIGHT if "%" not in gold])
def test_every_gold_answers_itself(engine: Engine, gold: str) -> None:
    verdict = judge(engine, "math", f"\\boxed{{{gold}}}", {"answer": gold}, {})
    assert verdict.outcome is Outcome.VERIFIED, verdict


@pytest.mark.parametrize(
    "answer",
    ["9^{9^{9^9}}", "(" * 40 + "9" + ")^{9^9}" * 40, "\\sqrt{" * 60 + "2" + "}" * 60,
     "sin " * 300 + "x", "1/" * 500 + "1",
     "x^" * 390 + "x", "+".join(["9^9999"] * 60), "\\prod_{k=1}^{1000}k^{k}", "\\boxed{" * 3000, "1," * 900 + "1",
     "\\frac" * 900, "{" * 1900, "(" * 1900 + ")" * 1900, "\\cos(9^{4000})" * 20, "(x+y)^{99}" * 20],
)  # fmt: skip
@pytest.mark.parametrize("gold", ["7", "x^2+1", "1,2", "(1,2]", "\\int f"])
def test_hostile_answers_are_judged_in_time(engine: Engine, answer: str, gold: str) -> None:
    verdict = judge(engine, "math", answer, {"answer": gold}, {"slot": "raw"})
    assert verdict.outcome in (Outcome.FAILED, Outcome.FORMAT_ERROR)
    assert verdict.cost.verify_ms < STARVED_DEADLINE_S * 1e3 + 500  # one second where the host is not overloaded
