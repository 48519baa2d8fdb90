"""How long a lease of 512 groups from 100,000 tasks takes, against a bare `SELECT … LIMIT 512` of the same rows.

    python bench/lease.py [--tasks 100000] [--n 512] [--rounds 9] [--url postgresql://…]

Both run in the same process on the same database, in turns; the figure is the ratio of their medians. Three leases are
measured: `uniform`, `signal` on tasks nobody has seen, `signal` on tasks of which all have evidence. Prints JSON.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from sqlalchemy import insert, select

from service.store import stream_items
from service.store.engine import make_engine
from service.store.ids import new_id
from service.store.migrate import upgrade
from service.store.required_gates import current_key
from service.store.session import Store
from service.store.stream_items import TaskKey
from service.store.tables import Difficulty, Family, Task, TaskVersion
from service.stream import creation, leasing
from service.stream.contract import StreamRequest
from service.stream.permutation import units
from service.stream.serving import Ask

NOW = datetime.now(UTC)
DOMAINS = 8


def fill(store: Store, count: int) -> None:
    """Servable tasks of eight domains, in transactions of a thousand."""
    key, chance = current_key("submitted", "exact"), units("bench")
    for first in range(0, count, 1000):
        families, tasks, versions = [], [], []
        for number in range(first, min(count, first + 1000)):
            family, task = new_id("fam"), new_id("task")
            digest = f"{number:064x}"
            families.append({"id": family, "split": "train", "split_basis": digest, "created_at": NOW})
            tasks.append(_task(task, family, digest, number, key, next(chance)))
            versions.append(_version(task, digest, number))
        with store.writing() as db:
            db.execute(insert(Family), families)
            db.execute(insert(Task), tasks)
            db.execute(insert(TaskVersion), versions)


def show(store: Store, lineage: str) -> None:
    """Evidence on every task."""
    chance = units("evidence")
    with store.reading() as db:
        found = db.execute(select(Task.id, Task.domain, Task.rkey)).all()
    for first in range(0, len(found), 1000):
        rows = []
        for task_id, domain, rkey in found[first : first + 1000]:
            wins = round(8 * next(chance))
            row = {"lineage": lineage, "task_id": task_id, "task_version": 1, "domain": domain, "rkey": rkey}
            row |= {"alpha": 1.0 + wins, "beta": 9.0 - wins, "bucket": min(19, int((1 + wins) / 10 * 20))}
            rows.append(row | {"visits": 1, "rollouts": 8, "zero_variance": 0, "served": 1, "updated_at": NOW})
        with store.writing() as db:
            db.execute(insert(Difficulty), rows)


def bare(store: Store, n: int) -> None:
    """The same rows by the shortest way there is."""
    with store.reading() as db:
        db.execute(
            select(Task.id, Task.version, Task.domain, TaskVersion.prompt, TaskVersion.limits)
            .join(TaskVersion, (TaskVersion.task_id == Task.id) & (TaskVersion.version == Task.version))
            .limit(n)
        ).all()


def lease(store: Store, stream_id: str, n: int) -> None:
    """What `POST /v1/streams/{id}:lease` does between its first and its last query."""
    with store.writing() as db:
        found = leasing.lease(db, stream_id, Ask(n, 0, "bench", 600.0), actor="bench", now=NOW)
        stream_items.shown(db, [TaskKey(item.task_id, item.task_version) for item in found.items])
    assert len(found.items) == n, found.reason


def measure(rounds: int, *calls: Callable[[], None]) -> list[list[float]]:
    """Milliseconds of each call, in turns, so that a slow moment of the machine hits all alike."""
    took: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for place, call in enumerate(calls):
            started = time.perf_counter()
            call()
            took[place].append((time.perf_counter() - started) * 1000)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--n", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--url", help="a database of its own, emptied by nobody; unset: SQLite in a temporary folder")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = given.url or f"sqlite:///{folder}/bench.db"
        upgrade(url)
        store = Store(make_engine(url, pool_size=2))
        fill(store, given.tasks)
        domains = {f"d{number}": number + 1 for number in range(DOMAINS)}
        ids: dict[str, str] = {}
        started = time.perf_counter()
        for name, lineage in (("uniform", "u"), ("signal_unseen", "none"), ("signal_seen", "all")):
            policy = {"kind": name.partition("_")[0], "lineage": lineage}
            body = {"name": name, "domains": domains, "policy": policy, "group_size": 8, "max_lag": 100}
            made = creation.make(store, StreamRequest.model_validate(body), secret=b"bench", actor="bench")
            ids[name] = made.stream.id
            if name == "uniform":
                created_s = time.perf_counter() - started
        show(store, "all")
        calls = [lambda: bare(store, given.n)] + [
            lambda stream_id=stream_id: lease(store, stream_id, given.n) for stream_id in ids.values()
        ]
        took = measure(given.rounds, *calls)
        store.close()
    print(json.dumps(_report(given, created_s, dict(zip(["bare", *ids], took, strict=True))), indent=2))


def _report(given: Any, created_s: float, took: dict[str, list[float]]) -> dict[str, Any]:
    base = statistics.median(took["bare"])
    return {
        "bench": "lease",
        "at": NOW.isoformat(),
        "database": "sqlite" if given.url is None else "postgresql",
        "tasks": given.tasks,
        "n": given.n,
        "rounds": given.rounds,
        "stream_created_s": round(created_s, 2),
        "median_ms": {name: round(statistics.median(times), 2) for name, times in took.items()},
        "worst_ms": {name: round(max(times), 2) for name, times in took.items()},
        "ratio_to_bare_select": {
            name: round(statistics.median(times) / base, 1) for name, times in took.items() if name != "bare"
        },
    }


def _task(task_id: str, family: str, digest: str, number: int, key: str, rkey: float) -> dict[str, Any]:
    return {
        "id": task_id,
        "version": 1,
        "domain": f"d{number % DOMAINS}",
        "status": "active",
        "split": "train",
        "family_id": family,
        "content_hash": digest,
        "identity_hash": digest,
        "live": True,
        "verifier": "exact",
        "task_type": "submitted",
        "cell": "",
        "rkey": rkey,
        "receipts_key": key,
        "created_by": "bench",
        "created_at": NOW,
        "updated_at": NOW,
    }


def _version(task_id: str, digest: str, number: int) -> dict[str, Any]:
    text = f"Compute {number} + {number * 7} and give the sum. " * 5
    return {
        "task_id": task_id,
        "version": 1,
        "content_hash": digest,
        "prompt": [{"role": "user", "content": text}],
        "prompt_text": text,
        "verifier": {"name": "exact", "params": {}},
        "environment": {"image": "python", "files": {}, "tools": [], "network": "none"},
        "limits": {"wall_s": 10},
        "features": {},
        "tags": [],
        "created_at": NOW,
    }


if __name__ == "__main__":
    main()
