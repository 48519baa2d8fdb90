"""The shapes of requests and answers. Times are RFC 3339 text in UTC; `ref` is `tm:<task_id>:<version>`."""

from collections.abc import Mapping, Sequence
from typing import Any, Generic, NotRequired, TypedDict, TypeVar

T = TypeVar("T")
Json = Mapping[str, Any]


class Page(TypedDict, Generic[T]):
    items: list[T]
    next: str | None


class Message(TypedDict):
    role: str
    content: str


class VerifierChoice(TypedDict):
    name: str
    params: NotRequired[Json]


class TaskDraft(TypedDict):
    """A task as it is submitted."""

    domain: str
    prompt: Sequence[Message]
    verifier: VerifierChoice
    reference: NotRequired[Json]
    gold: NotRequired[Sequence[str | Json]]
    nulls: NotRequired[Sequence[str | Json]]
    environment: NotRequired[Json]
    limits: NotRequired[Json]
    source: NotRequired[Json]
    parents: NotRequired[Sequence[Json]]
    features: NotRequired[Mapping[str, int | float | str]]
    tags: NotRequired[Sequence[str]]
    split: NotRequired[str]


class Created(TypedDict):
    id: str
    version: int
    status: str
    split: str
    family_id: str
    content_hash: str
    ref: str
    near_duplicates: list[Any]
    duplicate_of: NotRequired[str]


class TaskSummary(TypedDict):
    id: str
    version: int
    ref: str
    domain: str
    status: str
    split: str
    verifier: Json
    licence: str | None
    generator: str | None
    tags: list[str]
    prompt_head: str
    created_at: str
    updated_at: str


class Answers(TypedDict):
    """What a task's key holder with `answers:read` may see."""

    reference: Json
    gold: list[str | Json]
    nulls: list[str | Json]


class Task(TypedDict):
    """One task; `answers` comes only when it is asked for."""

    id: str
    version: int
    ref: str
    domain: str
    status: str
    split: str
    verifier: Json
    tags: list[str]
    prompt: list[Message]
    environment: Json
    limits: Json
    features: Json
    sources: list[Json]
    family_id: str
    content_hash: str
    answers: NotRequired[Answers]


class ImportLine(TypedDict, total=False):
    """The answer to one line of the file (`line`, `status`, and `id` or `problem`), or at the end the `summary`."""

    line: int
    status: str
    id: str
    problem: Json
    summary: Json


class Attempt(TypedDict):
    """Who answered: counted once for each group and policy version."""

    policy: NotRequired[str]
    policy_version: NotRequired[int]
    run: NotRequired[str]
    group_id: NotRequired[str]
    tokens: NotRequired[int]


class VerifyItem(TypedDict):
    """One response to judge: name the task by `ref`, by `task_id` (and `version`), or give it inline as `task`."""

    id: NotRequired[str]
    ref: NotRequired[str]
    task_id: NotRequired[str]
    version: NotRequired[int]
    task: NotRequired[Json]
    response: NotRequired[str]
    trajectory: NotRequired[Json]
    attempt: NotRequired[Attempt]


class Verdict(TypedDict):
    """`reward` is None when the failure was the service's own. In a batch, `problem` stands where an item failed."""

    id: str
    attempt_id: str
    outcome: str
    reward: float | None
    process: float | None
    code: str
    detail: str
    extracted: str | None
    tier: str
    trust: str
    verifier: Json
    fingerprint: str
    task: Json | None
    seed: int | None
    cost: Json
    problem: NotRequired[Json]


class VerifyBatch(TypedDict):
    items: list[Verdict]


class ExecuteRequest(TypedDict):
    language: str
    code: str
    files: NotRequired[Mapping[str, str]]
    stdin: NotRequired[str]
    args: NotRequired[Sequence[str]]
    limits: NotRequired[Json]
    image: NotRequired[str]
    fetch: NotRequired[Sequence[str]]


class Execution(TypedDict):
    status: str
    stage: str
    exit_code: int | None
    signal: str | int | None
    stdout: str
    stderr: str
    stdout_truncated: bool
    stderr_truncated: bool
    wall_s: float
    cpu_s: float
    memory_mb: float | None
    limits_enforced: Any
    artefacts: Json


class Stream(TypedDict):
    id: str
    name: str
    split: str
    domains: Json
    policy: Json
    lineage: str
    group_size: int
    seed: int
    max_lag: int
    ack: str
    snapshot_hash: str
    snapshot_count: int
    next_ordinal: int
    generation: int
    consumer: str | None
    policy_version: int
    created_at: str
    reopened: NotRequired[int]


class LeaseItem(TypedDict):
    ordinal: int
    group_id: str
    ref: str
    domain: str
    prompt: list[Message]
    tools: list[Json]
    group_size: int
    limits: Json
    p: float
    p_informative: float
    trust_tier: str
    why: Any
    tries: int


class Lease(TypedDict):
    lease_id: str | None
    expires_at: str | None
    ttl_s: float | None
    items: list[LeaseItem]
    short: bool
    reason: str | None
    retry_after_s: NotRequired[float | None]


class Extended(TypedDict):
    expires_at: str


class Completion(TypedDict):
    """The acknowledgement of one ordinal, with verdict ids, rewards, or responses still to be judged."""

    ordinal: int
    verdict_ids: NotRequired[Sequence[str]]
    rewards: NotRequired[Sequence[float | None]]
    responses: NotRequired[Sequence[str]]
    weight: NotRequired[float]
    tokens: NotRequired[int]
    mean_abs_advantage: NotRequired[float]
    step: NotRequired[int]
    policy_version: NotRequired[int]
    reason: NotRequired[str]


class CompletionResult(TypedDict):
    """`status` is `completed` or `already`; `problem` says why an item was not acknowledged."""

    ordinal: int
    status: NotRequired[str]
    problem: NotRequired[Json]


class CompletionResults(TypedDict):
    items: list[CompletionResult]


class OrdinalRecord(TypedDict):
    ordinal: int
    ref: str
    state: str
    tries: int
    group_id: str
    lease_id: str | None
    step: int | None
    weight: float | None
    reason: str | None


class CheckpointToken(TypedDict):
    token: str


class Job(TypedDict):
    id: str
    kind: str
    params: Json
    queue: str
    status: str
    progress: Any
    counts: Json
    cursor: Any
    result: Any
    error: Any
    attempts: int
    retries: int
    created_at: str
    started_at: str | None
    finished_at: str | None
    cancel_requested: bool


class Point(TypedDict):
    step: int
    name: str
    value: float


class Run(TypedDict):
    id: str
    name: str
    kind: str
    policy: str
    stream_id: str | None
    config: Json
    status: str
    summary: Json
