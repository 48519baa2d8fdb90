"""Servable tasks and streams for the tests of this folder."""

import itertools
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import update

from service.store import streams
from service.store.admission import admit, prepare
from service.store.drafts import CandidateDraft
from service.store.required_gates import current_key
from service.store.session import Store
from service.store.splits import SplitRule
from service.store.streams import StreamRecord
from service.store.tables import Task
from service.stream import creation
from service.stream.contract import StreamRequest
from service.words import Split, TaskStatus

SECRET = b"a secret of this test"
NOW = datetime(2026, 12, 1, tzinfo=UTC)
RULE = SplitRule(b"key", 0.0, 0.0)

_number = itertools.count()


def add_tasks(store: Store, counts: Mapping[str, int], split: Split = Split.TRAIN) -> list[str]:
    """Active tasks with current receipts, so many of each domain; their ids in the order of domains."""
    ids: list[str] = []
    for domain, count in counts.items():
        batch = [prepare(_draft(domain, split)) for _ in range(count)]
        with store.writing() as db:
            made = [item.task_id for item in admit(db, batch, actor="test", rule=RULE, may_split=True)]
            key = current_key("submitted", "exact")
            db.execute(update(Task).where(Task.id.in_(made)).values(status=TaskStatus.ACTIVE, receipts_key=key))
        ids += made
    return ids


def set_tasks(store: Store, ids: Sequence[str], **values: Any) -> None:
    with store.writing() as db:
        db.execute(update(Task).where(Task.id.in_(ids)).values(**values))


def make_stream(store: Store, **body: Any) -> StreamRecord:
    request = StreamRequest.model_validate({"name": f"stream-{next(_number)}", "group_size": 4} | body)
    return creation.make(store, request, secret=SECRET, actor="test").stream


def reload(store: Store, stream: StreamRecord) -> StreamRecord:
    with store.reading() as db:
        return streams.get(db, stream.id)


def _draft(domain: str, split: Split) -> CandidateDraft:
    number = next(_number)
    return CandidateDraft.model_validate(
        {
            "domain": domain,
            "prompt": [{"role": "user", "content": f"Say {number}."}],
            "verifier": {"name": "exact"},
            "reference": {"answer": f"word{number}"},
            "split": split,
            "environment": {"tools": [{"name": "echo"}]},
        }
    )
