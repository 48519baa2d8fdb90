"""The statistics record, whole or by facet."""

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path
from fastapi.responses import Response

from service.api.dependencies import Analyst, ServicesHandle, problems
from service.api.idempotent import JSON
from service.errors import NotFound
from service.stats.record import build
from service.words import Scope
from verifiers.canonical import canonical_json

router = APIRouter(tags=["stats"])

VOLATILE = frozenset({"as_of", "elapsed_ms"})
"""What differs between two records of the same data."""

Facet = Annotated[str, Path(pattern=r"^[a-z_]{1,40}$")]
IfNoneMatch = Annotated[str | None, Header(max_length=2000)]
RECORD: dict[int | str, dict[str, Any]] = {304: {"description": "Nothing changed since the ETag"}}


@router.get("/stats", operation_id="stats_get", response_model=dict[str, Any], responses=RECORD | problems())
def get(caller: Analyst, services: ServicesHandle, if_none_match: IfNoneMatch = None) -> Response:
    """Every facet. Each number has its method, time and scope."""
    with services.store.reading() as db:
        record = build(db, holdout=caller.may(Scope.HOLDOUT_READ))
    return _answer(record, if_none_match)


@router.get(
    "/stats/{facet}",
    operation_id="stats_facet",
    response_model=dict[str, Any],
    responses=RECORD | problems(NotFound),
)
def get_facet(facet: Facet, caller: Analyst, services: ServicesHandle, if_none_match: IfNoneMatch = None) -> Response:
    """One facet of the record."""
    with services.store.reading() as db:
        record = build(db, holdout=caller.may(Scope.HOLDOUT_READ), facet=facet)
    return _answer(record, if_none_match)


def _answer(record: Mapping[str, Any], known: str | None) -> Response:
    # the scope, and with it what the caller may see, is part of what is hashed
    etag = f'"{hashlib.sha256(canonical_json(_stable(record)).encode()).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    if known is not None and etag in {part.strip() for part in known.split(",")}:
        return Response(status_code=304, headers=headers)
    return Response(canonical_json(record), headers=headers, media_type=JSON)


def _stable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _stable(item) for name, item in value.items() if name not in VOLATILE}
    return value
