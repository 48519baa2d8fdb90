from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.stream.shares import turns

WEIGHTS = st.dictionaries(st.sampled_from("abcdefghijkl"), st.floats(0.01, 100), min_size=1)


@given(WEIGHTS, st.lists(st.integers(1, 40), min_size=1, max_size=30))
def test_every_share_holds_to_within_one_group_at_every_moment(weights: dict[str, float], batches: list[int]) -> None:
    credit: dict[str, float] = {}
    served: Counter[str] = Counter()
    total = sum(weights.values())
    for n in batches:
        plan = turns(weights, credit, n)
        assert len(plan.order) == n
        for name in plan.order:
            served[name] += 1
            done = sum(served.values())
            assert all(abs(served[d] - done * w / total) < 1 + 1e-6 for d, w in weights.items())
        credit = dict(plan.credit)


def test_quotas_are_exact_over_a_thousand_batches() -> None:
    """P7, P8: six domains of uneven weights, batches of 64."""
    weights = {"math": 0.4, "code": 0.25, "logic": 0.15, "text": 0.12, "tools": 0.05, "long": 0.03}
    credit: dict[str, float] = {}
    served: Counter[str] = Counter()
    for batch in range(1, 1001):
        plan = turns(weights, credit, 64)
        credit = dict(plan.credit)
        quota = Counter(plan.order)
        assert all(abs(quota[name] - 64 * weight) < 2 for name, weight in weights.items())
        served += quota
        assert all(abs(served[name] - 64 * batch * weight) < 1 for name, weight in weights.items())


@given(WEIGHTS, st.integers(1, 60), st.integers(1, 60))
def test_the_order_does_not_depend_on_the_sizes_of_leases(weights: dict[str, float], first: int, second: int) -> None:
    whole = turns(weights, {}, first + second)
    head = turns(weights, {}, first)
    tail = turns(weights, head.credit, second)
    assert head.order + tail.order == whole.order


def test_a_share_that_cannot_serve_keeps_its_debt_and_no_more() -> None:
    """A domain that was away for a thousand groups does not flood the next batch."""
    credit = turns({"a": 1, "b": 1}, {}, 7).credit
    away = turns({"a": 1}, credit, 1000).credit
    assert away["b"] == credit["b"]
    assert Counter(turns({"a": 1, "b": 1}, away, 10).order)["b"] in {5, 6}


@pytest.mark.parametrize("weights", [{}, {"a": 0.0}, {"a": 1.0, "b": -1.0}])
def test_shares_need_positive_weights(weights: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="positive"):
        turns(weights, {}, 1)
