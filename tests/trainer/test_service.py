"""The trainer against the real service over a real socket: what it asks for, and that a resume is exact there too."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import uvicorn
from sqlalchemy import update

from sandbox.backends import make_backend
from service.app import create_app
from service.auth.issue import issue_key
from service.settings import Settings
from service.store.admission import admit, prepare
from service.store.drafts import CandidateDraft
from service.store.required_gates import current_key
from service.store.session import Store
from service.store.splits import SplitRule
from service.store.tables import Task
from service.words import Scope, Split, TaskStatus
from taskmill_client import Client
from taskmill_client.errors import LeaseSuperseded, StaleConsumer
from tests.conftest import wait_until
from tests.trainer.offline import Toy, reversals
from trainer import checkpoint
from trainer.config import Config, parse
from trainer.contract import Attribution, Completion, Group, Sample, Superseded, TrainerError
from trainer.heartbeat import Heartbeat
from trainer.models.characters import EOS, encode
from trainer.run import evaluate, train
from trainer.stream import ServiceStream
from verifiers.engine import Engine

DIED = 77


class Served(NamedTuple):
    url: str
    key: str


def _draft(toy: Toy, split: Split) -> CandidateDraft:
    return CandidateDraft.model_validate(
        {
            "domain": "toy.reverse",
            "prompt": [{"role": "user", "content": toy.prompt}],
            "verifier": {"name": "exact", "params": {"slot": "raw"}},
            "reference": {"answer": toy.answer},
            "gold": [toy.answer],
            "split": split,
        }
    )


def _add(store: Store, toys: list[Toy], split: Split) -> None:
    batch = [prepare(_draft(toy, split)) for toy in toys]
    with store.writing() as db:
        made = [item.task_id for item in admit(db, batch, actor="t", rule=SplitRule(b"k", 0.0, 0.0), may_split=True)]
        values = {"status": TaskStatus.ACTIVE, "receipts_key": current_key("submitted", "exact")}
        db.execute(update(Task).where(Task.id.in_(made)).values(**values))


@pytest.fixture
def served(settings: Settings, sqlite_store: Store) -> Iterator[Served]:
    """The whole app on a socket, with 60 tasks to train on and 20 held out."""
    toys = reversals(80, 4)
    _add(sqlite_store, toys[:60], Split.TRAIN)
    _add(sqlite_store, toys[60:], Split.EVAL)
    with sqlite_store.writing() as db:
        key = issue_key(db, name="t", scopes=[str(s) for s in Scope], secret=settings.secret_bytes).token
    backend = make_backend("unisolated", 1)
    engine = Engine(backend, 1)
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        app = create_app(settings, sqlite_store, engine, backend)
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=2))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        wait_until(lambda: server.started, within_s=60)
        yield Served(f"http://127.0.0.1:{bound.getsockname()[1]}", key)
        server.should_exit = True
        thread.join(timeout=30)
    engine.close()
    backend.close()


def config(served: Served, folder: Path, name: str = "small", **tables: dict[str, object]) -> Config:
    base: dict[str, dict[str, object]] = {
        "run": {"name": name, "out_dir": str(folder), "max_steps": 6, "seed": 3},
        "model": {"dim": 32, "layers": 1, "heads": 2},
        "stream": {"domains": {"toy": 1}, "url": served.url, "policy": {"kind": "uniform"}, "patience_s": 60},
        "rollout": {"group_size": 4, "groups_per_step": 4, "max_new_tokens": 6},
        "ckpt": {"every": 2, "keep": 2},
        "sft": {"steps": 30, "batch_size": 32},
    }
    return parse({table: base.get(table, {}) | tables.get(table, {}) for table in base | tables})


CRASHING = """
import json, os, sys
from trainer.config import parse
from trainer.run import train
data, key, point, occurrence = json.loads(sys.argv[1]), *sys.argv[2:4], int(sys.argv[4])
seen = 0
def notice(name):
    global seen
    seen += name == point
    if name == point and seen == occurrence:
        os._exit(77)
train(parse(data), key, notice=notice)
"""


def _weights(folder: Path) -> dict[str, Any]:
    found = checkpoint.newest(folder)
    assert found is not None
    assert found.name == "step-6"
    read: dict[str, Any] = torch.load(found / "model.pt", weights_only=True)
    return read


def _record(client: Client, name: str) -> list[tuple[str, str, int | None]]:
    """What the service knows of the stream's order: task, state and step of each ordinal."""
    (stream,) = [row for row in client.streams.list() if row["name"] == name]
    return [(row["ref"], row["state"], row["step"]) for row in client.streams.ordinals(stream["id"])]


