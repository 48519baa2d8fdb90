"""The demo: the real main job at small size, over HTTP alone.

Tasks are extracted from an installed package and made by procedural families, gated in the sandbox and served as a
stream; a tiny policy is cold-started on a few gold answers and trained by GRPO; its pass rate on held-out tasks is
measured before, between and after. The demo fails when the pass rate did not clearly rise.
"""

import json
import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from taskmill.demo_report import Rates, Report, show_making, show_rates
from taskmill_client import Client
from taskmill_client.types import Job

ENDED = frozenset(("done", "failed", "dead", "cancelled"))
RISE, FAMILIES = 0.20, 2
"""GRPO must raise the held-out pass rate over the level after SFT by this much, on at least so many families."""


class Source(NamedTuple):
    """One generator to run: where its tasks come from, its knobs, how many of them are wanted."""

    generator: str
    knobs: Mapping[str, Any]
    accepted: int


EXTRACTED = Source("code.docstring", {}, 1000)
"""More than the package holds: the job ends when every function has been looked at."""


def run_demo(url: str, key: str, data: Path, seed: int) -> int:
    """Run it all against the service at `url`; the exit code: 0 when the pass rate has risen, else 1."""
    recipe = files("trainer") / "recipes" / "demo.toml"
    demo = tomllib.loads(recipe.read_text())["demo"]
    with Client(url, key) as client:
        show = Report()
        made = make_tasks(client, [EXTRACTED, *(Source(**item) for item in demo["sources"])], show)
        show_making(made)
        run = f"demo-{seed}"
        out = data / "runs" / run
        code = train(url, key, Path(str(recipe)), run, out, seed)
    if code != 0:
        print(f"the training run ended with exit code {code}; its output is above", file=sys.stderr)
        return 1
    rates = read_rates(out)
    show_rates(rates)
    risen = [row.family for row in rates if row.after_grpo - row.after_sft >= RISE]
    if len(risen) < FAMILIES:
        print(f"the held-out pass rate rose by {RISE:.0%} on {len(risen)} families, not on {FAMILIES}", file=sys.stderr)
        return 1
    print(f"GRPO raised the held-out pass rate by at least {RISE * 100:.0f} points on {', '.join(risen)}.")
    return 0


def make_tasks(client: Client, sources: Sequence[Source], show: Report) -> list[Job]:
    """File one generate job for each source, all at once, and follow them to their ends; the finished jobs.

    A source whose tasks were made by an earlier demo in this data folder is counted, not made again.
    """
    jobs = [
        client.jobs.create(
            "factory.generate",
            {"generator": source.generator, "knobs": dict(source.knobs), "seed": 0, "accepted": source.accepted},
        )
        for source in sources
    ]
    with show.progress(
        {job["id"]: (source.generator, source.accepted) for job, source in zip(jobs, sources, strict=True)}
    ):
        done = follow(client, [job["id"] for job in jobs], show)
    for job in done:
        if job["status"] != "done":
            raise SystemExit(f"job {job['id']} ({job['params']['generator']}) is {job['status']}: {job['error']}")
    return done


def follow(client: Client, ids: Sequence[str], show: Report) -> list[Job]:
    """Wait until all these jobs have ended, showing each on its way; they run side by side."""
    while True:
        found = [client.jobs.get(job_id) for job_id in ids]
        for job in found:
            show.advance(job)
        if all(job["status"] in ENDED for job in found):
            return found
        time.sleep(0.5)


def train(url: str, key: str, recipe: Path, run: str, out: Path, seed: int) -> int:
    """Run `taskmill train` in a process of its own, going on where a killed one stopped."""
    command = [sys.executable, "-m", "taskmill", "train", str(recipe)]
    for name, value in (("stream.url", url), ("run.name", run), ("run.out_dir", str(out)), ("run.seed", str(seed))):
        command += ["--set", f"{name}={json.dumps(value) if name != 'run.seed' else value}"]
    if (out / "LATEST").exists():
        command.append("--resume")
    environment = os.environ | {"TASKMILL_KEY": key}
    return subprocess.run(command, env=environment, check=False, timeout=3600).returncode


def read_rates(out: Path) -> list[Rates]:
    """The held-out pass rates that the run wrote down, one row for each family."""
    phases = json.loads((out / "summary.json").read_text())["eval"]
    return [
        Rates(family, phases["untrained"][family], phases["sft"][family], phases["final"][family])
        for family in sorted(phases["final"])
    ]
