"""Streams: made once, leased from, checkpointed, restored."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.responses import Response

from service.api.dependencies import PAGE, Cursor, Limit, ServicesHandle, Trainer, problems
from service.api.idempotent import JSON, OnceHandle
from service.api.stream_models import (
    LeaseIn,
    LeaseKept,
    LeaseOut,
    OrdinalPage,
    RestoredOut,
    RestoreIn,
    StreamOut,
    StreamPage,
    TokenOut,
    lease_kept,
    lease_out,
    ordinal_out,
    restored_out,
    stream_out,
    visible,
)
from service.errors import (
    BadCursor,
    Conflict,
    Forbidden,
    Invalid,
    KeyReused,
    NotFound,
    SnapshotMismatch,
    StaleConsumer,
    StoreBusy,
)
from service.store import ordinals, streams
from service.store.jobs import clock
from service.store.paging import Pager
from service.stream import creation, leasing, restoring
from service.stream.contract import StreamRequest
from service.words import OrdinalState, Scope, Split

router = APIRouter(tags=["streams"])

StreamId = Annotated[str, Path(pattern=r"^str_[0-9a-f]{32}$")]


@router.post(
    "/streams",
    operation_id="streams_create",
    status_code=201,
    responses={200: {"model": StreamOut}, **problems(Conflict, Invalid, StoreBusy)},
)
def create(body: StreamRequest, caller: Trainer, services: ServicesHandle, response: Response) -> StreamOut:
    """Pin what is servable now to a new stream; an equal request again answers the same stream."""
    if body.split == Split.HOLDOUT and not caller.may(Scope.HOLDOUT_READ):
        raise Forbidden("a stream of holdout tasks needs the scope holdout:read")
    made = creation.make(services.store, body, secret=services.settings.secret_bytes, actor=caller.key_id)
    response.status_code = 201 if made.new else 200
    return stream_out(made.stream)


@router.get("/streams", operation_id="streams_list", responses=problems(BadCursor))
def list_(caller: Trainer, services: ServicesHandle, cursor: Cursor = None, limit: Limit = PAGE) -> StreamPage:
    """Streams, oldest first."""
    holdout = caller.may(Scope.HOLDOUT_READ)
    pager = Pager(services.settings.secret_bytes, {"list": "streams", "holdout": holdout}, cursor, limit)
    after = pager.after()
    with services.store.reading() as db:
        rows = streams.page(db, after[0] if after else None, limit + 1, with_holdout=holdout)
    page = pager.page(rows, lambda row: [row.id])
    return StreamPage(items=[stream_out(row) for row in page.items], next=page.next)


@router.get("/streams/{stream_id}", operation_id="streams_get", responses=problems(NotFound))
def get(stream_id: StreamId, caller: Trainer, services: ServicesHandle) -> StreamOut:
    with services.store.reading() as db:
        return stream_out(visible(streams.get(db, stream_id), caller))


@router.post(
    "/streams/{stream_id}:lease",
    operation_id="streams_lease",
    response_model=LeaseOut,
    responses=problems(NotFound, StaleConsumer, KeyReused, Invalid, StoreBusy),
)
def lease(stream_id: StreamId, body: LeaseIn, caller: Trainer, services: ServicesHandle, once: OnceHandle) -> Response:
    """Up to `n` groups: first what was handed out and never acknowledged, in its order, then new ones."""
    with services.store.writing() as db:
        stream = visible(streams.get(db, stream_id), caller)
        if again := once.replay(db):
            answer = lease_out(db, stream, LeaseKept.model_validate_json(bytes(again.body)))
            return Response(answer.model_dump_json(), headers={"Idempotency-Replayed": "true"}, media_type=JSON)
        leased = leasing.lease(db, stream_id, body.ask(), actor=caller.key_id, now=clock(db))
        kept = lease_kept(leased)
        once.keep(db, 200, kept)
        return Response(lease_out(db, stream, kept, leased.items).model_dump_json(), media_type=JSON)


@router.get("/streams/{stream_id}/checkpoint", operation_id="streams_checkpoint", responses=problems(NotFound))
def checkpoint(stream_id: StreamId, caller: Trainer, services: ServicesHandle) -> TokenOut:
    """The completed set as it is now. Read it before writing a checkpoint, store it inside, acknowledge afterwards."""
    with services.store.reading() as db:
        visible(streams.get(db, stream_id), caller)
        return TokenOut(token=restoring.checkpoint(db, stream_id, services.settings.secret_bytes))


@router.post(
    "/streams/{stream_id}:restore",
    operation_id="streams_restore",
    responses=problems(NotFound, SnapshotMismatch, Conflict, Invalid, StoreBusy),
)
def restore(stream_id: StreamId, body: RestoreIn, caller: Trainer, services: ServicesHandle) -> RestoredOut:
    """Go back to a checkpoint: what it has not seen is served again, first and in the old order."""
    secret = services.settings.secret_bytes
    with services.store.writing() as db:
        visible(streams.get(db, stream_id), caller)
        reopened = restoring.restore(
            db, stream_id, body.token, consumer=body.consumer, secret=secret, actor=caller.key_id, now=clock(db)
        )
        return restored_out(streams.get(db, stream_id), reopened)


@router.get("/streams/{stream_id}/ordinals", operation_id="streams_ordinals", responses=problems(NotFound, BadCursor))
def list_ordinals(
    stream_id: StreamId,
    caller: Trainer,
    services: ServicesHandle,
    state: Annotated[OrdinalState | None, Query()] = None,
    cursor: Cursor = None,
    limit: Limit = PAGE,
) -> OrdinalPage:
    """The record of the order, ascending."""
    pager = Pager(services.settings.secret_bytes, {"list": "ordinals", "of": stream_id, "state": state}, cursor, limit)
    after = pager.after()
    with services.store.reading() as db:
        visible(streams.get(db, stream_id), caller)
        rows = ordinals.page(db, stream_id, state, after[0] if after else -1, limit + 1)
    page = pager.page(rows, lambda row: [row.ordinal])
    return OrdinalPage(items=[ordinal_out(row) for row in page.items], next=page.next)
