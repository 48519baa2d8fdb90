"""All tables. Importing this package registers every one of them with the metadata."""

from service.store.tables.access import ApiKey, Idempotency
from service.store.tables.attempts import Attempt, VerdictRow
from service.store.tables.base import Base
from service.store.tables.jobs import Job, Periodic, WorkerRow
from service.store.tables.streams import (
    Difficulty,
    Lease,
    OrdinalRow,
    Run,
    RunMetric,
    Snapshot,
    SnapshotMember,
    Stream,
)
from service.store.tables.tasks import (
    Event,
    Evidence,
    Exposure,
    Family,
    Receipt,
    Task,
    TaskAnswer,
    TaskParent,
    TaskSource,
    TaskTag,
    TaskVersion,
)

__all__ = [
    "ApiKey",
    "Attempt",
    "Base",
    "Difficulty",
    "Event",
    "Evidence",
    "Exposure",
    "Family",
    "Idempotency",
    "Job",
    "Lease",
    "OrdinalRow",
    "Periodic",
    "Receipt",
    "Run",
    "RunMetric",
    "Snapshot",
    "SnapshotMember",
    "Stream",
    "Task",
    "TaskAnswer",
    "TaskParent",
    "TaskSource",
    "TaskTag",
    "TaskVersion",
    "VerdictRow",
    "WorkerRow",
]
