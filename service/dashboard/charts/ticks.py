"""Round ticks on an axis, and numbers written so that a person can read them."""

import math
from typing import NamedTuple

from service.dashboard.charts.scale import Extent


class Ticks(NamedTuple):
    """Values at round places inside the extent, and how each is written."""

    values: tuple[float, ...]
    labels: tuple[str, ...]


def ticks(extent: Extent, about: int = 5) -> Ticks:
    """Between 2 and `2 * about` round values (1, 2 or 5 times a power of ten) inside the extent."""
    span = extent.hi - extent.lo
    if not math.isfinite(span) or span <= 0:
        return Ticks((extent.lo,), (compact(extent.lo),))
    step = round_step(span / max(1, about))
    first = math.ceil(extent.lo / step - 1e-9)
    last = math.floor(extent.hi / step + 1e-9)
    values = tuple(index * step for index in range(first, last + 1)) or (extent.lo, extent.hi)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    if max(abs(value) for value in values) >= 10_000 or decimals > 6:
        return Ticks(values, tuple(compact(value) for value in values))
    return Ticks(values, tuple(plain(value, decimals) for value in values))


def whole_ticks(extent: Extent, about: int = 6) -> Ticks:
    """Ticks at whole numbers only: steps and counts have no halves."""
    found = ticks(extent, about)
    kept = [value for value in found.values if abs(value - round(value)) < 1e-9]
    values = tuple(kept) or (float(math.ceil(extent.lo)),)
    return Ticks(values, tuple(compact(value) if abs(value) >= 10_000 else f"{value:.0f}" for value in values))


def round_step(raw: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is at least `raw`."""
    power: float = 10.0 ** math.floor(math.log10(raw))
    for factor in (1.0, 2.0, 5.0, 10.0):
        if raw <= factor * power * (1 + 1e-9):
            return factor * power
    return 10.0 * power


def plain(value: float, decimals: int) -> str:
    """A fixed number of decimals, a true minus sign, never `-0`."""
    text = f"{value:.{decimals}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("-", "−")


def compact(value: float) -> str:
    """Three digits and a unit: 950, 1.2k, 48.2k, 3.1M, 2.5G, 1.0T; small numbers keep three significant digits."""
    size = abs(value)
    if size >= 1e15:
        return f"{value:.1e}".replace("e+", "e").replace("-", "−")
    for limit, divisor, unit in ((1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if size >= limit:
            scaled = value / divisor
            text = f"{scaled:.0f}" if abs(scaled) >= 100 else f"{scaled:.1f}".removesuffix(".0")
            return f"{text}{unit}".replace("-", "−")
    if value == int(value):
        return f"{int(value):,}".replace("-", "−")
    return (f"{value:,.0f}" if size >= 1000 else f"{value:.3g}").replace("-", "−")


def percent(share: float) -> str:
    """A share in whole percent; what is not nothing never reads as nothing, what is not all never as all."""
    if 0 < share < 0.005:
        return "<1 %"
    if 0.995 <= share < 1:
        return ">99 %"
    return f"{share:.0%}".replace("%", " %")
