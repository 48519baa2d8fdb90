"""The whole loop learns: a short cold start on few gold answers, then GRPO raises the held-out pass rate."""

import json
import time
from pathlib import Path

import pytest

from tests.trainer.offline import MemoryStream, ToyTasks, reversals
from trainer.config import parse
from trainer.run import Runs, run_phases


@pytest.mark.timeout(400)  # 15 CPU-seconds; more only where the machine is shared
def test_rl_learns(tmp_path: Path) -> None:
    """One seed: greedy pass rate on unseen tasks rises by 20 points over the cold start. At most 40 CPU-seconds."""
    toys = reversals(1000, 5, lengths=(4, 4))
    config = parse(
        {
            "run": {"name": "learns", "out_dir": str(tmp_path), "max_steps": 60, "seed": 1},
            "stream": {"domains": {"toy": 1}},
            "rollout": {"max_new_tokens": 8},
            "optim": {"lr": 1e-3, "betas": [0.9, 0.99], "warmup": 10, "schedule": "linear"},
            "sft": {"steps": 90},
            "ckpt": {"every": 30, "keep": 1},
        }
    )
    stream = MemoryStream(toys[450:], config.rollout.group_size)
    start = time.process_time()
    summary = run_phases(config, stream, ToyTasks(toys[150:450], toys[:150]), [], Runs("run_1", "run_2"), None)
    spent_s = time.process_time() - start
    rates = {phase: summary["eval"][phase]["toy"] for phase in ("untrained", "sft", "final")}
    assert rates["untrained"] < 0.05, rates
    assert rates["final"] >= rates["sft"] + 0.2, rates
    assert summary["rise"]["toy"]["low"] > 0.1
    assert json.loads((tmp_path / "summary.json").read_text()) == summary
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["reward/mean"] > rows[1]["reward/mean"]
    assert spent_s < 40
