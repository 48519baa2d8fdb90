import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.stream.difficulty import (
    Posterior,
    band,
    expected_p_informative,
    informative,
    p_informative,
    unseen_value,
    updated,
    value,
    zero_variance_kind,
)


@pytest.mark.parametrize(
    ("p", "worth", "chance"),
    [
        (0.02, 0.0029, 0.149),
        (0.05, 0.0160, 0.337),
        (0.1, 0.0513, 0.570),
        (0.2, 0.1332, 0.832),
        (0.3, 0.1979, 0.942),
        (0.5, 0.2480, 0.992),
    ],
)
def test_the_worth_of_a_group_of_eight(p: float, worth: float, chance: float) -> None:
    assert value(p, 8) == pytest.approx(worth, abs=5e-5)
    assert p_informative(p, 8) == pytest.approx(chance, abs=5e-4)
    assert value(1 - p, 8) == pytest.approx(value(p, 8))


@given(st.integers(2, 64))
def test_means_over_an_unknown_pass_rate(n: int) -> None:
    steps = [(i + 0.5) / 2000 for i in range(2000)]
    assert unseen_value(n) == pytest.approx(sum(value(p, n) for p in steps) / 2000, abs=1e-4)
    assert expected_p_informative(1, 1, n) == pytest.approx(sum(p_informative(p, n) for p in steps) / 2000, abs=1e-3)


def test_a_group_of_one_is_never_informative() -> None:
    assert value(0.5, 1) == p_informative(0.5, 1) == expected_p_informative(3, 2, 1) == 0
    assert unseen_value(1) == pytest.approx(0)


def test_ten_thousand_groups_are_informative_exactly_when_rewards_differ() -> None:
    """P4: raw rewards, one function, −1 included; noise below 1e-6 is no difference."""
    dice = random.Random(5)
    for _ in range(10_000):
        rewards = [dice.choice([-1.0, 0.0, 0.5, 1.0]) for _ in range(dice.randint(0, 12))]
        assert informative(rewards) == (len(set(rewards)) > 1)
        assert informative([reward + dice.uniform(0, 4e-7) for reward in rewards]) == (len(set(rewards)) > 1)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_rewards_that_are_no_number_are_refused(bad: float) -> None:
    for call in (informative, lambda rewards: updated(Posterior(), rewards, 0)):
        with pytest.raises(ValueError, match="finite"):
            call([1.0, bad])


@pytest.mark.parametrize(
    ("rewards", "kind"),
    [
        ([1, 1, 1], "too_easy"),
        ([-1, -1], "dead_format"),
        ([0, 0], "too_hard"),
        ([0.5, 0.5], "flat_partial"),
        ([0, 1], None),
        ([1], None),
        ([], None),
    ],
)
def test_why_a_group_is_flat(rewards: list[float], kind: str | None) -> None:
    assert zero_variance_kind(rewards) == kind


def test_posterior_means_of_one_group() -> None:
    for wins, mean in ((0, 0.10), (4, 0.50), (8, 0.90)):
        found = updated(Posterior(), [1.0] * wins + [0.0] * (8 - wins), 3)
        assert found.mean == pytest.approx(mean, abs=0.005)
        assert found.version == 3
        assert found.bucket == min(19, int(found.mean * 20))


REWARDS = st.lists(st.floats(-1, 1), max_size=8)


@given(REWARDS, REWARDS, st.integers(0, 50))
def test_evidence_of_one_version_adds_up_in_any_order(first: list[float], second: list[float], version: int) -> None:
    one = updated(updated(Posterior(), first, version), second, version)
    other = updated(updated(Posterior(), second, version), first, version)
    whole = updated(Posterior(), first + second, version)
    assert one[:2] == pytest.approx(other[:2])
    assert one[:2] == pytest.approx(whole[:2])


@given(st.integers(0, 40))
def test_late_evidence_counts_less(lag: int) -> None:
    found = updated(Posterior(1, 1, 100), [1.0], 100 - lag)
    assert found.alpha == pytest.approx(1 + math.exp(-lag / 8))
    assert found.version == 100


@given(st.integers(0, 40))
def test_old_evidence_fades_as_the_policy_moves_on(steps: int) -> None:
    found = updated(Posterior(5, 3, 10), [], 10 + steps)
    assert found[:2] == pytest.approx((1 + 4 * math.exp(-steps / 8), 1 + 2 * math.exp(-steps / 8)))


def test_a_policy_that_began_anew_is_believed() -> None:
    """A second run of one lineage starts at version 0: its rollouts count in full, the old ones have faded."""
    found = updated(Posterior(9, 1, 500), [0.0] * 8, 0, newest=0)
    assert found[:2] == pytest.approx((1, 9))
    assert found.version == 0


def test_a_reward_counts_by_its_part_between_nought_and_one() -> None:
    assert updated(Posterior(), [-1.0, 0.25, 1.0], None)[:2] == pytest.approx((2.25, 2.75))


@pytest.mark.parametrize(
    ("k", "n", "expected"),
    [
        (0, 0, "unmeasured"),
        (0, 3, "unsure"),
        (3, 3, "unsure"),
        (0, 8, "too_hard"),
        (8, 8, "too_easy"),
        (1, 8, "hard"),
        (4, 8, "medium"),
        (7, 8, "easy"),
    ],
)
def test_bands(k: int, n: int, expected: str) -> None:
    assert band(k, n) == expected
