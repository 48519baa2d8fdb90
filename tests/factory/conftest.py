"""What tests of the factory share: a runtime that does jobs in this process, and real workers."""

import logging
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from factory.hints import HintSender
from factory.registry import HANDLERS
from factory.runner import Handler, Runtime, run_by_id
from service.settings import Settings
from service.store import events, jobs
from service.store.engine import make_engine
from service.store.migrate import upgrade
from service.store.session import Store
from service.store.tables import Job
from service.words import Queue
from verifiers.engine import Engine

ROOT = Path(__file__).parents[2]
LEASE_S, SWEEP_S = 2.0, 0.3


@pytest.fixture(scope="session")
def text_engine() -> Iterator[Engine]:
    """An engine without a sandbox: text verifiers only."""
    engine = Engine(None, 1)
    yield engine
    engine.close()


class Inline:
    """Does jobs in this process, one at a time: claim, run, finish, as a worker does."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.store = runtime.store

    def file(self, kind: str, params: Mapping[str, Any], **more: Any) -> str:
        with self.store.writing() as db:
            return jobs.file(db, kind, params, actor="test", **more)

    def do(self, job_id: str, handlers: Mapping[str, Handler] = HANDLERS) -> Job:
        run_by_id(self.runtime, handlers, job_id)
        return self.get(job_id)

    def done(self, kind: str, **params: Any) -> Job:
        return self.do(self.file(kind, params))

    def get(self, job_id: str) -> Job:
        with self.store.reading() as db:
            return jobs.get(db, job_id)


@pytest.fixture
def inline(store: Store, settings: Settings, text_engine: Engine) -> Inline:
    return Inline(Runtime(store, lambda: text_engine, "inline", 60.0, settings))


class Worker:
    """A real worker process with its own database, for one broker; `effects` counts what its jobs did."""

    def __init__(self, data: Path, broker: str | None, database: str | None = None, **settings: str) -> None:
        self.prefix = f"tmtest{secrets.token_hex(4)}."
        self.environment = {
            "TASKMILL_DATA": str(data),
            "TASKMILL_JOB_LEASE_S": str(LEASE_S),
            "TASKMILL_SWEEP_S": str(SWEEP_S),
            "TASKMILL_WORKER_PROCESSES": "2",
            "TASKMILL_QUEUE_PREFIX": self.prefix,
            **({"TASKMILL_BROKER_URL": broker} if broker else {}),
            **({"TASKMILL_DATABASE_URL": database} if database else {}),
            **settings,
        }
        self.settings = Settings(data=data, **({"database_url": database} if database else {}))
        upgrade(self.settings.sqlalchemy_url)
        self.hints = HintSender(broker, prefix=self.prefix) if broker else None
        offer = self.hints.offer if self.hints else lambda _: None
        self.store = Store(make_engine(self.settings.sqlalchemy_url, pool_size=4), offer_hints=offer)
        self.log = data / "worker.log"
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, str(ROOT / "tests/factory/worker_process.py")],
                env=os.environ | self.environment | {"PYTHONPATH": str(ROOT)},
                cwd=ROOT,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def file(self, kind: str, **params: Any) -> str:
        with self.store.writing() as db:
            return jobs.file(db, kind, params, actor="test", queue=Queue.CPU)

    def job(self, job_id: str) -> Job:
        with self.store.reading() as db:
            return jobs.get(db, job_id)

    def status(self, job_id: str) -> str:
        return self.job(job_id).status

    def effects(self, job_id: str) -> list[int]:
        with self.store.reading() as db:
            return sorted(data["n"] for data in events.data_of(db, job_id, "test.effect"))

    def wait(self, job_id: str, status: str, within_s: float = 25.0) -> Job:
        deadline = time.monotonic() + within_s
        while (job := self.job(job_id)).status != status:
            if time.monotonic() > deadline:
                pytest.fail(f"{job.kind} is {job.status} {job.error}, not {status}\n{self.log.read_text()[-3000:]}")
            time.sleep(0.02)
        return job

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(timeout=5)
        if self.hints:
            self.hints.close()
        self.store.close()


@pytest.fixture
def make_worker(tmp_path: Path) -> Iterator[Callable[..., Worker]]:
    made: list[Worker] = []

    def make(broker: str | None = None, **settings: str) -> Worker:
        data = tmp_path / f"worker{len(made)}"
        data.mkdir()
        made.append(Worker(data, broker, **settings))
        return made[-1]

    yield make
    for worker in made:
        worker.close()


@pytest.fixture(autouse=True)
def _jobs_may_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "taskmill")
