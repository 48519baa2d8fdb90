"""A training run from its configuration: the parts are made here, the phases follow one another here."""

import json
import os
import uuid
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import torch

from taskmill_client import Client, Patience, TaskmillError
from trainer import checkpoint
from trainer.batching import Pair
from trainer.config import Config
from trainer.contract import Attribution, StepReport, TaskStream, TrainerError
from trainer.engines.local import LocalEngine
from trainer.evaluate import Evaluator
from trainer.ledger import Ledger
from trainer.loop import Loop, Parts
from trainer.metrics import JsonlSink, ServiceSink, Sink
from trainer.models.characters import EOS, VOCABULARY, encode
from trainer.models.tiny import TinyGPT, TinyShape
from trainer.prompts import prompt_ids
from trainer.sft import cold_start
from trainer.stream import ServiceStream
from trainer.tasks import ServiceTasks, TaskSource
from trainer.update import Updater, reference_needed

Report = Callable[[StepReport], None]
MAY_DIFFER = frozenset({"run.max_steps", "run.out_dir", "stream.url", "stream.key_env", "stream.patience_s"})
MAY_DIFFER_TABLES = frozenset({"ckpt", "eval"})


def plan(config: Config) -> dict[str, Any]:
    """The resolved configuration and what follows from it; nothing is contacted."""
    model = make_model(config)
    rollout = config.rollout
    return {
        "config": config.as_dict(),
        "stream": config.stream_name,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "samples_per_step": rollout.group_size * rollout.groups_per_step,
        "tokens_per_step_at_most": rollout.group_size * rollout.groups_per_step * rollout.max_new_tokens,
        "min_valid": config.min_valid,
        "reference_model": reference_needed(config.algo),
        "checkpoints": -(-config.run.max_steps // config.ckpt.every),
    }


def make_model(config: Config) -> TinyGPT:
    """Fresh weights of the run's seed."""
    torch.manual_seed(config.run.seed)
    return TinyGPT(TinyShape(config.model.layers, config.model.dim, config.model.heads, VOCABULARY))


def train(
    config: Config,
    key: str,
    *,
    resume: bool = False,
    report: Report = lambda step: None,
    notice: Callable[[str], None] = lambda name: None,
) -> dict[str, Any]:
    """Train against the service; the summary, which also lies in `summary.json`. `notice` is as in `run_phases`.

    Raises:
        TrainerError: the run cannot start or go on; the message says why.
        taskmill_client.TaskmillError: the service refused, or stayed away longer than `stream.patience_s`.
    """
    out = Path(config.run.out_dir)
    start = _start(config, out, resume)
    patience = Patience(deadline_s=config.stream.patience_s)
    with Client(config.stream.url, key, patience=patience) as client:
        stream = ServiceStream(client, config, f"{config.run.name}:{uuid.uuid4().hex[:12]}")
        try:
            known = start.ledger if start else None
            runs = Runs(known.run_id, known.eval_run_id) if known else _new_runs(client, config, stream)
            sinks: list[Sink] = [ServiceSink(client, runs.train)]
            tasks = ServiceTasks(client, config, out)
            summary = run_phases(config, stream, tasks, sinks, runs, start, report=report, notice=notice)
            _end(client, runs.eval, summary)
            return summary
        finally:
            stream.close()


def _start(config: Config, out: Path, resume: bool) -> checkpoint.State | None:
    """The checkpoint to go on from, or None for a fresh run in an empty folder."""
    out.mkdir(parents=True, exist_ok=True)
    found = checkpoint.newest(out)
    if not resume:
        if found:
            raise TrainerError(f"{out} holds the checkpoint {found.name}: use --resume, or another run.out_dir")
        return None
    if found is None:
        raise TrainerError(
            f"--resume: {out} holds no whole checkpoint; a run never restarts from base weights by itself"
        )
    state = checkpoint.load(found)
    changed = _changed(state.config, config)
    if changed:
        raise TrainerError(f"--resume: the checkpoint was made with other values of {', '.join(changed)}")
    return state


def _changed(old: Mapping[str, Any], config: Config) -> list[str]:
    new = json.loads(json.dumps(config.as_dict()))
    return [
        f"{table}.{name}"
        for table, values in new.items()
        if table not in MAY_DIFFER_TABLES
        for name, value in values.items()
        if f"{table}.{name}" not in MAY_DIFFER and old.get(table, {}).get(name) != value
    ]


class Runs(NamedTuple):
    """The service's records of this training: attempts of the second move no difficulty."""

    train: str
    eval: str


def _new_runs(client: Client, config: Config, stream: ServiceStream) -> Runs:
    if stream.started:
        # A run of this name crashed before its first checkpoint: fence it off, so that its leases come first.
        stream.restore(stream.token())
    name, policy, described = config.run.name, config.stream_name, config.as_dict() | {"code": version("taskmill")}
    found = client.runs.create(name, policy=policy, kind="train", stream_id=stream.identity, config=described)
    judged = client.runs.create(f"{name}-eval", policy=policy, kind="eval", config={"train_run": found["id"]})
    return Runs(found["id"], judged["id"])


def _end(client: Client, run_id: str, summary: Mapping[str, Any]) -> None:
    try:
        client.runs.log(run_id, [], status="done", summary=summary["eval"])
    except TaskmillError:
        return  # the training is done and written down; its record in the service is not worth failing for


def run_phases(
    config: Config,
    stream: TaskStream,
    tasks: TaskSource,
    sinks: list[Sink],
    runs: Runs,
    start: checkpoint.State | None,
    *,
    report: Report = lambda step: None,
    notice: Callable[[str], None] = lambda name: None,
) -> dict[str, Any]:
    """Cold start, RL and evaluations on the given parts; the summary. `notice` hears of every crash point."""
    out = Path(config.run.out_dir)
    torch.set_num_threads(config.run.threads)
    model = make_model(config)
    ledger = start.ledger if start else Ledger(runs.train, runs.eval, stream.identity, stream.snapshot)
    if ledger.snapshot != stream.snapshot:
        raise TrainerError(f"the stream's data set changed: {ledger.snapshot} at the checkpoint, now {stream.snapshot}")
    all_sinks = [JsonlSink(out / "metrics.jsonl", after_step=ledger.step if start else -1), *sinks]
    evaluation = config.eval
    evaluator = Evaluator(
        tasks.suite(), tasks.judge, evaluation.k, evaluation.temperature, config.rollout.max_new_tokens, config.run.seed
    )
    updater = Updater(model, make_model(config) if reference_needed(config.algo) else None, config)
    parts = Parts(
        stream, LocalEngine(model, config.rollout.max_batch), updater, evaluator, all_sinks, out, notice, report
    )
    loop = Loop(config, parts, ledger)
    status = "failed"
    summary: dict[str, Any] = {}
    try:
        if start:
            _restore(updater, start)
            loop.resume()
        else:
            _cold(config, tasks, loop, updater)
        loop.run()
        summary, status = _summary(ledger, evaluator), "done"
        _write(out / "summary.json", summary)
        return summary
    finally:
        for sink in all_sinks:
            sink.close(status, summary)


def _restore(updater: Updater, start: checkpoint.State) -> None:
    updater.model.load_state_dict(start.tensors["model"])
    updater.optimizer.load_state_dict(start.tensors["optimizer"])
    if updater.reference is not None:
        updater.reference.load_state_dict(start.tensors["reference"])


def _cold(config: Config, tasks: TaskSource, loop: Loop, updater: Updater) -> None:
    """SFT between two evaluations; what it makes is policy version 0, and the first checkpoint."""
    loop.evaluate("untrained")
    if config.sft.steps:
        pairs = [Pair(prompt_ids(gold.prompt), (*encode(gold.answer), EOS)) for gold in tasks.gold()]
        losses: dict[str, float] = {}
        cold_start(updater.model, pairs, config, lambda step, loss: losses.update({"sft/loss": loss}))
    else:
        losses = {}
    if updater.reference is not None:
        updater.reference.load_state_dict(updater.model.state_dict())
    metrics = loop.evaluate("sft")
    loop.log(losses | metrics)
    loop.checkpoint()


def _summary(ledger: Ledger, evaluator: Evaluator) -> dict[str, Any]:
    rises = {}
    if "sft" in ledger.passes and "final" in ledger.passes:
        rises = evaluator.rises(ledger.passes["final"], ledger.passes["sft"])
    return {
        "run_id": ledger.run_id,
        "stream": ledger.stream,
        "steps": ledger.step,
        "counters": ledger.counters,
        "eval": ledger.evals,
        "rise": rises,
    }


def _write(path: Path, data: Mapping[str, Any]) -> None:
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps(data, indent=1), encoding="utf-8")
    os.replace(draft, path)


