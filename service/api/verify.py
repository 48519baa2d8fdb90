"""`POST /v1/verify` and `/v1/verify:batch`: a response in, a verdict out.

Load, judge and record are three steps on threads; no session is open while anything is judged, and judging has threads
of its own, so that slow programs never keep the rest of the API waiting.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import anyio.to_thread
from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import BaseModel, ValidationError

from service.actions import verify as action
from service.actions.verify import Asked
from service.api.dependencies import Judge, Services, ServicesHandle, problems
from service.api.idempotent import Once, OnceHandle
from service.api.verdict_models import BatchIn, BatchOut, FailedItem, JudgedItem, VerdictOut, VerifyIn, verdict_out
from service.auth.principal import Principal
from service.errors import InFlight, Invalid, KeyReused, NotFound, Problem, StoreBusy
from service.problem_details import details, field_errors
from service.store.attempts import Recorded
from service.words import Scope
from verifiers.contract import Verdict

Load = action.Loaded | Problem
Answer = Callable[[Sequence[Recorded | Problem]], BaseModel]

router = APIRouter(tags=["verify"])
PROBLEMS = problems(NotFound, Invalid, KeyReused, InFlight, StoreBusy)


@router.post("/verify", operation_id="verify_one", response_model=VerdictOut, responses=PROBLEMS)
async def verify_one(body: VerifyIn, caller: Judge, services: ServicesHandle, once: OnceHandle) -> Response:
    """Judge one response and record the attempt with its verdict."""
    return await _judged(services, caller, once, [body.asked()], _one)


@router.post("/verify:batch", operation_id="verify_batch", response_model=BatchOut, responses=PROBLEMS)
async def verify_batch(body: BatchIn, caller: Judge, services: ServicesHandle, once: OnceHandle) -> Response:
    """Judge up to 1,024 responses. Order is kept; an item that fails holds a `problem` and loses no other."""
    names = [item["id"] if isinstance(item.get("id"), str) else None for item in body.items]
    asked = [_parse(item) for item in body.items]
    return await _judged(services, caller, once, asked, partial(_batch, names))


async def _judged(
    services: Services, caller: Principal, once: Once, asked: Sequence[Asked | Problem], answer: Answer
) -> Response:
    holdout = caller.may(Scope.HOLDOUT_READ)
    again, loaded = await anyio.to_thread.run_sync(_load, services, once, asked, holdout)
    if again is not None:
        return again
    try:
        judged = await anyio.to_thread.run_sync(action.judge, services.engine, loaded, limiter=services.judging)
        return await anyio.to_thread.run_sync(_record, services, once, caller, loaded, judged, answer)
    except BaseException:
        if once.named:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_forget, services, once)
        raise


def _load(
    services: Services, once: Once, asked: Sequence[Asked | Problem], holdout: bool
) -> tuple[Response | None, list[Load]]:
    """Reserve the key, then read what the judging needs."""
    if once.named:
        with services.store.writing() as db:
            if again := once.replay(db):
                return again, []
    with services.store.reading() as db:
        found = iter(action.load(db, [item for item in asked if isinstance(item, Asked)], holdout=holdout))
    return None, [next(found) if isinstance(item, Asked) else item for item in asked]


def _record(
    services: Services,
    once: Once,
    caller: Principal,
    loaded: list[Load],
    judged: list[Verdict | Problem],
    answer: Answer,
) -> Response:
    with services.store.writing() as db:
        recorded = action.record(db, loaded, judged, actor=caller.key_id)
        return once.keep(db, 200, answer(recorded))


def _forget(services: Services, once: Once) -> None:
    with services.store.writing() as db:
        once.forget(db)


def _one(recorded: Sequence[Recorded | Problem]) -> VerdictOut:
    (item,) = recorded
    if isinstance(item, Problem):
        raise item
    return verdict_out(item)


def _batch(names: Sequence[str | None], recorded: Sequence[Recorded | Problem]) -> BatchOut:
    items: list[JudgedItem | FailedItem] = []
    for name, item in zip(names, recorded, strict=True):
        if isinstance(item, Problem):
            items.append(FailedItem(item=name, problem=details(item, "/v1/verify:batch", None)))
        else:
            items.append(JudgedItem(item=name, **verdict_out(item).model_dump()))
    return BatchOut(items=items)


def _parse(item: dict[str, Any]) -> Asked | Problem:
    try:
        return VerifyIn.model_validate(item).asked()
    except ValidationError as error:
        return Invalid("The item breaks a rule; `errors` names each field.", errors=field_errors(error.errors()))
    except Problem as problem:
        return problem
