"""One batch of verified groups becomes optimiser steps: advantages, normaliser, micro-batches, loss, clip, step."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from trainer.batching import MicroBatch, Pair, micro_batches
from trainer.config import AlgoConfig, Config
from trainer.contract import Group, Sample
from trainer.logprobs import TokenScores, token_scores
from trainer.loss import LossInput, batch_advantages, coefficients, policy_loss, shaped
from trainer.models.tiny import TinyGPT


class Trained(NamedTuple):
    """A sample that takes part in a step."""

    sample: Sample
    advantage: float


class Plan(NamedTuple):
    """What of a batch is trained; `weights` and `magnitudes` (mean absolute advantage) are one for each group."""

    trained: list[Trained]
    weights: list[float]
    magnitudes: list[float]
    dead_tokens: int


def plan_update(groups: Sequence[Group], config: Config) -> Plan:
    """Advantages of all groups; dead groups and truncated samples leave numerator and normaliser alike."""
    algo, limit = config.algo, config.rollout.max_new_tokens
    rewards = [
        [shaped(v.reward, len(s.ids), limit, algo.overlong) for s, v in zip(g.samples, g.verdicts, strict=True)]
        for g in groups
    ]
    trained: list[Trained] = []
    weights, magnitudes, dead_tokens = [], [], 0
    for group, found in zip(groups, batch_advantages(rewards, algo), strict=True):
        valid = [abs(a) for a in found.values if a is not None]
        magnitudes.append(sum(valid) / len(valid) if valid else 0.0)
        dropped = found.dead and algo.drop_zero_variance
        weights.append(0.0 if dropped else 1.0)
        if dropped:
            dead_tokens += sum(len(sample.ids) for sample in group.samples)
            continue
        for sample, advantage in zip(group.samples, found.values, strict=True):
            if advantage is not None and not (algo.mask_truncated and sample.finish == "length"):
                trained.append(Trained(sample, advantage))
    return Plan(trained, weights, magnitudes, dead_tokens)


class Updater:
    """The model, its optimiser and its learning-rate schedule; `reference` is the frozen policy version 0."""

    def __init__(self, model: TinyGPT, reference: TinyGPT | None, config: Config) -> None:
        self.model, self.reference, self._config = model, reference, config
        optim = config.optim
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=optim.lr, betas=(optim.betas[0], optim.betas[1]), weight_decay=optim.wd
        )

    def learning_rate(self, step: int) -> float:
        """Of step `step`, counted from 1."""
        optim = self._config.optim
        rate = optim.lr * min(1.0, step / max(1, optim.warmup))
        if optim.schedule == "linear":
            rate *= max(0.0, 1 - (step - 1) / self._config.run.max_steps)
        return rate

    def train(self, plan: Plan, step: int) -> dict[str, float]:
        """Run the optimiser steps of one batch; answers its metrics. A batch without signal changes nothing."""
        metrics = {"optim/lr": self.learning_rate(step), "group/dead_tokens_saved": float(plan.dead_tokens)}
        if not plan.trained:
            return metrics
        for group in self.optimizer.param_groups:
            group["lr"] = metrics["optim/lr"]
        updates = min(self._config.batch.updates_per_batch, len(plan.trained))
        old = self._old_scores(plan.trained) if updates > 1 else None
        sums: dict[str, float] = {}
        norms = [
            self._update(plan.trained, range(start, len(plan.trained), updates), old, sums) for start in range(updates)
        ]
        metrics["optim/grad_norm"] = sum(norms) / len(norms)
        return metrics | _per_token(sums)

    def _update(self, trained: Sequence[Trained], places: range, old: Tensor | None, sums: dict[str, float]) -> float:
        chosen = [trained[i] for i in places]
        limit = self._config.rollout.max_new_tokens
        factors = torch.tensor(coefficients([len(t.sample.ids) for t in chosen], self._config.algo.agg, limit))
        pairs = [Pair(t.sample.prompt_ids, t.sample.ids) for t in chosen]
        for micro in micro_batches(pairs, self._config.batch.tokens_per_micro):
            kept = None if old is None else old[torch.tensor(list(places))][micro.sequence, micro.offset]
            given = self._given(micro, chosen, factors, kept)
            output = policy_loss(given, self._config.algo)
            output.loss.backward()  # type: ignore[no-untyped-call]
            for name, value in output.sums.items():
                sums[name] = sums.get(name, 0.0) + value
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self._config.optim.max_grad_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return float(norm)

    def _scores(self, model: TinyGPT, micro: MicroBatch) -> TokenScores:
        states = model.hidden(micro.ids)[micro.rows, micro.columns]
        return token_scores(states, model.head, micro.targets, self._config.rollout.temperature)

    def _given(self, micro: MicroBatch, chosen: Sequence[Trained], factors: Tensor, old: Tensor | None) -> LossInput:
        scores = self._scores(self.model, micro)
        reference = None
        if self.reference is not None:
            with torch.no_grad():
                reference = self._scores(self.reference, micro).logp
        places, sequence = torch.unique(micro.sequence, return_inverse=True)
        behaviour = [
            chosen[i].sample.logps[j] for i, j in zip(micro.sequence.tolist(), micro.offset.tolist(), strict=True)
        ]
        return LossInput(
            logp=scores.logp,
            entropy=scores.entropy,
            old=scores.logp.detach() if old is None else old,
            behaviour=torch.tensor(behaviour),
            reference=reference,
            advantage=torch.tensor([t.advantage for t in chosen], dtype=torch.float32)[micro.sequence],
            coefficient=factors[micro.sequence],
            sequence=sequence,
            sequences=len(places),
        )

    @torch.no_grad()
    def _old_scores(self, trained: Sequence[Trained]) -> Tensor:
        """Log-probabilities before the first update, as sequences × response places."""
        old = torch.zeros(len(trained), max(len(t.sample.ids) for t in trained))
        pairs = [Pair(t.sample.prompt_ids, t.sample.ids) for t in trained]
        for micro in micro_batches(pairs, self._config.batch.tokens_per_micro):
            old[micro.sequence, micro.offset] = self._scores(self.model, micro).logp
        return old


def reference_needed(algo: AlgoConfig) -> bool:
    return algo.kl > 0


def _per_token(sums: dict[str, float]) -> dict[str, float]:
    tokens = max(1.0, sums.get("tokens", 0.0))
    names = {
        "entropy": "policy/entropy",
        "clip_low": "policy/clip_frac_low",
        "clip_high": "policy/clip_frac_high",
        "kl_ref": "policy/kl_ref",
        "mismatch": "mismatch/kl_mean",
        "mismatch_abs": "mismatch/logp_absdiff",
        "is_dropped": "mismatch/is_dropped_frac",
    }
    return {name: sums[key] / tokens for key, name in names.items() if key in sums}
