"""Leases: extended while the trainer works, completed once its checkpoint is durable, released when it cannot."""

from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field, model_validator

from service.actions import complete as completing
from service.api.dependencies import ServicesHandle, Trainer, problems
from service.api.stream_models import LARGEST_LEASE, visible
from service.auth.principal import Principal
from service.errors import (
    CompletionConflict,
    Conflict,
    FieldError,
    Invalid,
    LeaseExpired,
    LeaseSuperseded,
    NotFound,
    StoreBusy,
)
from service.problem_details import details
from service.store import leases, streams
from service.store.drafts import Strict
from service.store.jobs import clock
from service.store.session import ReadSession
from service.stream import leasing
from service.stream.completion import Completion, ItemResult
from service.stream.contract import Count
from service.words import Scope
from verifiers.canonical import content_hash

router = APIRouter(tags=["leases"])

LeaseId = Annotated[str, Path(pattern=r"^lse_[0-9a-f]{32}$")]
LARGEST_GROUP = 1024


class Nothing(Strict):
    """An empty body."""


class CompletionIn(Strict):
    """One group: at most one of `verdict_ids`, `rewards` (null: that rollout was void) and `responses` to be judged."""

    any_text = frozenset(("responses",))

    ordinal: Count
    verdict_ids: Annotated[list[Annotated[str, Field(max_length=40)]], Field(max_length=LARGEST_GROUP)] | None = None
    rewards: Annotated[list[float | None], Field(max_length=LARGEST_GROUP)] | None = None
    responses: Annotated[list[str | dict[str, Any]], Field(max_length=LARGEST_GROUP)] | None = None
    weight: Annotated[float, Field(ge=0)] = 1.0
    tokens: Annotated[int, Field(ge=0)] | None = None
    mean_abs_advantage: Annotated[float, Field(ge=0)] | None = None
    step: Count | None = None
    policy_version: Count | None = None
    reason: Annotated[str, Field(max_length=64)] | None = None

    @model_validator(mode="after")
    def _one_result(self) -> "CompletionIn":
        given = [name for name in ("verdict_ids", "rewards", "responses") if getattr(self, name) is not None]
        if len(given) > 1:
            rule = "give at most one of verdict_ids, rewards and responses"
            raise Invalid("The results are given twice.", errors=[FieldError(f"/{given[1]}", "one_of", rule)])
        return self

    def completion(self) -> Completion:
        digest = content_hash(self.model_dump(mode="json", exclude_none=True))
        return Completion(**self.model_dump(exclude={"responses"}), body_sha256=digest)


class CompleteIn(Strict):
    any_text = frozenset(("items",))  # each item names its own
    items: Annotated[list[CompletionIn], Field(max_length=LARGEST_LEASE)]


class CompletionOut(BaseModel):
    """`completed`, `already` (a repeated request), or `problem` with the problem of this item alone."""

    ordinal: int
    status: str
    problem: dict[str, Any] | None


class CompleteOut(BaseModel):
    items: list[CompletionOut]


class ReleaseItem(Strict):
    ordinal: Count


class ReleaseIn(Strict):
    """`items` null: all that the lease holds. The reason `too_few_valid` counts against the task."""

    items: Annotated[list[ReleaseItem], Field(max_length=LARGEST_LEASE)] | None = None
    reason: Annotated[str, Field(min_length=1, max_length=64)] = "released"

    @property
    def ordinals(self) -> list[int] | None:
        return None if self.items is None else [item.ordinal for item in self.items]


class ReleasedOut(BaseModel):
    """`open` (served again), `withdrawn` (tried too often), or `not_held`."""

    ordinal: int
    status: str


class ReleaseOut(BaseModel):
    items: list[ReleasedOut]


class ExtendedOut(BaseModel):
    expires_at: str


@router.post(
    "/leases/{lease_id}:extend",
    operation_id="leases_extend",
    responses=problems(NotFound, LeaseExpired, LeaseSuperseded, StoreBusy),
)
def extend(lease_id: LeaseId, caller: Trainer, services: ServicesHandle, body: Nothing | None = None) -> ExtendedOut:
    """Keep a lease: its whole time to live from now on. Call it every third of that."""
    with services.store.writing() as db:
        _check(db, lease_id, caller)
        return ExtendedOut(expires_at=leasing.extend(db, lease_id, clock(db)).isoformat())


@router.post(
    "/leases/{lease_id}:complete",
    operation_id="leases_complete",
    response_model_exclude_none=True,
    responses=problems(NotFound, LeaseExpired, LeaseSuperseded, CompletionConflict, Conflict, Invalid, StoreBusy),
)
def complete(lease_id: LeaseId, body: CompleteIn, caller: Trainer, services: ServicesHandle) -> CompleteOut:
    """Acknowledge groups whose step is in a durable checkpoint. Idempotent by (lease, ordinal)."""
    with services.store.reading() as db:
        _check(db, lease_id, caller)
    responses = {item.ordinal: item.responses for item in body.items if item.responses is not None}
    items = [item.completion() for item in body.items]
    holdout = caller.may(Scope.HOLDOUT_READ)
    store, engine = services.store, services.engine
    done = completing.complete(store, engine, lease_id, items, responses, actor=caller.key_id, holdout=holdout)
    return CompleteOut(items=[_completion_out(lease_id, item) for item in done.items])


@router.post(
    "/leases/{lease_id}:release",
    operation_id="leases_release",
    responses=problems(NotFound, LeaseExpired, LeaseSuperseded, Invalid, StoreBusy),
)
def release(lease_id: LeaseId, body: ReleaseIn, caller: Trainer, services: ServicesHandle) -> ReleaseOut:
    """Hand groups back: they are served again before anything new, with the same ordinals."""
    with services.store.writing() as db:
        _check(db, lease_id, caller)
        done = leasing.release(db, lease_id, body.ordinals, body.reason, actor=caller.key_id, now=clock(db))
        return ReleaseOut(items=[ReleasedOut(ordinal=r.ordinal, status=r.state or "not_held") for r in done])


def _check(db: ReadSession, lease_id: str, caller: Principal) -> None:
    visible(streams.get(db, leases.get(db, lease_id).stream_id), caller)


def _completion_out(lease_id: str, item: ItemResult) -> CompletionOut:
    problem = details(item.problem, f"/v1/leases/{lease_id}:complete", None) if item.problem else None
    if problem is not None:
        problem = {name: value for name, value in problem.items() if value is not None}
    return CompletionOut(ordinal=item.ordinal, status=item.status, problem=problem)
