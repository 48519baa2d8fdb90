"""Submit tasks: prepare outside the transaction, admit inside it, file the job that gates what is new."""

from collections.abc import Sequence

from service.store import jobs
from service.store.admission import Admitted, Prepared, admit
from service.store.session import WriteSession
from service.store.splits import SplitRule

GATE_JOB = "factory.gate"


def submit(
    db: WriteSession, batch: Sequence[Prepared], *, actor: str, rule: SplitRule, may_split: bool
) -> list[Admitted]:
    """Admit a batch and file one gate job for the new ones among it; answers in the batch's order."""
    admitted = admit(db, batch, actor=actor, rule=rule, may_split=may_split)
    fresh = [item.task_id for item in admitted if item.duplicate_of is None]
    if fresh:
        jobs.file(db, GATE_JOB, {"task_ids": fresh}, actor=actor)
    return admitted
