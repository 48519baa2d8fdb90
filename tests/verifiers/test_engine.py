"""The engine, the composer and composites: whose fault it was, what is paid, what a fingerprint depends on."""

import itertools
from typing import Any

import pytest

from tests.verifiers.judging import judge
from verifiers import composer
from verifiers.contract import Case, Finding, Outcome
from verifiers.engine import Engine
from verifiers.fingerprint import fingerprint
from verifiers.registry import VERIFIERS, check_task

VALUE = {"name": "value", "verifier": "math", "role": "score"}
WORDS = {"name": "words", "verifier": "exact", "role": "score", "params": {"slot": "tag:w"}}
PARTS = {"value": {"answer": "42"}, "words": {"answer": "yes"}}


def whole(*parts: dict[str, Any], **params: Any) -> dict[str, Any]:
    return {"parts": list(parts), **params}


def test_an_unknown_verifier_is_our_fault(engine: Engine) -> None:
    verdict = judge(engine, "nonsense", "7", {"answer": "7"}, {})
    assert (verdict.outcome, verdict.reward) == (Outcome.VERIFIER_ERROR, None)
    assert check_task("nonsense", {}, {})[0].code == "unknown_verifier"


def test_one_bad_case_never_loses_others(engine: Engine) -> None:
    cases = [
        Case("numeric", {}, {"answer": "7"}, "7"),
        Case("nonsense", {}, {}, "7"),
        Case("numeric", {"slot": 5}, {"answer": "7"}, "7"),
        Case("numeric", {}, {"answer": object()}, "7"),
        Case("exact", {}, {"answer": "\ud800"}, "7"),
        Case("math", {}, {"answer": "x+1"}, "\\boxed{1+x}"),
        Case("numeric", {}, {"answer": "7"}, "8"),
    ]
    outcomes = [verdict.outcome for verdict in engine.verify_many(cases)]
    assert outcomes[0] is outcomes[5] is Outcome.VERIFIED
    assert outcomes[6] is Outcome.FAILED
    assert set(outcomes[1:5]) == {Outcome.VERIFIER_ERROR}


def test_code_without_a_sandbox_is_void(engine: Engine) -> None:
    boxed = [name for name, verifier in VERIFIERS.items() if verifier.cost == "box" and name != "composite"]
    references = {
        "code_stdio": {"tests": [{"stdin": "", "stdout": "1"}]},
        "code_asserts": {"asserts": ["assert f() == 1"]},
    }
    for name in boxed:
        params = {"entries": ["f"]} if name == "code_asserts" else {}
        verdict = judge(engine, name, "```python\nprint(1)\n```", references[name], params)
        assert (verdict.outcome, verdict.reward) == (Outcome.SANDBOX_ERROR, None), verdict


def test_extracted_is_whole_and_capped(engine: Engine) -> None:
    verdict = judge(engine, "exact", "word " * 2_000, {"answer": "x"}, {"slot": "raw"})
    assert verdict.extracted is not None
    assert len(verdict.extracted) == 4_000


def test_detail_and_extracted_never_hold_the_reference(engine: Engine) -> None:
    for verifier in ("exact", "numeric", "math"):
        verdict = judge(engine, verifier, "Answer: 1", {"answer": "987654321"}, {})
        assert "987654321" not in f"{verdict.detail}{verdict.extracted}{verdict.normal_form}"


@pytest.mark.parametrize("outcome", list(Outcome))
@pytest.mark.parametrize("process", [None, 0.0, 0.5, 0.999, 1.0, 7.0, -3.0])
def test_a_reward_exists_exactly_when_the_outcome_is_valid(outcome: Outcome, process: float | None) -> None:
    value = composer.reward(Finding(outcome, "x", process=process))
    assert (value is None) == (not outcome.valid)
    if outcome is Outcome.VERIFIED:
        assert value == 1.0
    elif outcome is Outcome.FORMAT_ERROR:
        assert value == -1.0
    elif value is not None:
        assert 0.0 <= value <= 0.99


def test_overridden_rewards_keep_their_order() -> None:
    assert not composer.faults({})
    assert not composer.faults({"failed": -0.5, "format_error": -0.5})
    assert composer.faults({"failed": 1.0})
    assert composer.faults({"verified": 0.0})
    assert composer.faults({"format_error": 0.1})
    process = composer.reward(Finding(Outcome.FAILED, "wrong", process=0.9), {"verified": 0.5})
    assert process is not None
    assert process < 0.5


@pytest.mark.parametrize(
    ("response", "params", "outcome", "reward"),
    [
        ("Answer: 42 <w>yes</w>", whole(VALUE, WORDS), Outcome.FAILED, 0.5),
        ("<w>yes</w>\nAnswer: 42", whole(VALUE, WORDS), Outcome.VERIFIED, 1.0),
        ("<w>no</w>\nAnswer: 42", whole({**VALUE, "weight": 3}, WORDS), Outcome.FAILED, 0.75),
        ("<w>no</w>\nAnswer: 42", whole({**VALUE, "weight": 3}, WORDS, pass_at=0.75), Outcome.VERIFIED, 1.0),
        ("<w>no</w>\nAnswer: 42", whole(VALUE, {**WORDS, "role": "gate"}), Outcome.FAILED, 0.0),
        ("<w>no</w>\nAnswer: 42", whole(VALUE, {**WORDS, "role": "format"}), Outcome.FORMAT_ERROR, -1.0),
        ("Answer: 42", whole(VALUE, {**WORDS, "role": "format"}), Outcome.FORMAT_ERROR, -1.0),
        ("<w>yes</w>\nAnswer: 41", whole(VALUE, {**WORDS, "role": "gate"}), Outcome.FAILED, 0.0),
        ("<w>yes</w>", whole({**VALUE, "weight": 0}, WORDS), Outcome.VERIFIED, 1.0),
    ],
)
def test_composites(engine: Engine, response: str, params: Any, outcome: Outcome, reward: float) -> None:
    verdict = judge(engine, "composite", response, {"parts": PARTS}, params)
    assert (verdict.outcome, verdict.reward) == (outcome, reward), verdict
    assert set(verdict.evidence["parts"]) <= {"value", "words"}


