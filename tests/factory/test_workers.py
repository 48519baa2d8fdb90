"""Real workers, real brokers, real kills: what is filed is done, and its effect happens once."""

import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable

import psutil
import pytest

from factory.celery_app import make_app
from factory.hints import HintSender, publish
from service.settings import Settings
from service.store import jobs, workers
from service.store.session import Store
from service.words import Queue
from tests.conftest import service_url, wait_until
from tests.factory.conftest import LEASE_S, Worker

MakeWorker = Callable[..., Worker]
BROKERS = [
    pytest.param(None, id="memory"),
    pytest.param("redis", id="redis", marks=pytest.mark.redis),
    pytest.param("amqp", id="amqp", marks=pytest.mark.amqp),
]


def url_of(broker: str | None) -> str | None:
    return service_url(broker) if broker else None


@pytest.mark.parametrize("broker", BROKERS)
@pytest.mark.faults
def test_kill9_worker_resumes(make_worker: MakeWorker, broker: str | None) -> None:
    """D16: a worker killed in the middle of a job loses nothing; another one goes on, and each effect happens once."""
    worker = make_worker(url_of(broker))
    first = worker.start()
    job = worker.file("test.count", steps=12, pause_s=0.15)
    wait_until(lambda: len(worker.effects(job)) >= 3, within_s=20)
    children = psutil.Process(first.pid).children(recursive=True)
    first.kill()
    first.wait(timeout=5)
    killed_at = time.monotonic()
    worker.start()
    found = worker.wait(job, "done", within_s=LEASE_S + 10 + 3)
    assert time.monotonic() - killed_at < LEASE_S + 10
    assert worker.effects(job) == list(range(12))
    assert found.attempts == 2
    wait_until(lambda: not any(child.is_running() and child.status() != "zombie" for child in children), within_s=5)


@pytest.mark.parametrize("broker", BROKERS)
@pytest.mark.faults
def test_poison_is_dead_after_3(make_worker: MakeWorker, broker: str | None) -> None:
    """D17: a job that kills its worker is dead after three attempts; a job beside it is not disturbed."""
    worker = make_worker(url_of(broker))
    worker.start()
    beside = worker.file("test.count", steps=40, pause_s=0.2)
    worker.wait(beside, "running")
    poison = worker.file("test.poison")
    # A hint that was on its way to the killed child is lost with it, and sent again after 30 s.
    dead = worker.wait(poison, "dead", within_s=3 * LEASE_S + 75)
    assert (dead.attempts, dead.error["code"]) == (3, "attempts_exhausted")
    assert worker.wait(beside, "done").attempts == 1
    assert worker.effects(beside) == list(range(40))


@pytest.mark.parametrize("broker", BROKERS)
def test_duplicate_hints_are_harmless(make_worker: MakeWorker, broker: str | None) -> None:
    """D15: a hint may arrive any number of times, also while the job runs; the effect happens once."""
    worker = make_worker(url_of(broker))
    worker.start()
    job = worker.file("test.count", steps=4, pause_s=0.1)
    if url := url_of(broker):
        app = make_app(url, prefix=worker.prefix)
        for _ in range(3):
            publish(app, job, prefix=worker.prefix)
        worker.wait(job, "running")
        publish(app, job, prefix=worker.prefix)
        app.close()
    after = worker.file("test.count")
    assert worker.wait(job, "done").attempts == 1
    worker.wait(after, "done")
    assert worker.effects(job) == [0, 1, 2, 3]


@pytest.mark.parametrize("broker", BROKERS)
def test_a_graceful_end_hands_jobs_back(make_worker: MakeWorker, broker: str | None) -> None:
    """SIGTERM: a running job stops at a safe point, waits again, and has lost no attempt."""
    worker = make_worker(url_of(broker))
    process = worker.start()
    job = worker.file("test.count", steps=500, pause_s=0.05)
    wait_until(lambda: len(worker.effects(job)) >= 2, within_s=20)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == 0
    left = worker.job(job)
    assert (left.status, left.attempts, left.retries, left.error["code"]) == ("queued", 0, 1, "draining")
    assert worker.effects(job) == list(range(left.cursor["next"]))
    with worker.store.reading() as db:
        assert workers.alive(db, within_s=60) == []


@pytest.mark.redis
@pytest.mark.faults
def test_lost_hints_lose_no_job(make_worker: MakeWorker) -> None:
    """Every hint is lost (D14, D18): jobs that wait too long are taken from the database, and each runs once."""
    worker = make_worker(service_url("redis"), TASKMILL_JOB_RESCUE_S="1")
    assert worker.hints
    worker.hints.close()
    worker.start()
    filed = [worker.file("test.count", steps=2) for _ in range(5)]
    for job in filed:
        worker.wait(job, "done", within_s=30)
        assert worker.effects(job) == [0, 1]


