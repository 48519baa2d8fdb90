"""Pass rates on a fixed suite of held-out tasks: avg@k, unbiased pass@k, and a paired bootstrap interval."""

import random
from collections.abc import Mapping, Sequence
from math import comb
from typing import NamedTuple, Protocol

from trainer.contract import Attribution, Request, RolloutEngine, Verdict
from trainer.judge import Answer
from trainer.models.characters import decode
from trainer.prompts import prompt_ids, sample_seed
from trainer.tasks import HeldOut

RESAMPLES = 1000


class Judge(Protocol):
    def __call__(self, answers: Sequence[Answer], attribution: Attribution) -> list[Verdict]: ...


class Scores(NamedTuple):
    """By domain. `passes` is the share passed of each task of the suite; None where our own failure left no verdict."""

    avg: dict[str, float]
    pass_at: dict[str, float]
    passes: list[float | None]
    infrastructure: int


class Interval(NamedTuple):
    """A mean difference and its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float


def pass_at_k(n: int, c: int, k: int) -> float:
    """The chance that at least one of k samples passes, unbiased, from c passes in n samples."""
    return 1.0 - comb(n - c, k) / comb(n, k)


def paired_interval(after: Sequence[float | None], before: Sequence[float | None], seed: int) -> Interval | None:
    """The mean rise over tasks that both sides judged; None when there is none."""
    pairs = [(a, b) for a, b in zip(after, before, strict=True) if a is not None and b is not None]
    rises = [a - b for a, b in pairs]
    if not rises:
        return None
    chooser = random.Random(seed)
    means = sorted(sum(chooser.choices(rises, k=len(rises))) / len(rises) for _ in range(RESAMPLES))
    return Interval(sum(rises) / len(rises), means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1])


class Evaluator:
    """Runs one suite with fixed seeds; its attempts name the evaluation run, so they move no difficulty."""

    def __init__(
        self, suite: Sequence[HeldOut], judge: Judge, k: int, temperature: float, max_new_tokens: int, seed: int
    ) -> None:
        self.suite = list(suite)
        self._judge, self._k, self._temperature = judge, k, temperature
        self._max_new_tokens, self._seed = max_new_tokens, seed

    def run(self, engine: RolloutEngine, attribution: Attribution) -> Scores:
        requests = [
            Request(prompt_ids(task.prompt), sample_seed(self._seed, place, -1, index))
            for place, task in enumerate(self.suite)
            for index in range(self._k)
        ]
        samples = engine.generate(requests, self._temperature, self._max_new_tokens)
        answers = [
            Answer(self.suite[i // self._k].ref, decode(s.ids), f"{attribution.run}:{i // self._k}", len(s.ids))
            for i, s in enumerate(samples)
        ]
        verdicts = self._judge(answers, attribution)
        by_task = [verdicts[i : i + self._k] for i in range(0, len(verdicts), self._k)]
        return self._scores(by_task)

    def _scores(self, by_task: Sequence[Sequence[Verdict]]) -> Scores:
        passes: list[float | None] = []
        averages: dict[str, list[float]] = {}
        chances: dict[str, list[float]] = {}
        infrastructure = 0
        for task, verdicts in zip(self.suite, by_task, strict=True):
            judged = [verdict.outcome == "verified" for verdict in verdicts if verdict.reward is not None]
            infrastructure += len(verdicts) - len(judged)
            if len(judged) < self._k:
                passes.append(None)
                continue
            passes.append(sum(judged) / len(judged))
            averages.setdefault(task.domain, []).append(sum(judged) / len(judged))
            chances.setdefault(task.domain, []).append(pass_at_k(len(judged), sum(judged), self._k))
        return Scores(_means(averages), _means(chances), passes, infrastructure)

    def rises(self, after: Sequence[float | None], before: Sequence[float | None]) -> dict[str, dict[str, float]]:
        """The paired rise of each domain, as plain data."""
        found = {}
        for domain in sorted({task.domain for task in self.suite}):
            places = [i for i, task in enumerate(self.suite) if task.domain == domain]
            interval = paired_interval([after[i] for i in places], [before[i] for i in places], self._seed)
            if interval:
                found[domain] = interval._asdict()
        return found


def _means(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {name: sum(row) / len(row) for name, row in sorted(values.items())}
