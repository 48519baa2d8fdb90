"""Stored verdicts: read one, judge its attempt again."""

from fastapi import APIRouter
from pydantic import BaseModel

from service.actions.replay import replay
from service.api.dependencies import Judge, Reader, ServicesHandle, StoreHandle, problems
from service.api.ids import VerdictId
from service.api.verdict_models import VerdictOut, verdict_out
from service.errors import Conflict, NotFound, StoreBusy
from service.store import attempts
from service.words import Scope

router = APIRouter(prefix="/verdicts", tags=["verify"])


class ReplayOut(BaseModel):
    """`agrees`: the new verdict has the outcome and reward of the old one."""

    agrees: bool
    original: VerdictOut
    replay: VerdictOut


@router.get("/{verdict_id}", operation_id="verdicts_get", responses=problems(NotFound))
def get_verdict(verdict_id: VerdictId, caller: Reader, store: StoreHandle) -> VerdictOut:
    """One verdict with everything that it depends on."""
    with store.reading() as db:
        return verdict_out(attempts.get(db, verdict_id, holdout=caller.may(Scope.HOLDOUT_READ)))


@router.post("/{verdict_id}:replay", operation_id="verdicts_replay", responses=problems(NotFound, Conflict, StoreBusy))
def replay_verdict(verdict_id: VerdictId, caller: Judge, services: ServicesHandle) -> ReplayOut:
    """Judge the stored attempt again and say whether the verdict agrees; the new one is kept beside the old."""
    found = replay(services.store, services.engine, verdict_id, holdout=caller.may(Scope.HOLDOUT_READ))
    again = verdict_out(found.original, found.replay)
    return ReplayOut(agrees=found.agrees, original=verdict_out(found.original), replay=again)
