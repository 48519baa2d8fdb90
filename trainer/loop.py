"""The RL loop: lease, generate, verify, train, and at every checkpoint acknowledge what it made durable.

The service owns the position in the data. A step's ordinals are acknowledged only after the checkpoint that holds the
step, so a crash repeats exactly the work that was lost, with the same seeds, and trains nothing twice.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from trainer import checkpoint
from trainer.config import Config
from trainer.contract import (
    Attribution,
    Completion,
    Group,
    Item,
    Request,
    RolloutEngine,
    StepReport,
    StreamDry,
    TaskStream,
    TrainerError,
)
from trainer.evaluate import Evaluator, Scores
from trainer.ledger import Ledger
from trainer.metrics import Sink, rollout_metrics
from trainer.prompts import prompt_ids, sample_seed
from trainer.update import Plan, Updater, plan_update

REFILLS = 20
Notice = Callable[[str], None]


class Clock:
    """Seconds spent on each part of a step."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    def metrics(self) -> dict[str, float]:
        return {f"time/{part}_s": seconds for part, seconds in self.spent.items()}

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.spent[part] = self.spent.get(part, 0.0) + time.perf_counter() - start


@dataclass(slots=True)
class Parts:
    """What a run is made of. `notice` hears of every point a crash could fall on, `report` of every step."""

    stream: TaskStream
    engine: RolloutEngine
    updater: Updater
    evaluator: Evaluator
    sinks: Sequence[Sink]
    folder: Path
    notice: Notice
    report: Callable[[StepReport], None]


