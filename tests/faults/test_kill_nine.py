"""SIGKILL of the API, the worker and the trainer at random moments: nothing served is lost or counted twice, no job is
lost, and after restarts the run finishes.

Every process is the real one, started as in the distributed mode, on SQLite with short leases. The seed of the kills is
printed, so a failure can be told again.
"""

import json
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from processes import Process, free_port, run_to_end, wait_ready
from service.settings import Settings
from service.store.engine import make_engine
from service.store.session import Store
from service.store.tables import Attempt, Difficulty, Job, OrdinalRow, Run, Task, VerdictRow
from taskmill_client import Client

KILLS = 24
STEPS, GROUPS, GROUP_SIZE = 120, 8, 4
GENERATE = [
    {"generator": "text.reverse", "knobs": {"length": 3, "wording": "terse"}, "seed": seed, "accepted": 60}
    for seed in range(8)
]

TRAIN = """
[run]
name = "kill"
out_dir = "{out}"
max_steps = {steps}
[model]
layers = 1
dim = 32
heads = 2
[stream]
url = "{url}"
domains = {{ text = 1.0 }}
policy = {{ kind = "signal" }}
[rollout]
group_size = {group_size}
groups_per_step = {groups}
max_new_tokens = 6
[ckpt]
every = 3
[sft]
steps = 5
[eval]
tasks_per_domain = 20
"""


