"""Each gate finds the defect that is planted for it, names it, and lets clean tasks pass."""

import copy
from collections.abc import Sequence
from typing import Any

import pytest

from factory.contract import Subject
from factory.gates.g2_gold import flake_bound, runs_for
from factory.gates.g3_null import nulls_of
from factory.gates.ladder import GATES, ORDER, climb, columns, count
from factory.knobs import filled
from factory.procedural.registry import FAMILIES
from service.store.admission import prepare
from service.store.drafts import CandidateDraft
from service.store.required_gates import GATE_VERSIONS
from service.store.tables import Receipt
from service.words import GateResult, Split, TaskStatus
from verifiers.contract import Case, Verdict
from verifiers.engine import Engine

CLEAN: dict[str, Any] = {
    "domain": "math.arithmetic",
    "prompt": [{"role": "user", "content": "What is 6*7?"}],
    "verifier": {"name": "numeric", "params": {}},
    "reference": {"answer": "42"},
    "gold": ["42"],
    "nulls": ["41"],
}


def subject(split: Split | None = None, **changes: Any) -> Subject:
    draft = CandidateDraft.model_validate(copy.deepcopy(CLEAN) | changes)
    return Subject(draft, prepare(draft).content_hash, split)


def generated(**changes: Any) -> Subject:
    """A real candidate of a generator, with something changed behind its back."""
    family = FAMILIES["math.add"]
    item = next(iter(family.candidates(None, 0, filled(family.knobs_schema, {}))))
    draft = item.candidate.model_copy(update=changes)  # type: ignore[union-attr]
    return Subject(draft, prepare(draft).content_hash)


class Judge:
    """A judge that answers as told: by the response of a case, in turn. The rest is judged really."""

    def __init__(self, engine: Engine, told: dict[str, list[str]]) -> None:
        self._engine = engine
        self._told = {response: list(answers) for response, answers in told.items()}

    def verify_many(self, cases: Sequence[Case]) -> list[Verdict]:
        return [self._one(case) for case in cases]

    def _one(self, case: Case) -> Verdict:
        told = self._told.get(str(case.response))
        if not told:
            return self._engine.verify(case)
        instead = told.pop(0) if len(told) > 1 else told[0]
        if instead == "void":
            return self._engine.verify(Case("no_such_verifier", {}, {}, ""))
        return self._engine.verify(Case(case.verifier, case.params, case.reference, instead))


def test_clean_tasks_pass_every_gate(text_engine: Engine) -> None:
    for one in (subject(), generated()):
        (found,) = climb([one], text_engine)
        assert found.decision is TaskStatus.ACTIVE, found.reason
        assert [receipt.gate for receipt in found.receipts] == list(ORDER)
        assert {receipt.result for receipt in found.receipts} == {GateResult.PASS}


@pytest.mark.parametrize(
    ("planted", "gate", "code"),
    [
        ({"source": {"uri": "x:y", "licence": "CC-BY-NC-4.0"}}, "G0", "licence_forbids"),
        ({"verifier": {"name": "numeric", "params": {"slot": "raw"}}, "gold": ["43"]}, "G2", "gold_not_verified"),
        ({"gold": ["42", "seven"]}, "G2", "gold_not_verified"),
        ({"nulls": ["42.0"]}, "G3", "null_paid"),
        (
            {"prompt": [{"role": "user", "content": "Say \\boxed{42}."}]},
            "G3",
            "null_paid",
        ),
    ],
)
def test_the_right_gate_names_the_defect(planted: dict[str, Any], gate: str, code: str, text_engine: Engine) -> None:
    (found,) = climb([subject(**planted)], text_engine)
    assert found.decision is TaskStatus.REJECTED
    last = found.receipts[-1]
    assert (last.gate, last.code, last.result) == (gate, code, GateResult.FAIL)
    assert gate in found.reason
    if gate in {"G2", "G3"}:
        assert last.evidence


def test_a_gate_that_fails_stops_the_climb(text_engine: Engine) -> None:
    (found,) = climb([subject(source={"uri": "x:y", "licence": "proprietary"})], text_engine)
    assert [receipt.gate for receipt in found.receipts] == ["G0"]


def test_a_reference_that_its_verifier_refuses_is_stopped_by_g0(text_engine: Engine) -> None:
    draft = CandidateDraft.model_validate(CLEAN | {"reference": {}})
    (found,) = climb([Subject(draft, "0" * 64)], text_engine)
    assert (found.receipts[-1].gate, found.decision) == ("G0", TaskStatus.REJECTED)


def test_a_task_that_is_made_differently_elsewhere_fails_g1(text_engine: Engine) -> None:
    (found,) = climb([generated(tags=["made-here-only"])], text_engine)
    assert (found.receipts[-1].gate, found.receipts[-1].code) == ("G1", "made_differently")
    assert found.decision is TaskStatus.REJECTED


def test_a_verifier_that_wavers_fails_g1(text_engine: Engine) -> None:
    judge = Judge(text_engine, {"42": ["42", "43"]})
    (found,) = climb([subject()], judge)
    assert (found.receipts[-1].gate, found.receipts[-1].code) == ("G1", "judged_differently")


