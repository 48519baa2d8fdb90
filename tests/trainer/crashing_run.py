"""A whole run in a process of its own, which dies at a named point: `FOLDER POINT OCCURRENCE [--resume]`."""

import os
import sys
import uuid
from pathlib import Path

from tests.trainer.offline import FileStream, ToyTasks, reversals
from trainer.config import Config, parse
from trainer.run import Runs, _start, run_phases

DIED, RUNS = 77, Runs("run_train", "run_eval")


def config(folder: Path, **tables: dict[str, object]) -> Config:
    """Twelve steps of a tiny model, a checkpoint every four."""
    base: dict[str, dict[str, object]] = {
        "run": {"name": "crash", "out_dir": str(folder / "out"), "max_steps": 12, "seed": 3},
        "model": {"dim": 32, "layers": 1, "heads": 2},
        "stream": {"domains": {"toy": 1}},
        "rollout": {"group_size": 4, "groups_per_step": 4, "max_new_tokens": 6},
        "algo": {"kl": 0.01},
        "batch": {"tokens_per_micro": 128, "updates_per_batch": 2},
        "ckpt": {"every": 4, "keep": 2},
        "sft": {"steps": 40, "batch_size": 32},
    }
    return parse({name: base.get(name, {}) | tables.get(name, {}) for name in base | tables})


def run(folder: Path, point: str, occurrence: int, resume: bool, broken: int = 0) -> None:
    """Run to the end, or to the given occurrence of the point."""
    seen = 0

    def notice(name: str) -> None:
        nonlocal seen
        seen += name == point
        if name == point and seen == occurrence:
            os._exit(DIED)

    resolved, tasks = config(folder), reversals(60, 1)
    start = _start(resolved, Path(resolved.run.out_dir), resume)
    stream = FileStream(folder / "stream.json", tasks, 4, f"consumer-{uuid.uuid4().hex}", broken)
    source = ToyTasks(tasks[:40], reversals(30, 2))
    run_phases(resolved, stream, source, [], RUNS, start, notice=notice)


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), "--resume" in sys.argv)