def test_a_run_leaves_its_curves_its_order_and_its_verdicts(served: Served, tmp_path: Path) -> None:
    summary = train(config(served, tmp_path / "out"), served.key)
    assert set(summary["eval"]) == {"untrained", "sft", "final"}
    assert set(summary["eval"]["final"]) == {"toy"}
    with Client(served.url, served.key) as client:
        runs = {row["kind"]: row for row in client.runs.list()}
        assert runs["train"]["id"] == summary["run_id"]
        assert runs["train"]["status"] == runs["eval"]["status"] == "done"
        points = client.runs.metrics(summary["run_id"], "reward/mean")
        assert [point["step"] for point in points] == [1, 2, 3, 4, 5, 6]
        record = _record(client, "small")
        assert [(state, step) for _, state, step in record] == [("completed", 1 + i // 4) for i in range(24)]
        task_id = record[0][0].split(":")[1]
        assert len(list(client.tasks.attempts(task_id))) >= 4


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("point", "occurrence"), [("verified", 4), ("stepped", 4), ("checkpoint:renamed", 3)])
def test_a_crash_against_the_service_changes_nothing(
    point: str, occurrence: int, served: Served, tmp_path: Path
) -> None:
    """The same order, the same weights, each group judged once and acknowledged once."""
    train(config(served, tmp_path / "whole", "whole"), served.key)
    data = config(served, tmp_path / "crashed", "crashed").as_dict()
    command = [sys.executable, "-c", CRASHING, json.dumps(data), served.key, point, str(occurrence)]
    died = subprocess.run(command, timeout=200, capture_output=True, check=False, env=dict(os.environ))
    assert died.returncode == DIED, died.stderr.decode()
    train(parse(json.loads(json.dumps(data))), served.key, resume=True)
    whole, crashed = _weights(tmp_path / "whole"), _weights(tmp_path / "crashed")
    assert all(torch.equal(whole[name], crashed[name]) for name in whole)
    with Client(served.url, served.key) as client:
        assert _record(client, "crashed") == _record(client, "whole")
        groups: Counter[str] = Counter()
        (stream,) = [row for row in client.streams.list() if row["name"] == "crashed"]
        for row in client.tasks.list(split="train"):
            for attempt in client.tasks.attempts(row["id"]):
                if str(attempt["group_id"]).startswith(stream["id"]):
                    groups[attempt["group_id"]] += 1
        assert len(groups) == 24
        assert set(groups.values()) == {4}


def _stream(client: Client, served: Served, tmp_path: Path, consumer: str) -> ServiceStream:
    return ServiceStream(client, config(served, tmp_path), consumer)


def test_the_stream_keeps_the_protocol(served: Served, tmp_path: Path) -> None:
    with Client(served.url, served.key) as client:
        stream = _stream(client, served, tmp_path, "one")
        token = stream.token()
        items = stream.lease(3, 0)
        assert [item.ordinal for item in items] == [0, 1, 2]
        answer = (*encode("000"), EOS)
        sample = Sample(encode("x"), answer, (0.0,) * len(answer), "stop", 0)
        groups = [Group(item, (sample,) * 4) for item in items]
        judged = stream.verify(groups, Attribution("p", 0, "run"))
        again = stream.verify(groups, Attribution("p", 0, "run"))
        assert judged == again
        assert all(verdict.reward == 0.0 for group in judged for verdict in group.verdicts)
        ids = tuple(verdict.id for verdict in judged[0].verdicts)
        done = Completion(0, items[0].lease_id, ids, 1.0, 16, 0.0, 1, 0)
        assert stream.complete([done]) == []
        assert stream.complete([done]) == []
        stream.release(items[1:2], "too_few_valid")
        assert [item.ordinal for item in stream.lease(2, 0)] == [1, 3]
        newer = _stream(client, served, tmp_path, "two")
        newer.restore(token)
        assert [item.ordinal for item in newer.lease(4, 0)] == [0, 1, 2, 3]
        with pytest.raises(Superseded):
            stream.complete([replace(done, ordinal=2)])
        with pytest.raises(Superseded):
            stream.lease(1, 0)
        stream.close()
        newer.close()


def test_the_heartbeat_extends_and_notices_a_takeover(served: Served, tmp_path: Path) -> None:
    with Client(served.url, served.key) as client:
        stream = _stream(client, served, tmp_path, "one")
        token = stream.token()
        (item,) = stream.lease(1, 0)
        beats = Heartbeat(client)
        beats.hold(item.lease_id, 0.06, [item.ordinal])
        before = client.leases.extend(item.lease_id)["expires_at"]
        wait_until(lambda: client.leases.extend(item.lease_id)["expires_at"] > before)
        newer = _stream(client, served, tmp_path, "two")
        newer.restore(token)
        wait_until(lambda: beats.lost == 1 or beats.superseded.is_set())
        with pytest.raises((LeaseSuperseded, StaleConsumer)):
            client.leases.extend(item.lease_id)
        for part in (beats, stream, newer):
            part.close()


def test_a_checkpoint_is_measured_again_the_same(served: Served, tmp_path: Path) -> None:
    resolved = config(served, tmp_path / "out")
    summary = train(resolved, served.key)
    found = evaluate(resolved, served.key, tmp_path / "out" / "step-6")
    assert found["avg"] == summary["eval"]["final"]
    (tmp_path / "out" / "step-6" / "model.pt").write_bytes(b"half")
    with pytest.raises(TrainerError, match="no whole checkpoint"):
        evaluate(resolved, served.key, tmp_path / "out" / "step-6")


def test_no_gold_is_an_error_that_says_what_to_do(served: Served, tmp_path: Path) -> None:
    with pytest.raises(TrainerError, match=r"sft\.steps=0"):
        train(config(served, tmp_path / "out", stream={"domains": {"nothing": 1}}), served.key)