class Fleet:
    """API, worker and trainer of one data folder, killed and restarted at will."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.environment = {
            "TASKMILL_DATA": str(self.data),
            "TASKMILL_PORT": str(port),
            "TASKMILL_JOB_LEASE_S": "3",
            "TASKMILL_SWEEP_S": "0.5",
            "TASKMILL_VERIFY_WORKERS": "1",
            "TASKMILL_WORKER_PROCESSES": "1",
            "TASKMILL_SPLIT_HOLDOUT_SHARE": "0",
        }
        made = run_to_end("db", "upgrade", **self.environment)
        assert made.returncode == 0, made.stderr
        self.key = run_to_end("keys", "create", "test", *_scopes(), **self.environment).stdout.strip()
        self.api = Process(folder / "api.log", "api", **self.environment)
        self.worker = Process(folder / "worker.log", "worker", **self.environment)
        config = folder / "train.toml"
        config.write_text(
            TRAIN.format(out=folder / "run", url=self.url, steps=STEPS, groups=GROUPS, group_size=GROUP_SIZE)
        )
        environment = self.environment | {"TASKMILL_KEY": self.key}
        self.first = Process(folder / "trainer.log", "train", str(config), **environment)
        self.again = Process(folder / "trainer.log", "train", str(config), "--resume", **environment)
        self.trainer = self.first

    def start_trainer(self) -> None:
        """Go on from the newest checkpoint; begin anew when there is none yet."""
        self.trainer = self.again if (self.folder / "run" / "LATEST").exists() else self.first
        self.trainer.start()

    def stop(self) -> None:
        for process in (self.trainer, self.worker, self.api):
            process.stop()


def _scopes() -> list[str]:
    from service.words import Scope

    return [part for scope in Scope for part in ("--scope", str(scope))]


@pytest.fixture
def fleet(tmp_path: Path) -> Any:
    found = Fleet(tmp_path)
    yield found
    found.stop()


@pytest.mark.faults
@pytest.mark.timeout(900)
def test_kills_lose_nothing_and_count_nothing_twice(fleet: Fleet) -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'taskmill[trainer]' adds it")
    seed = int(os.environ.get("TASKMILL_KILL_SEED", random.SystemRandom().randrange(10**6)))
    print(f"TASKMILL_KILL_SEED={seed}")
    dice = random.Random(seed)
    fleet.api.start()
    fleet.worker.start()
    wait_ready(fleet.url, fleet.api)
    with Client(fleet.url, fleet.key) as client:
        jobs = [client.jobs.create("factory.generate", params)["id"] for params in GENERATE]
    killed = _kill_at_random(fleet, dice)
    print(dict(killed))
    assert sum(killed.values()) >= 20, killed
    assert min(killed[name] for name in ("api", "worker", "trainer")) >= 3, killed
    _run_to_the_end(fleet, jobs)
    fleet.stop()
    _check_jobs(fleet, jobs)
    _check_stream(fleet)


def _kill_at_random(fleet: Fleet, dice: random.Random) -> Counter[str]:
    """Kill one of the three, restart it, and again. The trainer starts once there is something to train on.

    Each is left alone for some seconds after its start: killed sooner, it would never do anything worth losing.
    """
    killed: Counter[str] = Counter()
    grace = {"api": 1.0, "worker": 4.0, "trainer": 6.0}
    started = {"api": time.monotonic(), "worker": time.monotonic()}
    while sum(killed.values()) < KILLS:
        time.sleep(dice.uniform(0.1, 1.0))  # house: H40 the moment of a kill is random, not a wait
        now = time.monotonic()
        if "trainer" not in started and _active(fleet) >= 100:
            fleet.start_trainer()
            started["trainer"] = now
        ripe = [name for name, since in sorted(started.items()) if now - since > grace[name]]
        if not ripe:
            continue
        rarest = min(ripe, key=lambda name: killed[name])  # or the one that starts fastest would have nearly all
        victim = rarest if dice.random() < 0.6 else dice.choice(ripe)
        process: Process = getattr(fleet, victim)
        if victim == "trainer" and process.popen is not None and process.popen.poll() == 0:
            break  # the run has ended already
        assert process.alive, f"{victim} ended by itself\n{process.tail()}"
        process.kill()
        killed[victim] += 1
        if victim == "trainer":
            fleet.start_trainer()
        else:
            process.start()
        started[victim] = time.monotonic()
    return killed


def _active(fleet: Fleet) -> int:
    with _store(fleet).reading() as db:
        return db.scalar(select(func.count()).select_from(Task).where(Task.status == "active")) or 0


def _store(fleet: Fleet) -> Store:
    return Store(make_engine(Settings(data=fleet.data).sqlalchemy_url, pool_size=2))


def _run_to_the_end(fleet: Fleet, jobs: list[str]) -> None:
    wait_ready(fleet.url, fleet.api)
    deadline = time.monotonic() + 400
    while time.monotonic() < deadline:
        if fleet.trainer.popen is not None and not fleet.trainer.alive:
            code = fleet.trainer.popen.returncode
            assert code == 0, f"the trainer ended with {code}\n{fleet.trainer.tail()}\n{fleet.api.tail()}"
            break
        time.sleep(0.05)
    else:
        pytest.fail(f"the run did not end\n{fleet.trainer.tail()}")
    with Client(fleet.url, fleet.key) as client:
        for job in jobs:
            done = client.jobs.wait(job, timeout_s=120)
            assert done["status"] == "done", done


def _check_jobs(fleet: Fleet, jobs: list[str]) -> None:
    """Each job made what it promised, once: as many tasks as its counts say, none from the same candidate twice."""
    with _store(fleet).reading() as db:
        counts = [db.get_one(Job, job).counts for job in jobs]
        active = db.scalar(select(func.count()).select_from(Task).where(Task.status == "active"))
        duplicates = db.execute(
            select(Task.identity_hash).where(Task.live).group_by(Task.identity_hash).having(func.count() > 1)
        ).all()
    assert sum(count["active"] for count in counts) == active
    assert all(count["active"] >= 60 for count in counts)
    assert not duplicates


def _check_stream(fleet: Fleet) -> None:
    with _store(fleet).reading() as db:
        rows = db.scalars(select(OrdinalRow).order_by(OrdinalRow.ordinal)).all()
        run = db.scalars(select(Run).where(Run.kind == "train").order_by(Run.id.desc())).first()
        verdicts = db.execute(
            select(VerdictRow.attempt_id, func.count())
            .where(VerdictRow.replay_of.is_(None))
            .group_by(VerdictRow.attempt_id)
        ).all()
        groups = db.execute(
            select(Attempt.group_id, func.count()).where(Attempt.group_id.is_not(None)).group_by(Attempt.group_id)
        ).all()
        observed = db.scalar(select(func.count()).select_from(VerdictRow).where(VerdictRow.observed)) or 0
        rollouts = db.scalar(select(func.sum(Difficulty.rollouts))) or 0
    # the order is dense, and every ordinal of the run's life is accounted for
    assert [row.ordinal for row in rows] == list(range(len(rows)))
    done = [row for row in rows if row.state == "completed"]
    assert not [row.ordinal for row in rows if row.state not in {"completed", "open", "withdrawn"}]
    # trained: every step of the surviving history holds its groups, each once, and nothing else is acknowledged
    assert Counter(row.step for row in done) == {step: GROUPS for step in range(1, STEPS + 1)}
    summary = json.loads((fleet.folder / "run" / "summary.json").read_text())
    assert summary["steps"] == STEPS
    assert summary["counters"]["groups"] == STEPS * GROUPS
    assert run is not None
    assert run.status == "done"
    # observed: one verdict for each attempt, one attempt for each sample, each counted into difficulty once
    assert all(count == 1 for _, count in verdicts)
    assert all(count <= GROUP_SIZE for group, count in groups if not group.startswith("eval"))
    assert observed == rollouts
