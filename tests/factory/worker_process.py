"""A real worker process with kinds of jobs that only tests need. A script; settings come from the environment."""

import logging
import os
import signal
import sys
import time
from datetime import UTC, datetime

from sqlalchemy import insert

from factory.runner import Outage, Progress, Step, Steps, Work
from factory.worker import run_worker
from service.settings import Settings
from service.store.ids import new_id
from service.store.session import WriteSession
from service.store.tables import Event


def effect(work: Work, number: int) -> Step:
    """Writes one row and moves the cursor: the effect that must happen once."""

    def write(db: WriteSession) -> Progress:
        row = {"id": new_id("evt"), "subject": work.claim.id, "kind": "test.effect", "actor": "test", "reason": ""}
        db.execute(insert(Event), [row | {"data": {"n": number, "pid": os.getpid()}, "created_at": datetime.now(UTC)}])
        return Progress({"next": number + 1}, {"effects": number + 1})

    return write


def count(work: Work) -> Steps:
    """`steps` effects, `pause_s` apart."""
    for number in range(work.claim.cursor.get("next", 0), work.claim.params.get("steps", 1)):
        deadline = time.monotonic() + work.claim.params.get("pause_s", 0)
        while time.monotonic() < deadline:
            work.safe_point()
            time.sleep(0.01)
        yield effect(work, number)
    return {"pid": os.getpid()}


def poison(work: Work) -> Steps:
    os.kill(os.getpid(), signal.SIGKILL)
    yield effect(work, 0)
    return {}


def broken(work: Work) -> Steps:
    yield effect(work, work.claim.cursor.get("next", 0))
    raise ValueError("always")


def outage(work: Work) -> Steps:
    yield effect(work, 0)
    raise Outage("the sandbox is down")


HANDLERS = {"test.count": count, "test.poison": poison, "test.broken": broken, "test.outage": outage}

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(name)s %(message)s")
    sys.exit(run_worker(Settings(), HANDLERS))
