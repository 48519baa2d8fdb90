"""Receipts: what each gate said of each version, and whether it still counts."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import select

from service.store.required_gates import GATE_VERSIONS, required
from service.store.session import ReadSession
from service.store.tables import Evidence, Receipt, Task
from service.words import GateResult
from verifiers.registry import VERIFIERS

SERVES = frozenset((GateResult.PASS, GateResult.FLAG, GateResult.NOT_APPLICABLE))


class Judged(NamedTuple):
    """A receipt, and whether it is of the current gate and verifier versions."""

    receipt: Receipt
    current: bool


class Standing(NamedTuple):
    """The required gates of a version that have no current receipt, and those whose newest one does not serve."""

    missing: Sequence[str]
    failed: Sequence[str]


def of_task(db: ReadSession, task_id: str, version: int) -> list[Judged]:
    """Every receipt of a version, oldest first."""
    rows = db.scalars(
        select(Receipt).where(Receipt.task_id == task_id, Receipt.version == version).order_by(Receipt.id)
    )
    return [Judged(row, _current(row)) for row in rows]


def standing(db: ReadSession, task: Task) -> Standing:
    """What keeps the newest version from being served, if anything does."""
    newest = {item.receipt.gate: item for item in of_task(db, task.id, task.version) if item.current}
    gates = required(task.task_type)
    missing = [gate for gate in gates if gate not in newest or newest[gate].receipt.result == GateResult.ERROR]
    failed = [gate for gate in gates if gate in newest and newest[gate].receipt.result == GateResult.FAIL]
    return Standing(missing, failed)


def evidence(db: ReadSession, sha256: str) -> Evidence | None:
    return db.get(Evidence, sha256)


def _current(row: Receipt) -> bool:
    verifier = VERIFIERS.get(row.verifier)
    return (
        verifier is not None
        and verifier.version == row.verifier_version
        and GATE_VERSIONS.get(row.gate) == row.gate_version
    )
