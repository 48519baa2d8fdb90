"""Ticks are round, inside the extent and few, whatever the data; numbers read the same everywhere."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.dashboard.charts.scale import Extent, Linear, extent, thin
from service.dashboard.charts.ticks import compact, round_step, ticks, whole_ticks

finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15)


@settings(max_examples=60)
@given(st.lists(st.one_of(st.none(), st.floats(width=32)), max_size=12))
def test_an_extent_is_finite_and_never_empty(values: list[float | None]) -> None:
    found = extent(values)
    assert math.isfinite(found.lo)
    assert math.isfinite(found.hi)
    assert found.hi > found.lo


@settings(max_examples=100)
@given(finite, finite, st.integers(2, 10))
def test_ticks_lie_inside_and_are_few(first: float, second: float, about: int) -> None:
    found = extent([first, second])
    marks = ticks(found, about)
    assert 1 <= len(marks.values) <= 2 * about + 1
    assert len(marks.values) == len(marks.labels)
    slack = (found.hi - found.lo) * 1e-6
    assert all(found.lo - slack <= value <= found.hi + slack for value in marks.values)
    assert list(marks.values) == sorted(marks.values)


@settings(max_examples=60)
@given(st.floats(min_value=1e-12, max_value=1e12))
def test_a_step_is_one_two_or_five_times_a_power_of_ten(raw: float) -> None:
    step = round_step(raw)
    assert raw <= step * (1 + 1e-6)
    assert step <= raw * 10
    mantissa = step / 10 ** math.floor(math.log10(step) + 1e-9)
    assert any(math.isclose(mantissa, one, rel_tol=1e-6) for one in (1, 2, 5, 10))


@pytest.mark.parametrize(
    ("lo", "hi", "labels"),
    [
        (0.0, 1.0, ("0.0", "0.2", "0.4", "0.6", "0.8", "1.0")),
        (0.0, 87.0, ("0", "20", "40", "60", "80")),
        (-1.0, 1.0, ("−1.0", "−0.5", "0.0", "0.5", "1.0")),
        (0.0, 48_213.0, ("0", "10k", "20k", "30k", "40k")),
        (0.0, 0.004, ("0.000", "0.001", "0.002", "0.003", "0.004")),
    ],
)
def test_labels_are_as_a_person_would_write_them(lo: float, hi: float, labels: tuple[str, ...]) -> None:
    assert ticks(Extent(lo, hi)).labels == labels


def test_steps_have_no_halves() -> None:
    assert whole_ticks(Extent(0.0, 3.0)).labels == ("0", "1", "2", "3")
    assert whole_ticks(Extent(4.5, 5.5)).values == (5.0,)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-0.0, "0"),
        (7, "7"),
        (999, "999"),
        (1234, "1,234"),
        (9999, "9,999"),
        (12345, "12.3k"),
        (1000000000000.0, "1T"),
        (-42000, "−42k"),
        (0.12345, "0.123"),
        (3100000, "3.1M"),
    ],
)
def test_large_numbers_are_short_and_small_ones_exact(value: float, text: str) -> None:
    assert compact(value) == text


@settings(max_examples=60)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_place_never_leaves_the_plot(value: float) -> None:
    assert 0 <= Linear(Extent(0.0, 1.0), 0, 1000).at(value) <= 1000


@settings(max_examples=60)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=700), st.integers(1, 50))
def test_thinning_keeps_the_peaks_the_ends_and_the_order(values: list[float], columns: int) -> None:
    points = [(float(index), value) for index, value in enumerate(values)]
    kept = thin(points, columns)
    assert len(kept) <= 2 * columns + 2
    assert kept[0] == points[0]
    assert kept[-1] == points[-1]
    assert max(value for _, value in kept) == max(values)
    assert min(value for _, value in kept) == min(values)
    assert kept == sorted(kept)