@pytest.mark.redis
@pytest.mark.faults
def test_redis_restart_recovers(make_worker: MakeWorker) -> None:
    """D18: after the broker was gone for a while, jobs filed meanwhile and later are done, each once."""
    binary = shutil.which("redis-server")
    if binary is None:
        pytest.skip("redis-server is not here: `apt-get install redis-server`")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    broker = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        worker = make_worker(f"redis://127.0.0.1:{port}/0", TASKMILL_JOB_RESCUE_S="2")
        worker.start()
        worker.wait(worker.file("test.count"), "done", within_s=40)
        broker.kill()
        broker.wait(timeout=5)
        meanwhile = worker.file("test.count", steps=2)
        worker.wait(meanwhile, "done", within_s=40)
        broker = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        later = [worker.file("test.count", steps=2) for _ in range(3)]
        for job in later:
            worker.wait(job, "done", within_s=60)
        assert [worker.effects(job) for job in (meanwhile, *later)] == [[0, 1]] * 4
    finally:
        broker.kill()
        broker.wait(timeout=5)


def test_embedded_latency(make_worker: MakeWorker) -> None:
    """D32: an embedded worker starts a job soon after it was filed: p95 below 300 ms."""
    worker = make_worker()
    worker.start()
    worker.wait(worker.file("test.count"), "done")
    waits = []
    for _ in range(20):
        job = worker.wait(worker.file("test.count"), "done")
        assert job.started_at
        waits.append((job.started_at - job.created_at).total_seconds())
    assert sorted(waits)[18] < 0.3, waits


def test_running_job_stops_when_cancelled(make_worker: MakeWorker) -> None:
    worker = make_worker()
    worker.start()
    job = worker.file("test.count", steps=1000, pause_s=0.05)
    worker.wait(job, "running")
    with worker.store.writing() as db:
        jobs.cancel(db, job)
    stopped = worker.wait(job, "cancelled", within_s=10)
    assert stopped.result == {"stop_reason": "cancelled"}
    assert worker.effects(job) == list(range(stopped.cursor["next"]))


def test_engine_pid_guard(sqlite_store: Store) -> None:
    """D21: an engine that came over a fork refuses to serve the child; the parent's still works."""
    with sqlite_store.reading() as db:
        jobs.page(db)
    child = os.fork()
    if child == 0:
        try:
            with sqlite_store.reading() as db:
                jobs.page(db)
        except RuntimeError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    with sqlite_store.reading() as db:
        jobs.page(db)


@pytest.mark.faults
def test_children_are_replaced_and_no_engine_is_inherited(make_worker: MakeWorker) -> None:
    """D21: idle children that are killed may take the pool's lock with them; the next jobs are done all the same."""
    worker = make_worker(TASKMILL_JOB_RESCUE_S="2")
    process = worker.start()
    before = worker.wait(worker.file("test.count"), "done").result["pid"]
    for child in psutil.Process(process.pid).children():
        child.kill()
    filed = [worker.file("test.count", steps=2) for _ in range(3)]
    assert before not in {worker.wait(job, "done", within_s=60).result["pid"] for job in filed}
    assert [worker.effects(job) for job in filed] == [[0, 1]] * 3


def silent_port() -> socket.socket:
    """A port that takes connections and never says a word."""
    server = socket.create_server(("127.0.0.1", 0), backlog=1)
    return server


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
@pytest.mark.parametrize("silent", [False, True])
def test_broker_down_still_accepts(sqlite_store: Store, settings: Settings, scheme: str, silent: bool) -> None:
    """D14: with a broker that refuses or says nothing, filing a job takes no longer, and the job is there."""
    server = silent_port()
    port = server.getsockname()[1]
    if not silent:
        server.close()
    sender = HintSender(f"{scheme}://127.0.0.1:{port}//")
    store = Store(sqlite_store.engine, offer_hints=sender.offer)
    took = []
    for _ in range(5):
        started = time.monotonic()
        with store.writing() as db:
            job = jobs.file(db, "test.any", {}, actor="test", queue=Queue.CPU)
        took.append(time.monotonic() - started)
        with store.reading() as db:
            assert jobs.get(db, job).status == "queued"
    assert sorted(took)[2] < 0.2
    if not silent:
        wait_until(lambda: sender.dropped == 5, within_s=20)
    started = time.monotonic()
    sender.close(within_s=0.5)
    assert time.monotonic() - started < 2
    server.close()


def test_a_full_queue_of_hints_drops_and_counts() -> None:
    """A broker that hangs cannot fill the memory: beyond the queue's size hints are dropped and counted."""
    server = silent_port()
    sender = HintSender(f"redis://127.0.0.1:{server.getsockname()[1]}/0")
    done = threading.Event()
    threading.Thread(target=lambda: (sender.offer([f"job_{n}" for n in range(1500)]), done.set()), daemon=True).start()
    assert done.wait(timeout=2)
    assert sender.dropped >= 498
    sender.close(within_s=0.1)
    server.close()
