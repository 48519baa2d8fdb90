"""The losses against closed forms, and the rules that public issues proved necessary."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from trainer.config import AlgoConfig, ImportanceConfig, OverlongConfig
from trainer.loss import (
    LossInput,
    batch_advantages,
    coefficients,
    group_advantages,
    informative,
    policy_loss,
    shaped,
)

OFF = ImportanceConfig(token_cap=0.0, seq_mask=())
PLAIN = AlgoConfig(importance=OFF)
REWARDS = [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("algo", "expected"),
    [
        (AlgoConfig(), [0.75, -0.25, -0.25, -0.25]),
        (AlgoConfig(baseline="loo"), [1.0, -1 / 3, -1 / 3, -1 / 3]),
        (AlgoConfig(scale="std"), [v / (math.sqrt(3) / 4 + 1e-4) for v in (0.75, -0.25, -0.25, -0.25)]),
        (AlgoConfig(scale="mean"), [3.0, -1.0, -1.0, -1.0]),
    ],
)
def test_advantages(algo: AlgoConfig, expected: list[float]) -> None:
    assert group_advantages(REWARDS, algo).values == pytest.approx(expected)


def test_batch_scale_whitens_over_all_live_samples() -> None:
    found = batch_advantages([REWARDS, [1.0, 1.0], [1.0, 0.0]], AlgoConfig(scale="batch"))
    live = torch.tensor([v for group in (found[0], found[2]) for v in group.values], dtype=torch.float64)
    assert float(live.mean()) == pytest.approx(0, abs=1e-9)
    assert float(live.std(correction=0)) == pytest.approx(1, abs=1e-6)
    assert found[1].dead


def test_absent_rewards_leave_baseline_and_scale_alone() -> None:
    """Law 1: our own failure is no number."""
    for algo in (AlgoConfig(), AlgoConfig(baseline="loo"), AlgoConfig(scale="std"), AlgoConfig(scale="mean")):
        whole = group_advantages(REWARDS, algo).values
        holed = group_advantages([1.0, None, 0.0, 0.0, None, 0.0], algo).values
        assert holed == [whole[0], None, whole[1], whole[2], None, whole[3]]


def test_a_group_is_dead_over_the_whole_group() -> None:
    """#17: seven equal winners and one loser is signal for each of the eight."""
    assert informative([1.0] * 7 + [0.0])
    assert not informative([1.0] * 8)
    assert not informative([1.0, None, None])
    assert not informative([])
    assert not informative([0.5, 0.5 + 1e-9])
    assert group_advantages([None, None], AlgoConfig()).dead
    assert group_advantages([0.0, 0.0], AlgoConfig(scale="mean")).dead


@pytest.mark.parametrize(("length", "penalty"), [(4, 0.0), (6, 0.0), (8, 0.5), (10, 1.0)])
def test_overlong_is_linear_from_the_buffer_to_the_limit(length: int, penalty: float) -> None:
    assert shaped(1.0, length, 10, OverlongConfig(buffer=4, penalty=1.0)) == pytest.approx(1 - penalty)
    assert shaped(None, length, 10, OverlongConfig(buffer=4)) is None
    assert shaped(1.0, length, 10, OverlongConfig()) == 1.0


@pytest.mark.parametrize(
    ("agg", "expected"),
    [("token", [1 / 6, 1 / 6, 0]), ("const", [1 / 20, 1 / 20, 0]), ("seq", [1 / 4, 1 / 8, 0])],
)
def test_normalisers_leave_masked_sequences_out(agg: str, expected: list[float]) -> None:
    """#15: a masked sequence (length 0) is out of N as well."""
    assert coefficients([2, 4, 0], agg, max_length=10) == pytest.approx(expected)
    assert coefficients([], agg, max_length=10) == []


def given(**changes: Any) -> LossInput:
    """Two sequences of two and three tokens."""
    values: dict[str, Any] = {
        "logp": torch.tensor([-1.0, -0.5, -2.0, -0.2, -1.5], requires_grad=True),
        "entropy": torch.tensor([0.5, 0.6, 0.7, 0.8, 0.9]),
        "old": torch.tensor([-1.1, -0.9, -1.6, -0.2, -1.4]),
        "behaviour": torch.tensor([-1.2, -0.8, -1.7, -0.4, -1.0]),
        "reference": None,
        "advantage": torch.tensor([1.0, 1.0, -0.5, -0.5, -0.5]),
        "coefficient": torch.full((5,), 0.2),
        "sequence": torch.tensor([0, 0, 1, 1, 1]),
        "sequences": 2,
    }
    return LossInput(**(values | changes))


def gradient(source: LossInput, algo: AlgoConfig) -> Tensor:
    (found,) = torch.autograd.grad(policy_loss(source, algo).loss, source.logp)
    return found


