"""Advantages and the policy loss: pure functions with orthogonal switches.

Per token: `logp` of the policy in training, `old` its value at the start of the step, `behaviour` that of the engine
that sampled, `reference` that of the frozen reference. Everything that divides is a coefficient known before the first
forward, over the whole optimiser step; gates that depend on probabilities zero the numerator only. So the gradient does
not depend on how a batch is split.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from trainer.config import AlgoConfig, OverlongConfig

SIGNAL = 1e-6
DPPO_GATE, DPPO_PULL = 0.2, 1e-3
Rewards = Sequence[float | None]


class Advantages(NamedTuple):
    """One value for each sample of the group; None where the sample takes no part."""

    values: list[float | None]
    dead: bool


def shaped(reward: float | None, length: int, limit: int, overlong: OverlongConfig) -> float | None:
    """The reward less the penalty for nearing the length limit; an absent reward stays absent."""
    if reward is None or not overlong.buffer:
        return reward
    excess = max(0, length - (limit - overlong.buffer))
    return reward - overlong.penalty * excess / overlong.buffer


def informative(rewards: Rewards) -> bool:
    """Whether the group tells anything: over the whole group, on raw rewards, never on advantages."""
    valid = [reward for reward in rewards if reward is not None]
    return len(valid) > 1 and max(valid) - min(valid) > SIGNAL


def group_advantages(rewards: Rewards, algo: AlgoConfig) -> Advantages:
    """Advantages within one group; absent rewards leave baseline and scale alone."""
    valid = torch.tensor([reward for reward in rewards if reward is not None], dtype=torch.float64)
    dead = not informative(rewards) or (algo.scale == "mean" and float(valid.mean()) <= 0)
    if not len(valid):
        return Advantages([None] * len(rewards), dead=True)
    centred = valid - valid.mean()
    if algo.baseline == "loo" and len(valid) > 1:
        centred = centred * len(valid) / (len(valid) - 1)
    if algo.scale == "std":
        centred = centred / (valid.std(correction=0) + 1e-4)
    elif algo.scale == "mean" and float(valid.mean()) > 0:
        centred = centred / valid.mean()
    values = iter(centred.tolist())
    return Advantages([None if reward is None else next(values) for reward in rewards], dead)


def batch_advantages(groups: Sequence[Rewards], algo: AlgoConfig) -> list[Advantages]:
    """Advantages of every group of a step; scale "batch" whitens over all live samples."""
    found = [group_advantages(rewards, algo) for rewards in groups]
    if algo.scale != "batch":
        return found
    live = [v for group in found if not (group.dead and algo.drop_zero_variance) for v in group.values if v is not None]
    spread = float(torch.tensor(live, dtype=torch.float64).std(correction=0)) if live else 1.0
    mean = sum(live) / len(live) if live else 0.0
    return [
        Advantages([None if v is None else (v - mean) / (spread + 1e-8) for v in group.values], group.dead)
        for group in found
    ]


def coefficients(lengths: Sequence[int], agg: str, max_length: int) -> list[float]:
    """The factor of each token of each trained sequence (a masked one has length 0), over the whole step."""
    live = [length for length in lengths if length]
    if agg == "token":
        return [1 / sum(live) if length else 0.0 for length in lengths]
    if agg == "const":
        return [1 / (len(live) * max_length) if length else 0.0 for length in lengths]
    return [1 / (len(live) * length) if length else 0.0 for length in lengths]


class LossInput(NamedTuple):
    """Tokens of whole sequences; `sequence` numbers them from 0 to `sequences` - 1 within this micro-batch."""

    logp: Tensor
    entropy: Tensor
    old: Tensor
    behaviour: Tensor
    reference: Tensor | None
    advantage: Tensor
    coefficient: Tensor
    sequence: Tensor
    sequences: int


class LossOutput(NamedTuple):
    """`loss` is to be summed over micro-batches as it is; the sums are over tokens, for the log."""

    loss: Tensor
    sums: dict[str, float]


def _mean_by_sequence(values: Tensor, sequence: Tensor, count: int) -> Tensor:
    """The mean of each sequence, given back to each of its tokens. The mean, never the sum: length is no mismatch."""
    total = values.new_zeros(count).index_add(0, sequence, values)
    tokens = values.new_zeros(count).index_add(0, sequence, torch.ones_like(values))
    return (total / tokens.clamp(min=1))[sequence]


def _importance(given: LossInput, algo: AlgoConfig) -> Tensor:
    """The weight of each token for the gap between the engine that sampled and the trainer."""
    rule = algo.importance
    gap = (given.old - given.behaviour).detach()
    ratio = gap.exp()
    weight = ratio.clamp(max=rule.token_cap) if rule.token_cap else torch.ones_like(ratio)
    if rule.token_mask:
        weight = weight * ((ratio >= rule.token_mask[0]) & (ratio <= rule.token_mask[1]))
    mean_gap = _mean_by_sequence(gap, given.sequence, given.sequences)
    if rule.seq_mask:
        weight = weight * ((mean_gap.exp() >= rule.seq_mask[0]) & (mean_gap.exp() <= rule.seq_mask[1]))
    if rule.opsm:
        drift = _mean_by_sequence((given.behaviour - given.logp).detach(), given.sequence, given.sequences)
        weight = weight * ~((given.advantage < 0) & (drift > rule.opsm))
    return weight


def _ratio(given: LossInput, algo: AlgoConfig) -> Tensor:
    gap = given.logp - given.old
    if algo.ratio == "token":
        return gap.exp()
    mean = _mean_by_sequence(gap.detach(), given.sequence, given.sequences)
    return (mean + given.logp - given.logp.detach()).exp()  # value of the sequence, gradient of the token


def _surrogate(given: LossInput, algo: AlgoConfig) -> tuple[Tensor, Tensor, Tensor]:
    """What is minimised for each token, and where the lower and the upper clip bind."""
    a = given.advantage
    if algo.clip_mode == "dppo":
        moved = (given.logp.exp() - given.behaviour.exp()).detach()
        low, high = (a < 0) & (moved < -DPPO_GATE), (a > 0) & (moved > DPPO_GATE)
        gap = given.logp - given.behaviour
        return -(~(low | high) * gap.exp() * a) + DPPO_PULL * gap.square(), low, high
    ratio = _ratio(given, algo)
    low, high = (a < 0) & (ratio < 1 - algo.clip[0]), (a > 0) & (ratio > 1 + algo.clip[1])
    if algo.clip_mode == "cispo":
        return -ratio.clamp(max=1 + algo.clip[1]).detach() * a * given.logp, low & False, high
    if algo.clip_c:
        ratio = torch.where(a < 0, ratio.clamp(max=algo.clip_c), ratio)
    return -torch.minimum(ratio * a, ratio.clamp(1 - algo.clip[0], 1 + algo.clip[1]) * a), low, high


def policy_loss(given: LossInput, algo: AlgoConfig) -> LossOutput:
    """The loss of one micro-batch, already divided by the normaliser of the whole step."""
    surrogate, low, high = _surrogate(given, algo)
    weight = torch.ones_like(given.logp) if algo.clip_mode == "dppo" else _importance(given, algo)
    token_loss = weight * surrogate - algo.entropy * given.entropy
    sums = {
        "tokens": float(given.logp.numel()),
        "entropy": float(given.entropy.detach().sum()),
        "clip_low": float(low.sum()),
        "clip_high": float(high.sum()),
        "is_dropped": float((weight == 0).sum()),
        "mismatch": float((given.behaviour - given.old).sum()),
        "mismatch_abs": float((given.behaviour - given.old).abs().sum()),
    }
    if given.reference is not None:
        gap = given.reference - given.logp
        k3 = gap.exp() - gap - 1
        token_loss = token_loss + algo.kl * k3
        sums["kl_ref"] = float(k3.detach().sum())
    return LossOutput((given.coefficient * token_loss).sum(), sums)
