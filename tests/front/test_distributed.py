"""The distributed mode with its parts started by hand: database, broker, API and worker as separate processes."""

from pathlib import Path

import pytest

from processes import Process, free_port, run_to_end, wait_ready
from taskmill_client import Client
from tests.conftest import service_url


@pytest.mark.pg
@pytest.mark.parametrize(
    "broker", [pytest.param("redis", marks=pytest.mark.redis), pytest.param("amqp", marks=pytest.mark.amqp)]
)
@pytest.mark.timeout(180)
def test_jobs_run_through_api_broker_and_worker(broker: str, tmp_path: Path, postgresql_url: str) -> None:
    """A generate job filed over HTTP reaches a worker in another process and its tasks are served."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    environment = {
        "TASKMILL_DATABASE_URL": postgresql_url.replace("+psycopg", ""),
        "TASKMILL_BROKER_URL": service_url(broker),
        "TASKMILL_SECRET": "a secret that all parts share",
        "TASKMILL_DATA": str(tmp_path),
        "TASKMILL_SWEEP_S": "60",  # longer than the test: only a hint through the broker can start the job in time
    }
    assert run_to_end("db", "upgrade", **environment).returncode == 0
    key = run_to_end(
        "keys", "create", "test", "--scope", "admin", "--scope", "tasks:read", "--scope", "curate", **environment
    )
    assert key.returncode == 0, key.stderr
    with (
        Process(tmp_path / "api.log", "api", "--port", str(port), **environment) as api,
        Process(tmp_path / "worker.log", "worker", **environment) as worker,
    ):
        wait_ready(url, api)
        with Client(url, key.stdout.strip()) as client:
            job = client.jobs.create("factory.generate", {"generator": "text.reverse", "accepted": 20, "seed": 1})
            done = client.jobs.wait(job["id"], timeout_s=90)
            assert done["status"] == "done", (done, worker.tail(), api.tail())
            assert done["counts"]["active"] >= 20
