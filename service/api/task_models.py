"""Tasks as the API answers them. No answer is in any of these but `TaskAnswersOut`."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel

from service.store import tasks
from service.store.admission import Admitted
from service.store.ids import task_ref
from service.store.tasks import Listed, Whole


class SubmittedOut(BaseModel):
    """What became of a submission. `duplicate_of` names the task that it equals."""

    id: str
    version: int
    ref: str
    status: str
    split: str
    family_id: str
    content_hash: str
    duplicate_of: str | None
    near_duplicates: list[dict[str, Any]]


class HeldOut(BaseModel):
    """The submission waits for a person; what it resembles may not be named to this key."""

    status: str


class VerifierName(BaseModel):
    name: str


class VerifierUse(VerifierName):
    """A verifier as the task names it: how answers are compared, never what they are compared with."""

    params: dict[str, Any]


class TaskSummary(BaseModel):
    """One row of a list. `prompt_head` is the beginning of the prompt's text."""

    id: str
    version: int
    ref: str
    domain: str
    status: str
    split: str
    verifier: VerifierName
    licence: str | None
    generator: str | None
    tags: list[str]
    prompt_head: str
    created_at: datetime
    updated_at: datetime


class TasksOut(BaseModel):
    items: list[TaskSummary]
    next: str | None
    count: int | None
    """Matches in all, counted up to 10,000; only with `?count=true`."""


class SourceOut(BaseModel):
    uri: str
    licence: str
    retrieved_at: datetime | None
    span: str | None


class AnswersOut(BaseModel):
    """What the author knows. Reading it is an exposure event."""

    reference: dict[str, Any]
    gold: list[Any]
    nulls: list[Any]
    equivalents: list[Any]
    mutants: list[Any]


class TaskOut(TaskSummary):
    """A task without its answers, unless they were asked for and may be read."""

    family_id: str
    content_hash: str
    task_type: str
    prompt: list[dict[str, Any]]
    verifier: VerifierUse
    environment: dict[str, Any]
    limits: dict[str, Any]
    features: dict[str, Any]
    sources: list[SourceOut]
    guess_floor: float
    answers: AnswersOut | None


class ParentOut(BaseModel):
    task_id: str
    version: int
    op: str
    op_version: str
    seed: int | None


class LineageOut(BaseModel):
    """Edges up and down, and how the newest version was made (`origin`, null for submissions)."""

    family_id: str
    origin: dict[str, Any] | None
    parents: list[ParentOut]
    children: list[ParentOut]


class ReceiptOut(BaseModel):
    """`current`: of the gate and verifier versions of now; others count no more."""

    id: str
    version: int
    gate: str
    gate_version: str
    result: str
    code: str
    detail: str
    metric: float | None
    threshold: float | None
    n_exec: int
    seed: int
    verifier: str
    verifier_version: str
    image: str | None
    evidence_sha256: str | None
    duration_ms: float
    created_at: datetime
    current: bool


class ReceiptsOut(BaseModel):
    items: list[ReceiptOut]
    next: str | None


class EventOut(BaseModel):
    id: str
    kind: str
    actor: str
    reason: str
    data: dict[str, Any]
    created_at: datetime


class EventsOut(BaseModel):
    items: list[EventOut]
    next: str | None


def submitted(found: Admitted) -> SubmittedOut:
    return SubmittedOut(
        id=found.task_id,
        version=found.version,
        ref=task_ref(found.task_id, found.version),
        status=found.status,
        split=found.split,
        family_id=found.family_id,
        content_hash=found.content_hash,
        duplicate_of=found.duplicate_of,
        near_duplicates=[],
    )


def summary(row: Listed) -> TaskSummary:
    return TaskSummary.model_validate(_summary(row))


def whole(found: Whole) -> TaskOut:
    """One version in full."""
    version = found.version
    head = version.prompt_text[: tasks.HEAD_CHARACTERS]
    fields = _summary(Listed(found.task, head, found.tags))
    sources = [SourceOut(uri=s.uri, licence=s.licence, retrieved_at=s.retrieved_at, span=s.span) for s in found.sources]
    return TaskOut.model_validate(
        fields
        | {"version": version.version, "ref": task_ref(found.task.id, version.version)}
        | {"family_id": found.task.family_id, "content_hash": version.content_hash}
        | {name: getattr(version, name) for name in ("prompt", "environment", "limits", "features", "guess_floor")}
        | {"task_type": found.task.task_type, "verifier": version.verifier, "sources": sources}
        | {"answers": tasks.dump_answers(found.answers) if found.answers else None}
    )


def _summary(row: Listed) -> dict[str, Any]:
    task = row.task
    names = ("id", "version", "domain", "status", "split", "licence", "generator")
    return {name: getattr(task, name) for name in names} | {
        "ref": task_ref(task.id, task.version),
        "verifier": {"name": task.verifier},
        "tags": list(row.tags),
        "prompt_head": row.prompt_head,
        "created_at": task.created_at,
        "updated_at": task.updated_at,
    }