def test_ppo_clips_by_the_closed_form() -> None:
    source = given()
    ratio = (source.logp - source.old).exp().detach()
    a = source.advantage
    expected = -(torch.minimum(ratio * a, ratio.clamp(0.8, 1.28) * a) * 0.2).sum()
    assert torch.allclose(policy_loss(source, PLAIN).loss, expected)
    bound = torch.where(a > 0, ratio <= 1.28, ratio >= 0.8)
    assert torch.allclose(gradient(source, PLAIN), -0.2 * ratio * a * bound, atol=1e-6)


def test_dual_clip_bounds_the_ratio_of_bad_tokens() -> None:
    source = given(old=torch.tensor([-1.0, -0.5, -4.0, -0.2, -1.5]))
    assert abs(float(gradient(source, PLAIN)[2])) > 0
    assert float(gradient(source, replace(PLAIN, clip_c=3.0))[2]) == 0


def test_sequence_ratio_has_the_mean_and_the_tokens_gradient() -> None:
    """GSPO: the value is that of the sequence's geometric mean; #13: never the sum."""
    algo = replace(PLAIN, ratio="sequence", clip=(10.0, 10.0))
    source = given()
    gap = (source.logp - source.old).detach()
    value = torch.cat([gap[:2].mean().exp().expand(2), gap[2:].mean().exp().expand(3)])
    assert torch.allclose(gradient(source, algo), -0.2 * value * source.advantage, atol=1e-6)


def test_cispo_keeps_every_tokens_gradient() -> None:
    source = given(old=torch.tensor([-3.0, -0.5, -2.0, -0.2, -1.5]))
    ratio = (source.logp - source.old).exp().clamp(max=1.28).detach()
    found = gradient(source, replace(PLAIN, clip_mode="cispo"))
    assert torch.allclose(found, -0.2 * ratio * source.advantage, atol=1e-6)


def test_dppo_drops_tokens_that_moved_too_far() -> None:
    algo = replace(PLAIN, clip_mode="dppo")
    source = given(
        logp=torch.log(torch.tensor([0.9, 0.5, 0.1, 0.5, 0.2])).requires_grad_(),
        behaviour=torch.log(torch.tensor([0.5, 0.5, 0.5, 0.5, 0.2])),
    )
    output = policy_loss(source, algo)
    assert output.sums["clip_high"] == 1
    assert output.sums["clip_low"] == 1
    pull = 2 * 1e-3 * (source.logp - source.behaviour).detach() * 0.2
    found = gradient(source, algo)
    assert torch.allclose(found[[0, 2]], pull[[0, 2]], atol=1e-7)


@pytest.mark.parametrize(
    ("rule", "weights"),
    [
        (ImportanceConfig(token_cap=1.05, seq_mask=()), [1.05, math.exp(-0.1), 1.05, 1.05, math.exp(-0.4)]),
        (ImportanceConfig(token_cap=0, token_mask=(0.8, 1.15), seq_mask=()), [1, 1, 1, 0, 0]),
        (ImportanceConfig(token_cap=0, seq_mask=(0.98, 2.0)), [1, 1, 0, 0, 0]),
        (ImportanceConfig(token_cap=0, seq_mask=(), opsm=0.1), [1, 1, 0, 0, 0]),
    ],
)
def test_importance_corrections(rule: ImportanceConfig, weights: list[float]) -> None:
    """Gates that depend on probabilities touch the numerator alone: the coefficient stays."""
    source = given()
    wide = AlgoConfig(clip=(10.0, 10.0), importance=rule)
    plain = gradient(source, replace(wide, importance=OFF))
    assert torch.allclose(gradient(source, wide), plain * torch.tensor(weights), atol=1e-6)


def test_the_sequence_mask_is_by_the_mean_not_by_the_sum() -> None:
    """#13: 512 tokens, each off by 0.005, are one sequence well within bounds."""
    tokens = 512
    source = LossInput(
        logp=torch.full((tokens,), -1.0, requires_grad=True),
        entropy=torch.zeros(tokens),
        old=torch.full((tokens,), -1.0),
        behaviour=torch.full((tokens,), -0.995),
        reference=None,
        advantage=torch.ones(tokens),
        coefficient=torch.full((tokens,), 1 / tokens),
        sequence=torch.zeros(tokens, dtype=torch.long),
        sequences=1,
    )
    assert policy_loss(source, AlgoConfig()).sums["is_dropped"] == 0


def test_kl_and_entropy_have_their_closed_forms() -> None:
    source = given(reference=torch.tensor([-1.0, -1.0, -1.0, -1.0, -1.0]))
    base = policy_loss(source, PLAIN).loss.detach()
    gap = (source.reference - source.logp).detach() if source.reference is not None else torch.zeros(5)
    k3 = gap.exp() - gap - 1
    assert float(policy_loss(source, replace(PLAIN, kl=0.5)).loss.detach() - base) == pytest.approx(
        float(0.5 * 0.2 * k3.sum()), abs=1e-5
    )
    with_bonus = policy_loss(given(), replace(PLAIN, entropy=0.1)).loss - policy_loss(given(), PLAIN).loss
    assert float(with_bonus.detach()) == pytest.approx(-0.1 * 0.2 * 3.5, abs=1e-6)
