"""From values to places: linear scales that survive empty, single, equal and unbounded data."""

import math
from collections.abc import Iterable
from typing import NamedTuple

WIDEST = 1e300
"""Beyond this the difference of two values would not be finite."""


class Extent(NamedTuple):
    """The smallest and the largest value; always finite, and `hi` is always larger than `lo`."""

    lo: float
    hi: float


def extent(values: Iterable[float | None], *, lo: float | None = None, hi: float | None = None) -> Extent:
    """The range of the finite values, widened to hold `lo` and `hi`; (0, 1) when there is none."""
    finite = [max(-WIDEST, min(WIDEST, value)) for value in values if value is not None and math.isfinite(value)]
    finite += [bound for bound in (lo, hi) if bound is not None]
    if not finite:
        return Extent(0.0, 1.0)
    low, high = float(min(finite)), float(max(finite))
    if high > low:
        return Extent(low, high)
    pad = abs(low) * 0.1 or 0.5  # all values equal: show the line in the middle
    return Extent(low - pad, high + pad) if high + pad > low - pad else Extent(low - 1.0, high + 1.0)


class Linear(NamedTuple):
    """A straight line from `domain` to `start … end`."""

    domain: Extent
    start: float
    end: float

    def at(self, value: float) -> float:
        """The place of a value; values outside the domain are drawn at its edge."""
        share = (value - self.domain.lo) / (self.domain.hi - self.domain.lo)
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)


def running_mean(points: list[tuple[float, float]], window: int) -> list[tuple[float, float]]:
    """The mean of each point and the `window - 1` before it: no point knows the future."""
    total, smooth = 0.0, []
    for index, (step, value) in enumerate(points):
        total += value - (points[index - window][1] if index >= window else 0.0)
        smooth.append((step, total / min(index + 1, window)))
    return smooth


def thin(points: list[tuple[float, float]], columns: int) -> list[tuple[float, float]]:
    """At most about two points a column, its smallest and its largest: peaks survive, in the order of the data."""
    if len(points) <= 2 * columns or columns < 1:
        return points
    kept: list[tuple[float, float]] = [points[0]]
    size = (len(points) - 2) / columns
    for column in range(columns):
        chunk = points[1 + int(column * size) : 1 + int((column + 1) * size)]
        if chunk:
            low = min(range(len(chunk)), key=lambda index: chunk[index][1])
            high = max(range(len(chunk)), key=lambda index: chunk[index][1])
            kept += [chunk[index] for index in sorted({low, high})]
    return [*kept, points[-1]]