def test_a_flaky_gold_fails_g2(text_engine: Engine) -> None:
    """SWE-smith#26: a gold that passes only sometimes is not admitted."""
    judge = Judge(text_engine, {"42": ["42", "42", "42", "43"]})
    (found,) = climb([subject()], judge)
    assert (found.receipts[-1].gate, found.receipts[-1].code) == ("G2", "gold_flaky")


@pytest.mark.parametrize("response", ["42", "41", ""])
def test_a_void_verdict_decides_nothing(response: str, text_engine: Engine) -> None:
    """Our failure is an error receipt: the task stays as it is and is gated again, never rejected."""
    judge = Judge(text_engine, {response: ["void"]})
    (found,) = climb([subject()], judge)
    assert found.receipts[-1].result is GateResult.ERROR
    assert (found.decision, found.retry) == (None, True)


def test_a_paid_null_beats_a_void_one(text_engine: Engine) -> None:
    judge = Judge(text_engine, {"": ["void"]})
    (found,) = climb([subject(nulls=["42.0"])], judge)
    assert found.decision is TaskStatus.REJECTED


def test_the_reference_is_the_gold_where_none_is_given(text_engine: Engine) -> None:
    (found,) = climb([subject(gold=[])], text_engine)
    assert found.decision is TaskStatus.ACTIVE


def test_a_task_without_any_gold_waits_for_its_author(text_engine: Engine) -> None:
    one = subject(
        gold=[],
        verifier={"name": "composite", "params": {"parts": [{"name": "a", "verifier": "exact", "role": "score"}]}},
        reference={"parts": {"a": {"answer": "yes"}}},
        nulls=[],
    )
    (found,) = climb([one], text_engine)
    assert (found.receipts[-1].code, found.decision, found.retry) == ("no_gold", None, False)


@pytest.mark.parametrize(
    ("licence", "result"),
    [
        ("MIT", GateResult.PASS),
        ("MIT OR GPL-3.0-only", GateResult.PASS),
        ("(Apache-2.0 AND MIT)", GateResult.PASS),
        ("GPL-2.0-or-later", GateResult.FLAG),
        ("CC-BY-SA-4.0", GateResult.FLAG),
        ("LicenseRef-ours", GateResult.FLAG),
        ("NOASSERTION", GateResult.ERROR),
        ("CC-BY-ND-4.0", GateResult.FAIL),
    ],
)
def test_licences(licence: str, result: GateResult, text_engine: Engine) -> None:
    (found,) = climb([subject(source={"uri": "x:y", "licence": licence})], text_engine)
    assert found.receipts[0].result is result
    assert not found.retry


def test_the_bound_of_g2_is_the_formula(text_engine: Engine) -> None:
    for runs, percent in ((2, 78), (5, 45), (10, 26), (20, 14), (59, 5)):
        assert round(100 * flake_bound(runs)) == percent
    assert runs_for(subject()) == 2
    assert runs_for(subject(split=Split.HOLDOUT)) == 20
    (found,) = climb([subject(split=Split.HOLDOUT)], text_engine)
    assert found.receipts[-1].n_exec == 20
    assert found.receipts[-1].metric == pytest.approx(1 - 0.05 ** (1 / 20))


def test_nulls_are_the_zoo_and_the_authors() -> None:
    found = nulls_of(subject().candidate)
    assert found["empty"] == ""
    assert found["blank"] == " \n\t "
    assert found["echo"] == "What is 6*7?"
    assert found["null_0"] == "41"


def test_many_subjects_are_answered_in_their_order(text_engine: Engine) -> None:
    subjects = [subject(gold=[str(n)]) for n in (42, 1, 42, 2)] + [generated(), subject(nulls=["42"])]
    found = climb(subjects, text_engine)
    assert [one.decision is TaskStatus.ACTIVE for one in found] == [True, False, True, False, True, False]
    totals = count({}, found)
    assert totals["G0"] | {"seconds": 0} == {"in": 6, "pass": 6, "fail": 0, "error": 0, "seconds": 0}
    assert (totals["G3"]["in"], totals["G3"]["fail"]) == (6, 1)
    assert (totals["G2"]["in"], totals["G2"]["pass"], totals["G2"]["fail"]) == (5, 3, 2)


def test_gates_change_nothing_they_are_given(text_engine: Engine) -> None:
    """H18."""
    one = subject()
    before = one.candidate.model_dump_json()
    climb([one], text_engine)
    assert one.candidate.model_dump_json() == before


def test_gate_versions_are_those_that_receipts_need() -> None:
    assert {name: gate.version for name, gate in GATES.items()} == dict(GATE_VERSIONS)
    assert set(ORDER) == set(GATES)


def test_receipts_fit_their_table(text_engine: Engine) -> None:
    one = subject()
    (found,) = climb([one], text_engine)
    known = {column.name for column in Receipt.__table__.columns}
    for receipt in found.receipts:
        assert set(columns(receipt, one)) - {"evidence"} <= known