def evaluate(config: Config, key: str, directory: Path) -> dict[str, Any]:
    """The pass rates of one checkpoint on the suite of its run, as an evaluation run of the service."""
    torch.set_num_threads(config.run.threads)
    state = checkpoint.load(directory)
    model = make_model(config)
    model.load_state_dict(state.tensors["model"])
    with Client(config.stream.url, key, patience=Patience(deadline_s=config.stream.patience_s)) as client:
        tasks = ServiceTasks(client, config, directory.parent)
        run = client.runs.create(
            f"{config.run.name}-eval", policy=config.stream_name, kind="eval", config=config.as_dict()
        )
        setting = config.eval
        evaluator = Evaluator(
            tasks.suite(), tasks.judge, setting.k, setting.temperature, config.rollout.max_new_tokens, config.run.seed
        )
        scores = evaluator.run(
            LocalEngine(model, config.rollout.max_batch),
            Attribution(config.stream_name, state.ledger.policy_version, run["id"]),
        )
        summary = {"step": state.ledger.step, "avg": scores.avg, "pass": scores.pass_at, "k": setting.k}
        sink = ServiceSink(client, run["id"])
        sink.write(state.ledger.step, {f"eval/{d}/avg@{setting.k}": v for d, v in scores.avg.items()})
        sink.close("done", summary)
    return summary | {"infrastructure": scores.infrastructure}
