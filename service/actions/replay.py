"""Replay: judge a stored attempt again, against the same version of its task, and say whether the verdict agrees."""

from typing import NamedTuple

from service.actions import verify
from service.errors import Conflict, Problem
from service.store import attempts
from service.store.ids import task_ref
from service.store.session import Store
from service.store.tables import VerdictRow
from verifiers.engine import Engine


class Replayed(NamedTuple):
    """`agrees` compares outcome and reward; a void verdict on either side agrees with nothing but itself."""

    agrees: bool
    original: attempts.Recorded
    replay: VerdictRow


def replay(store: Store, engine: Engine, verdict_id: str, *, holdout: bool) -> Replayed:
    """Judge again and write the new verdict beside the old one.

    Raises:
        NotFound: there is no such verdict.
        Conflict: the attempt's task can be judged no more.
    """
    with store.reading() as db:
        original = attempts.get(db, verdict_id, holdout=holdout)
        attempt = original.attempt
        ref = task_ref(attempt.task_id, attempt.task_version or 0) if attempt.task_id else None
        asked = verify.Asked(attempt.response, ref=ref, inline=attempt.inline_task)
        (loaded,) = verify.load(db, [asked], holdout=holdout)
    (verdict,) = verify.judge(engine, [loaded])
    if isinstance(verdict, Problem):
        raise Conflict(f"the attempt cannot be judged again: {verdict.detail}")
    with store.writing() as db:
        row = attempts.add_replay(db, original.verdict, verdict)
        agrees = (row.outcome, row.reward) == (original.verdict.outcome, original.verdict.reward)
        return Replayed(agrees, original, row)
