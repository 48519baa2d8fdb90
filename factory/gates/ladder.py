"""Runs the gates that each subject requires, the cheap ones first; who fails one climbs no further."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from factory.contract import Gate, GateReceipt, Judge, Subject
from factory.gates.g0_limits import Limits
from factory.gates.g1_determinism import Determinism
from factory.gates.g2_gold import Gold
from factory.gates.g3_null import Null
from service.store.required_gates import required
from service.words import GateResult, TaskStatus
from verifiers.registry import VERIFIERS

GATES: Mapping[str, Gate] = {gate.name: gate for gate in (Limits(), Determinism(), Gold(), Null())}

ORDER = ("G0", "G1", "G3", "G2")
"""Cheap before dear, and nulls before golds: funnel counts depend on it, so it is recorded with each job."""

UNDECIDED = frozenset(("no_gold", "licence_undeclared"))
"""Errors that trying again does not cure: the task waits for its author."""

VOID = frozenset((GateResult.FAIL, GateResult.ERROR))


class Climb(NamedTuple):
    """How far one subject came. `retry`: a gate could not decide because of us."""

    receipts: list[GateReceipt]
    decision: TaskStatus | None
    reason: str
    retry: bool


def climb(subjects: Sequence[Subject], judge: Judge, gates: Mapping[str, Gate] = GATES) -> list[Climb]:
    """The receipts of each subject and what they decide: active, rejected, or nothing yet."""
    receipts: list[list[GateReceipt]] = [[] for _ in subjects]
    needed = [frozenset(required(subject.candidate.task_type)) for subject in subjects]
    for name in ORDER:
        places = [
            place
            for place in range(len(subjects))
            if name in needed[place] and not any(receipt.result in VOID for receipt in receipts[place])
        ]
        if places:
            found = gates[name].run([subjects[place] for place in places], judge)
            for place, receipt in zip(places, found, strict=True):
                receipts[place].append(receipt)
    return [_decided(found) for found in receipts]


def _decided(receipts: list[GateReceipt]) -> Climb:
    last = receipts[-1]
    if last.result is GateResult.FAIL:
        return Climb(receipts, TaskStatus.REJECTED, f"{last.gate} {last.code}: {last.detail}", False)
    if last.result is GateResult.ERROR:
        return Climb(receipts, None, f"{last.gate} {last.code}: {last.detail}", last.code not in UNDECIDED)
    return Climb(receipts, TaskStatus.ACTIVE, "all required gates passed", False)


def columns(receipt: GateReceipt, subject: Subject) -> dict[str, Any]:
    """The receipt as columns of its table."""
    name = subject.candidate.verifier.name
    return asdict(receipt) | {"verifier": name, "verifier_version": VERIFIERS[name].version}


def count(counts: Mapping[str, Any], climbs: Sequence[Climb]) -> dict[str, Any]:
    """The counts of a job with these climbs added, per gate: in, pass (or flag), fail, error."""
    total = {name: dict(value) if isinstance(value, dict) else value for name, value in counts.items()}
    for receipt in (receipt for found in climbs for receipt in found.receipts):
        gate = total.setdefault(receipt.gate, {"in": 0, "pass": 0, "fail": 0, "error": 0, "seconds": 0.0})
        gate["in"] += 1
        gate["seconds"] = round(gate["seconds"] + receipt.duration_ms / 1e3, 4)
        result = receipt.result
        gate[str(result) if result in VOID else "pass"] += 1
    return total
