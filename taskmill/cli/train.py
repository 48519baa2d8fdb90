"""Train a policy on a stream of the service, and measure a checkpoint."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taskmill.cli.options import Data, Json

if TYPE_CHECKING:
    from trainer.config import Config
    from trainer.contract import StepReport

Recipe = Annotated[Path, typer.Argument(metavar="CONFIG", help="TOML file of the run; see the trainer's page.")]
Overrides = Annotated[list[str] | None, typer.Option("--set", help="One key, as table.key=value; may be repeated.")]
KeyFile = Annotated[Path | None, typer.Option("--key-file", help="File that holds the API key.")]

SHOWN = ("reward/mean", "group/effective_share", "policy/entropy", "len/mean")


def train(
    config: Recipe,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the newest whole checkpoint.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the resolved plan; contact nothing.")] = False,
    overrides: Overrides = None,
    key_file: KeyFile = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Train by SFT and GRPO against the service. Exit 1 when the run stopped, 3 when torch is missing."""
    import json

    resolved = _config(config, overrides)
    _need_torch()
    from trainer.run import plan
    from trainer.run import train as run

    if dry_run:
        typer.echo(json.dumps(plan(resolved), indent=1))
        return
    key = _key(resolved, key_file, data)
    summary = _guarded(lambda: run(resolved, key, resume=resume, report=_show(resolved.run.max_steps, as_json)))
    typer.echo(json.dumps(summary) if as_json else _table(summary))


def evaluate(
    config: Recipe,
    checkpoint: Annotated[Path, typer.Option("--checkpoint", help="Directory of one checkpoint (step-N).")],
    overrides: Overrides = None,
    key_file: KeyFile = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Measure a checkpoint on held-out tasks. Exit 1 when it could not be measured, 3 when torch is missing."""
    import json

    resolved = _config(config, overrides)
    _need_torch()
    from trainer.run import evaluate as measure

    key = _key(resolved, key_file, data)
    summary = _guarded(lambda: measure(resolved, key, checkpoint))
    if as_json:
        typer.echo(json.dumps(summary))
        return
    for domain, rate in summary["avg"].items():
        typer.echo(f"{domain:24} {rate:7.1%}  (avg@{summary['k']}, step {summary['step']})")


def _config(path: Path, overrides: list[str] | None) -> "Config":
    from trainer.config import ConfigError, load

    try:
        return load(path, overrides or ())
    except ConfigError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from error


def _need_torch() -> None:
    from importlib.util import find_spec

    if find_spec("torch") is None:
        typer.echo("the trainer needs torch: pip install 'taskmill[trainer]'", err=True)
        raise typer.Exit(3)


def _key(config: "Config", key_file: Path | None, data: Path | None) -> str:
    """From `--key-file`, else the variable that the configuration names, else the `admin.key` of the data folder."""
    import os

    from taskmill.cli.options import key_or_exit

    if key_file is None:
        return key_or_exit(os.environ.get(config.stream.key_env), data)
    try:
        return key_file.read_text(encoding="utf-8").strip()
    except OSError as error:
        typer.echo(f"--key-file {key_file}: {error.strerror}", err=True)
        raise typer.Exit(2) from error


def _guarded(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    from taskmill_client import TaskmillError
    from trainer.contract import TrainerError

    try:
        return work()
    except (TrainerError, TaskmillError) as error:
        typer.echo(f"{type(error).__name__}: {error}", err=True)
        raise typer.Exit(1) from error


def _show(last: int, as_json: bool) -> "Callable[[StepReport], None]":
    def show(report: "StepReport") -> None:
        rates = {k: v for k, v in report.metrics.items() if k.startswith("eval/") and k != "eval/infrastructure"}
        if as_json or (report.step % 10 and not rates):
            return
        values = {name: report.metrics[name] for name in SHOWN if name in report.metrics} | rates
        typer.echo(f"step {report.step}/{last}  " + "  ".join(f"{name} {value:.3f}" for name, value in values.items()))

    return show


def _table(summary: dict[str, Any]) -> str:
    phases = [phase for phase in ("untrained", "sft", "final") if phase in summary["eval"]]
    lines = ["held-out pass rate      " + "".join(f"{phase:>11}" for phase in phases)]
    for domain in summary["eval"].get("final", {}):
        rates = "".join(f"{summary['eval'][phase].get(domain, float('nan')):11.1%}" for phase in phases)
        lines.append(f"{domain:24}{rates}")
    return "\n".join(lines)
