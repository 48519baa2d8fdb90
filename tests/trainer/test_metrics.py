"""Metrics: what is kept over a resume, that a service that is away costs points only, and what a step's groups say."""

import json
import socket
import threading
from pathlib import Path

from taskmill_client import Client, Patience
from trainer.contract import Group, Item, Sample, Verdict
from trainer.metrics import JsonlSink, ServiceSink, rollout_metrics


def test_a_resume_drops_later_and_half_written_lines(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 0, "a": 1}\n{"step": 1, "a": 2}\n{"step": 2, "a": 3}\n{"step": 1, "a"')
    sink = JsonlSink(path, after_step=1)
    sink.write(2, {"a": 4.0})
    sink.close("done", {})
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert rows == [{"step": 0, "a": 1}, {"step": 1, "a": 2}, {"step": 2, "a": 4.0}]


def test_a_service_that_is_away_costs_points_and_no_step() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with Client(url, patience=Patience(0.1, 0.01, 0.02)) as client:
            sink = ServiceSink(client, "run_1")
            for step in range(5):
                sink.write(step, {"a": 1.0, "never": float("nan")})
            sink.close("done", {})
            assert sink.dropped == 6  # five points and the end; what is not finite was no point
    assert not [thread for thread in threading.enumerate() if thread.name == "run-metrics"]


def test_void_outcomes_are_counted_and_leave_the_mean() -> None:
    sample = Sample((3,), (4, 1), (0.0, 0.0), "stop", 0)
    item = Item(0, "g", "l", "tm:a:1", "d", [], 3)
    verdicts = (Verdict("a", "verified", 1.0), Verdict("b", "failed", 0.0), Verdict("", "sandbox_error", None))
    found = rollout_metrics([Group(item, (sample,) * 3, verdicts)])
    assert found["reward/mean"] == found["reward/d/mean"] == 0.5
    assert found["verify/error_frac"] == found["outcome/sandbox_error_frac"] == 1 / 3
    assert found["group/effective_share"] == 1
