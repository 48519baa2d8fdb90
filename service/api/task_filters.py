"""The query string of `GET /v1/tasks`. Unknown parameters are an error: a mistyped filter must not match everything."""

from typing import Annotated, Literal

from fastapi import Depends, Query, Request
from pydantic import AwareDatetime

from service.errors import FieldError, Invalid
from service.store.tasks import Filters
from service.words import Split, TaskStatus

Many = Annotated[list[str] | None, Query(max_length=50)]
Sort = Annotated[Literal["created_at", "-created_at"], Query(description="Oldest first, or newest first.")]
OTHERS = frozenset({"sort", "cursor", "limit", "count"})


async def _filters(
    request: Request,
    status: Annotated[list[TaskStatus] | None, Query()] = None,
    domain: Many = None,
    split: Annotated[list[Split] | None, Query()] = None,
    verifier: Many = None,
    family: Many = None,
    source: Many = None,
    origin: Many = None,
    licence: Many = None,
    tag: Many = None,
    created_after: AwareDatetime | None = None,
    created_before: AwareDatetime | None = None,
    q: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
) -> Filters:
    known = set(Filters.__slots__) | OTHERS
    if unknown := sorted(set(request.query_params) - known):
        rule = f"there is no such filter; there are {', '.join(sorted(known))}"
        raise Invalid("Unknown filter.", errors=[FieldError(f"/query/{name}", "unknown", rule) for name in unknown])
    return Filters(
        status=tuple(status or ()),
        domain=tuple(domain or ()),
        split=tuple(split or ()),
        verifier=tuple(verifier or ()),
        family=tuple(family or ()),
        source=tuple(source or ()),
        origin=tuple(origin or ()),
        licence=tuple(licence or ()),
        tag=tuple(tag or ()),
        created_after=created_after,
        created_before=created_before,
        q=q,
    )


FiltersHandle = Annotated[Filters, Depends(_filters)]