def test_a_void_part_voids_the_whole_unless_a_gate_failed_before(engine: Engine) -> None:
    code = {"name": "code", "verifier": "code_stdio", "role": "score"}
    reference = {"parts": {**PARTS, "code": {"tests": [{"stdin": "", "stdout": "1"}]}}}
    gate = {**WORDS, "role": "gate"}
    response = "<w>{}</w>\nAnswer: 42\n```python\nprint(1)\n```"
    void = judge(engine, "composite", response.format("yes"), reference, whole(VALUE, gate, code))
    failed = judge(engine, "composite", response.format("no"), reference, whole(VALUE, gate, code))
    assert (void.outcome, void.reward) == (Outcome.SANDBOX_ERROR, None)
    assert (failed.outcome, failed.reward) == (Outcome.FAILED, 0.0)


@pytest.mark.parametrize(
    ("params", "reference", "pointer"),
    [
        (whole(VALUE, VALUE), {"value": {"answer": "1"}}, "/verifier/params/parts"),
        (whole({**VALUE, "weight": -1}), {"value": {"answer": "1"}}, "/verifier/params/parts/0/weight"),
        (whole({**VALUE, "weight": 0}), {"value": {"answer": "1"}}, "/verifier/params/parts"),
        (whole({**VALUE, "verifier": "none"}), {"value": {"answer": "1"}}, "/verifier/params/parts/0/verifier"),
        (
            whole({**VALUE, "params": {"form": "odd"}}),
            {"value": {"answer": "1"}},
            "/verifier/params/parts/0/params/form",
        ),
        (whole(VALUE), {}, "/reference/parts"),
        (whole(VALUE), {"value": {"answer": ""}}, "/reference/parts/value"),
        (whole(VALUE), {"value": {}}, "/reference/parts/value"),
        (whole(VALUE), {"value": {"answer": "1"}, "more": {}}, "/reference/parts/more"),
        (whole(VALUE, pass_at=0), {"value": {"answer": "1"}}, "/verifier/params/pass_at"),
    ],
)
def test_faults_of_composites_have_pointers(params: Any, reference: Any, pointer: str) -> None:
    faults = check_task("composite", params, {"parts": reference})
    assert [fault.pointer for fault in faults] == [pointer], faults


def test_composites_in_composites(engine: Engine) -> None:
    inner = {"name": "inner", "verifier": "composite", "role": "score", "params": whole(VALUE, WORDS)}
    verdict = judge(engine, "composite", "<w>yes</w>\nAnswer: 42", {"parts": {"inner": {"parts": PARTS}}}, whole(inner))
    assert verdict.outcome is Outcome.VERIFIED


def test_a_fingerprint_changes_exactly_with_what_it_lists(engine: Engine) -> None:
    base = ("math", "p", "r", None, ())
    others = [
        ("numeric", "p", "r", None, ()), ("math", "q", "r", None, ()), ("math", "p", "s", None, ()),
        ("math", "p", "r", "python", ()), ("math", "p", "r", None, ("exact",)),
    ]  # fmt: skip
    found = [fingerprint(*values) for values in (base, *others)]
    assert len(set(found)) == len(found)
    assert fingerprint(*base) == found[0]
    first, second = (judge(engine, "exact", text, {"answer": "x"}, {}) for text in ("x", "y"))
    assert first.fingerprint == second.fingerprint
    assert len(first.fingerprint) == 64


RELATIONS = [
    ("numeric", {}, "1/2", "0.5", "equal"),
    ("numeric", {}, "1/2", "0.6", "contradict"),
    ("numeric", {"abs_tol": 0.2}, "0.5", "0.6", "compatible"),
    ("math", {}, "\\frac12", "0.5", "equal"),
    ("math", {}, "7", "8", "contradict"),
    ("math", {}, "even", "odd", "contradict"),
    ("math", {}, "x+1", "x+2", "compatible"),
    ("exact", {}, "Rome", "rome", "equal"),
    ("exact", {}, "Rome", "Paris", "contradict"),
]


@pytest.mark.parametrize(("verifier", "params", "a", "b", "relation"), RELATIONS)
def test_references_are_related_by_what_could_satisfy_both(
    verifier: str, params: dict[str, Any], a: str, b: str, relation: str
) -> None:
    module = VERIFIERS[verifier]
    for x, y in itertools.permutations((a, b)):
        assert module.relate({"answer": x}, {"answer": y}, params) == relation


def test_overlapping_answers_are_compatible() -> None:
    relate = VERIFIERS["exact"].relate
    assert relate({"answers": ["a", "b"]}, {"answers": ["b", "c"]}, {}) == "compatible"
    assert relate({"answers": ["a", "b"]}, {"answers": ["b", "a"]}, {}) == "equal"
