"""The fixed vocabularies of the service: each word is spelled here and nowhere else."""

from enum import StrEnum


class TaskStatus(StrEnum):
    """`pending → active | quarantined | rejected`, `active ↔ quarantined`, each `→ retired`."""

    PENDING = "pending"
    ACTIVE = "active"
    QUARANTINED = "quarantined"
    REJECTED = "rejected"
    RETIRED = "retired"


class Split(StrEnum):
    TRAIN = "train"
    EVAL = "eval"
    HOLDOUT = "holdout"


class Scope(StrEnum):
    TASKS_READ = "tasks:read"
    TASKS_WRITE = "tasks:write"
    CURATE = "curate"
    VERIFY = "verify"
    EXECUTE = "execute"
    TRAIN = "train"
    REVIEW = "review"
    ANSWERS_READ = "answers:read"
    HOLDOUT_READ = "holdout:read"
    ANALYSE = "analyse"
    ADMIN = "admin"


class GateResult(StrEnum):
    """`error` is our failure: the gate is tried again, and the task stays pending."""

    PASS = "pass"
    FAIL = "fail"
    FLAG = "flag"
    ERROR = "error"
    NOT_APPLICABLE = "not_applicable"


class JobStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    DEAD = "dead"
    CANCELLED = "cancelled"


class Queue(StrEnum):
    """A slow kind of job never blocks another kind."""

    CPU = "hint.cpu"
    SANDBOX = "hint.sandbox"
    LLM = "hint.llm"


class AckMode(StrEnum):
    """What acknowledges a group: an explicit `:complete`, or its last attempt."""

    COMPLETE = "complete"
    GROUP = "group"


class OrdinalState(StrEnum):
    """`leased → completed | open (released, expired or restored: served again first) | withdrawn`."""

    LEASED = "leased"
    OPEN = "open"
    COMPLETED = "completed"
    WITHDRAWN = "withdrawn"


class LeaseState(StrEnum):
    OPEN = "open"
    CLOSED = "closed"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"


class ShortReason(StrEnum):
    """Why a lease holds what it holds."""

    TARGET_MET = "target_met"
    NO_SERVABLE_TASK = "no_servable_task"
    MAX_LAG = "max_lag"
    QUOTA = "quota"
    MAX_CANDIDATES = "max_candidates"
    PAUSED = "paused"
    VERIFIER_OUTAGE = "verifier_outage"
    ANSWER_SIZE = "answer_size"


class RunStatus(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