class Loop:
    """Steps from the ledger's position to `run.max_steps`."""

    def __init__(self, config: Config, parts: Parts, ledger: Ledger) -> None:
        self._config, self._parts, self._ledger = config, parts, ledger
        self._pending: list[Item] = []

    def run(self) -> None:
        """Train to the end; the last checkpoint is acknowledged when this returns."""
        last, clock = self._config.run.max_steps, Clock()
        while self._ledger.step < last:
            metrics = self._step(clock)
            step, evaluation = self._ledger.step, self._config.eval
            if step == last or (evaluation.every and step % evaluation.every == 0):
                with clock("eval"):
                    metrics |= self.evaluate("final" if step == last else f"step-{step}")
            self.log(metrics | clock.metrics())
            clock = Clock()
            if step == last or step % self._config.ckpt.every == 0:
                with clock("save"):  # logged with the next step: a step is logged before it is made durable
                    self.checkpoint()
        if self._pending:
            self._parts.stream.release(self._pending, "shutdown")

    # --- one step

    def _step(self, clock: Clock) -> dict[str, float]:
        groups = self._collect(clock)
        version, step = self._ledger.policy_version, self._ledger.step + 1
        plan = plan_update(groups, self._config)
        with clock("train"):
            metrics = self._parts.updater.train(plan, step)
        self._ledger.step = step
        completions = _completions(groups, plan, step, version)
        self._ledger.trained |= {completion.ordinal: completion for completion in completions}
        self._ledger.count("tokens", sum(completion.tokens for completion in completions))
        self._ledger.count("groups", len(groups))
        self._parts.notice("stepped")
        return rollout_metrics(groups) | metrics

    def _collect(self, clock: Clock) -> list[Group]:
        """As many verified groups as a step takes, in the stream's order; what got no verdicts is served again."""
        ready: list[Group] = []
        wanted = self._config.rollout.groups_per_step
        for _ in range(REFILLS):
            with clock("wait_data"):
                items = self._take(wanted - len(ready), bool(ready))
            self._parts.notice("leased")
            with clock("gen"):
                groups = self._generate(items)
            self._parts.notice("generated")
            with clock("verify"):
                groups = self._parts.stream.verify(groups, self._attribution(self._ledger.run_id))
            self._parts.notice("verified")
            ready += [group for group in groups if group.valid >= self._config.min_valid]
            self._hand_back([group.item for group in groups if group.valid < self._config.min_valid])
            if len(ready) >= wanted or not items:
                return sorted(ready, key=lambda group: group.item.ordinal)
        raise TrainerError(f"the service gave no verdicts for enough groups, {REFILLS} times in a row")

    def _take(self, n: int, may_be_short: bool) -> list[Item]:
        items, self._pending = self._pending[:n], self._pending[n:]
        while len(items) < n:
            try:
                leased = self._parts.stream.lease(n - len(items), self._ledger.policy_version)
            except StreamDry:
                if items or may_be_short:
                    break
                raise
            items += self._untrained(leased)
        return items

    def _untrained(self, leased: Sequence[Item]) -> list[Item]:
        """Items whose lease was lost after they were trained keep their result and take the new lease."""
        fresh = []
        for item in leased:
            known = self._ledger.trained.get(item.ordinal)
            if known is None:
                fresh.append(item)
            else:
                self._ledger.trained[item.ordinal] = replace(known, lease_id=item.lease_id)
        return fresh

    def _generate(self, items: Sequence[Item]) -> list[Group]:
        rollout, requests = self._config.rollout, []
        attempts = [self._ledger.tries.get(item.ordinal, 0) for item in items]
        for item, attempt in zip(items, attempts, strict=True):
            ids = prompt_ids(item.prompt)
            requests += [
                Request(ids, sample_seed(self._config.run.seed, item.ordinal, attempt, index))
                for index in range(item.group_size)
            ]
        samples = iter(self._parts.engine.generate(requests, rollout.temperature, rollout.max_new_tokens))
        return [
            Group(item.as_attempt(attempt), tuple(next(samples) for _ in range(item.group_size)))
            for item, attempt in zip(items, attempts, strict=True)
        ]

    def _hand_back(self, items: Sequence[Item]) -> None:
        if items:
            for item in items:
                self._ledger.tries[item.ordinal] = self._ledger.tries.get(item.ordinal, 0) + 1
            self._ledger.count("released", len(items))
            self._parts.stream.release(items, "too_few_valid")

    def _attribution(self, run_id: str) -> Attribution:
        return Attribution(self._config.stream_name, self._ledger.policy_version, run_id)

    # --- checkpoints

    def checkpoint(self) -> None:
        """Make the present step durable, then acknowledge everything trained since the last time."""
        self._ledger.token = self._parts.stream.token()
        updater = self._parts.updater
        tensors = {"model": updater.model.state_dict(), "optimizer": updater.optimizer.state_dict()}
        if updater.reference is not None:
            tensors["reference"] = updater.reference.state_dict()
        checkpoint.save(self._parts.folder, self._ledger, tensors, self._config.as_dict(), self._parts.notice)
        self._acknowledge(list(self._ledger.trained.values()))
        checkpoint.prune(self._parts.folder, self._config.ckpt.keep)

    def _acknowledge(self, completions: Sequence[Completion]) -> None:
        if not completions:
            return
        lost = set(self._parts.stream.complete(completions))
        self._parts.notice("acknowledged")
        self._ledger.count("leases_lost", len(lost))
        # What was lost is served again, and acknowledged then: it stays in the ledger until that.
        self._ledger.trained = {o: c for o, c in self._ledger.trained.items() if o in lost}

    def resume(self) -> None:
        """Go back to the checkpoint's position; what its weights have seen is acknowledged without being done again."""
        self._parts.stream.restore(self._ledger.token)
        while self._ledger.trained:
            known = set(self._ledger.trained)
            try:
                leased = self._parts.stream.lease(len(known), self._ledger.policy_version)
            except StreamDry:
                self._ledger.trained.clear()
                return
            self._pending += self._untrained(leased)
            served = [self._ledger.trained[item.ordinal] for item in leased if item.ordinal in known]
            self._acknowledge_served(served)
            if not served:
                # Un-acknowledged ordinals come first: what is not among them was acknowledged before the crash.
                self._ledger.trained.clear()

    def _acknowledge_served(self, served: Sequence[Completion]) -> None:
        lost = set(self._parts.stream.complete(served)) if served else set()
        for completion in served:
            if completion.ordinal not in lost:
                self._ledger.trained.pop(completion.ordinal, None)

    # --- measuring

    def evaluate(self, phase: str) -> dict[str, float]:
        """Judge the suite and note the pass rates in the ledger under `phase`."""
        scores = self._parts.evaluator.run(self._parts.engine, self._attribution(self._ledger.eval_run_id))
        self._ledger.evals[phase] = scores.avg
        if phase in ("sft", "final"):
            self._ledger.passes[phase] = scores.passes
        return _eval_metrics(scores, self._config.eval.k)

    def log(self, values: Mapping[str, float]) -> None:
        for sink in self._parts.sinks:
            sink.write(self._ledger.step, values)
        self._parts.report(StepReport(self._ledger.step, values))


def _eval_metrics(scores: Scores, k: int) -> dict[str, float]:
    found = {f"eval/{domain}/avg@{k}": value for domain, value in scores.avg.items()}
    if k > 1:
        found |= {f"eval/{domain}/pass@{k}": value for domain, value in scores.pass_at.items()}
    return found | {"eval/infrastructure": float(scores.infrastructure)}


def _completions(groups: Sequence[Group], plan: Plan, step: int, version: int) -> list[Completion]:
    return [
        Completion(
            ordinal=group.item.ordinal,
            lease_id=group.item.lease_id,
            verdict_ids=tuple(verdict.id for verdict in group.verdicts),
            weight=weight,
            tokens=sum(len(sample.ids) for sample in group.samples),
            mean_abs_advantage=magnitude,
            step=step,
            policy_version=version,
            reason=None if weight else "zero_variance",
        )
        for group, weight, magnitude in zip(groups, plan.weights, plan.magnitudes, strict=True)
    ]
