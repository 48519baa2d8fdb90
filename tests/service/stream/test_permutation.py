from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.stream.permutation import permuted, units


@given(st.text(max_size=200), st.integers(1, 400), st.integers(0, 5))
def test_each_pass_is_a_permutation_of_all_positions(key: str, count: int, turn: int) -> None:
    assert sorted(permuted(key, count, turn * count + k) for k in range(count)) == list(range(count))


def test_the_order_is_the_same_in_every_process() -> None:
    """A golden vector: a change of the permutation would reorder every stream that exists."""
    assert [permuted("7:math", 10, place) for place in range(20)] == GOLDEN


GOLDEN = [1, 7, 2, 0, 9, 3, 5, 8, 4, 6, 4, 7, 2, 9, 5, 6, 3, 1, 8, 0]


def test_passes_and_keys_differ() -> None:
    orders = {
        tuple(permuted(key, 50, turn * 50 + k) for k in range(50))
        for key in ("a", "b", "a" * 300, "a" * 301)
        for turn in range(3)
    }
    assert len(orders) == 12


def test_neighbours_do_not_stay_neighbours() -> None:
    order = [permuted("seed", 10_000, place) for place in range(10_000)]
    close = sum(abs(left - right) < 100 for left, right in pairwise(order))
    assert close < 400  # by chance 2 % of 10,000


def test_no_position_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one"):
        permuted("a", 0, 0)


def test_units_are_even_and_repeatable() -> None:
    first = list(islice(units("a"), 4000))
    assert first == list(islice(units("a"), 4000))
    assert all(0 <= u < 1 for u in first)
    assert abs(sum(first) / 4000 - 0.5) < 0.03
