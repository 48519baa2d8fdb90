"""Change a task's status by hand. Activation needs a pass of every gate that the task's type requires."""

from service.errors import GatesMissing
from service.store import receipts, tasks
from service.store.required_gates import current_key
from service.store.session import WriteSession
from service.store.tables import Task
from service.words import TaskStatus


def change_status(db: WriteSession, task_id: str, to: TaskStatus, *, actor: str, reason: str, holdout: bool) -> Task:
    """Move a task to `to`.

    Raises:
        NotFound, Conflict
        GatesMissing: it cannot be active yet; `missing` and `failed` name the gates.
    """
    task = tasks.get(db, task_id, holdout=holdout)
    if to is not TaskStatus.ACTIVE:
        return tasks.move(db, task, to, actor=actor, reason=reason)
    standing = receipts.standing(db, task)
    if standing.missing or standing.failed:
        raise GatesMissing(
            f"missing: {', '.join(standing.missing) or 'none'}; failed: {', '.join(standing.failed) or 'none'}."
            " A `factory.gate` job runs them.",
            missing=list(standing.missing),
            failed=list(standing.failed),
        )
    key = current_key(task.task_type, task.verifier)
    return tasks.move(db, task, to, actor=actor, reason=reason, receipts_key=key)
