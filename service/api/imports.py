"""`POST /v1/tasks:import`: JSONL in, a result line for each line out."""

from collections.abc import AsyncIterator
from typing import Annotated

import anyio.to_thread
from fastapi import APIRouter, Header, Request
from fastapi.responses import StreamingResponse

from service.actions.import_tasks import Import, Inflater
from service.api.dependencies import ServicesHandle, Submitter, problems
from service.errors import Invalid, StoreBusy, TooLarge, WrongMediaType
from service.words import Scope

router = APIRouter(tags=["tasks"])
TYPES = frozenset(("application/jsonl", "application/x-ndjson", "application/x-jsonlines", "application/json"))
GZIPPED = frozenset(("application/gzip", "application/x-gzip"))
JSONL = "application/jsonl"


@router.post(
    "/tasks:import",
    operation_id="tasks_import",
    response_class=StreamingResponse,
    responses={200: {"content": {JSONL: {}}}, **problems(Invalid, WrongMediaType, TooLarge, StoreBusy)},
)
async def import_tasks(
    request: Request,
    caller: Submitter,
    services: ServicesHandle,
    content_type: Annotated[str, Header()] = JSONL,
    content_encoding: Annotated[str, Header()] = "identity",
) -> StreamingResponse:
    """Submit one task a line. Each is answered `{line, status, id | problem}`; the last answer is `{summary}`."""
    inflater = _inflater(content_type.partition(";")[0].strip().lower(), content_encoding.strip().lower())
    work = Import(
        services.store,
        services.split_rule,
        actor=caller.key_id,
        may_split=caller.may(Scope.CURATE),
        holdout=caller.may(Scope.HOLDOUT_READ),
    )
    try:
        async for piece in request.stream():
            await anyio.to_thread.run_sync(_feed, work, inflater, piece)
        await anyio.to_thread.run_sync(work.finish)
    except BaseException:
        work.close()
        raise
    return StreamingResponse(_answers(work), media_type=JSONL)


def _feed(work: Import, inflater: Inflater | None, piece: bytes) -> None:
    work.feed(inflater.feed(piece) if inflater else piece)


def _inflater(content_type: str, encoding: str) -> Inflater | None:
    if content_type not in TYPES | GZIPPED:
        raise WrongMediaType(f"send application/jsonl, gzipped or not; not {content_type}")
    if encoding not in {"identity", "gzip", ""}:
        raise WrongMediaType(f"Content-Encoding may be gzip; not {encoding}")
    return Inflater() if encoding == "gzip" or content_type in GZIPPED else None


async def _answers(work: Import) -> AsyncIterator[bytes]:
    try:
        pieces = work.answers()
        while (piece := await anyio.to_thread.run_sync(next, pieces, None)) is not None:
            yield piece
    finally:
        work.close()
