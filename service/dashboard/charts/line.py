"""Curves over steps: several series on one scale, a readable band for every step, gaps where nothing was measured."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from service.dashboard.charts.axes import framed, grid, horizontal, vertical
from service.dashboard.charts.chart import Chart, Key
from service.dashboard.charts.scale import Extent, Linear, extent, running_mean, thin
from service.dashboard.charts.svg import UNITS, element, link, stretched
from service.dashboard.charts.table import Cell, Table, table
from service.dashboard.charts.ticks import plain, ticks, whole_ticks

COLUMNS = 120
"""A series keeps at most two points a column: 300 points."""
BANDS = 60
"""At most this many steps get a band of their own to point at."""
MANY = 60
"""A curve of more points is drawn faint, with its running mean over it."""
WINDOWS = 25
TAB_STOPS = 24
"""With more bands than this, the table twin is the keyboard's way."""


class Series(NamedTuple):
    """One named curve; points are (step, value), ordered by step. A value that is not finite makes a gap."""

    label: str
    points: tuple[tuple[float, float], ...]
    tone: str


def line(
    series: Sequence[Series],
    *,
    title: str,
    height: int = 200,
    lo: float | None = None,
    hi: float | None = None,
    step_href: Callable[[int], str] | None = None,
    legend: bool = True,
) -> Chart:
    """Curves; `lo` and `hi` are values that the scale must hold."""
    drawn = [one for one in series if any(math.isfinite(value) for _, value in one.points)]
    twin = _twin(series)
    if not drawn:
        return Chart(Markup(""), f"{title}: nothing was measured yet.", twin)
    across = _steps(drawn)
    x = Linear(across, 0, UNITS)
    y = Linear(_padded([value for one in drawn for _, value in one.points], lo, hi), UNITS, 0)
    y_ticks = ticks(y.domain, 4 if height < 160 else 5)
    sentence = _sentence(title, drawn)
    paths = [_curve(one, x, y) for one in drawn]
    plot = stretched(grid(y_ticks, y), *paths, *_bands(drawn, x, step_href), height=height, label=sentence)
    drawing = framed(plot, vertical(y_ticks, y, height), horizontal(whole_ticks(across), x), "step")
    keys = tuple(Key(one.label, one.tone) for one in drawn) if legend and len(drawn) > 1 else ()
    return Chart(drawing, sentence, twin, keys)


def sparkline(values: Sequence[float | None], *, label: str, tone: str = "tone-1") -> Markup:
    """A curve of the size of a word; empty when there are fewer than two values."""
    points = [(float(i), v) for i, v in enumerate(values) if v is not None and math.isfinite(v)]
    if len(points) < 2:
        return Markup("")
    points = thin(points, 60)
    x = Linear(extent(p[0] for p in points), 20, UNITS - 20)
    y = Linear(extent(p[1] for p in points), UNITS - 120, 120)
    path = "M" + "L".join(f"{x.at(a):.0f} {y.at(b):.0f}" for a, b in points)
    end = f"M{x.at(points[-1][0]):.0f} {y.at(points[-1][1]):.0f}h.01"
    return element(
        "svg",
        element("title", label),
        element("path", d=path, class_=f"curve {tone}", vector_effect="non-scaling-stroke"),
        element("path", d=end, class_=f"dot {tone}", vector_effect="non-scaling-stroke"),
        class_="spark",
        viewBox=f"0 0 {UNITS} {UNITS}",
        preserveaspectratio="none",
        role="img",
        aria_label=label,
    )


def _steps(series: Sequence[Series]) -> Extent:
    return extent(step for one in series for step, _ in one.points)


def _padded(values: list[float], lo: float | None, hi: float | None) -> Extent:
    """Room above and below, so that no curve runs on the frame; bounds that were asked for stay as they are."""
    raw = extent(values, lo=lo, hi=hi)
    pad = (raw.hi - raw.lo) * 0.06
    return Extent(raw.lo if raw.lo == lo else raw.lo - pad, raw.hi if raw.hi == hi else raw.hi + pad)


def _curve(one: Series, x: Linear, y: Linear) -> Markup:
    runs: list[list[tuple[float, float]]] = [[]]
    for step, value in one.points:
        if math.isfinite(value):
            runs[-1].append((step, value))
        elif runs[-1]:
            runs.append([])
    runs = [run for run in runs if run]
    count = sum(map(len, runs))
    raw = _path(runs, count, x, y)
    window = window_of(count)
    smooth = [running_mean(run, window) for run in runs]
    last = smooth[-1][-1]
    dots = f"M{x.at(last[0]):.1f} {y.at(last[1]):.1f}h.01"
    if count <= TAB_STOPS:  # few points: show each, a single one would be no line at all
        dots = "".join(f"M{x.at(step):.1f} {y.at(value):.1f}h.01" for run in runs for step, value in run)
    main = _path(smooth, count, x, y) if window > 1 else raw
    faint = element("path", d=raw, class_=f"curve raw {one.tone}", vector_effect="non-scaling-stroke")
    return element(
        "g",
        faint if window > 1 else "",
        element("path", d=main, class_=f"curve {one.tone}", vector_effect="non-scaling-stroke"),
        element("path", d=dots, class_=f"dot {one.tone}", vector_effect="non-scaling-stroke"),
    )


def window_of(count: int) -> int:
    """How many points the thick line of a long curve is the mean of; 1 for a short one."""
    return max(3, count // WINDOWS) if count > MANY else 1


def _path(runs: list[list[tuple[float, float]]], count: int, x: Linear, y: Linear) -> str:
    path = ""
    for run in runs:
        kept = thin(run, max(2, COLUMNS * len(run) // count))
        path += "M" + "L".join(f"{x.at(step):.1f} {y.at(value):.1f}" for step, value in kept)
    return path


def _bands(series: Sequence[Series], x: Linear, step_href: Callable[[int], str] | None) -> list[Markup]:
    """One transparent full-height band a step: a target for the pointer, with every value in its title."""
    steps = sorted({int(step) for one in series for step, _ in one.points})
    if len(steps) > BANDS:
        steps = sorted({steps[round(index * (len(steps) - 1) / (BANDS - 1))] for index in range(BANDS)})
    places = [x.at(step) for step in steps]
    edges = [0.0, *((a + b) / 2 for a, b in itertools.pairwise(places)), float(UNITS)]
    values = [dict(one.points) for one in series]
    bands = []
    for index, step in enumerate(steps):
        found = [f"{one.label} {_text(at[step])}" for one, at in zip(series, values, strict=True) if step in at]
        rect = element("rect", class_="hit", x=edges[index], y=0, width=edges[index + 1] - edges[index], height=UNITS)
        href = step_href(step) if step_href else None
        bands.append(link(href, f"step {step}: " + ", ".join(found), rect, tab=len(steps) <= TAB_STOPS))
    return bands


def _sentence(title: str, series: Sequence[Series]) -> str:
    parts = []
    for one in series[:6]:
        finite = [(step, value) for step, value in one.points if math.isfinite(value)]
        (first_step, first), (last_step, last) = finite[0], finite[-1]
        name = "" if one.label == title else f"{one.label} "
        if first_step == last_step:
            parts.append(f"{name}{_text(last)} at step {last_step:.0f}")
        else:
            parts.append(f"{name}{_text(first)} → {_text(last)}")
    more = f"; {len(series) - 6} more" if len(series) > 6 else ""
    across = _steps(series)
    windows = {window_of(len(one.points)) for one in series} - {1}
    more += f". Thick: the mean of the last {max(windows)} points" if windows else ""
    return f"{title}, steps {max(0.0, across.lo):.0f} to {across.hi:.0f}: {'; '.join(parts)}{more}."


def _twin(series: Sequence[Series]) -> Table:
    steps = sorted({step for one in series for step, _ in one.points})
    values = [dict(one.points) for one in series]
    rows = [(Cell(f"{step:.0f}"), *(Cell(_text(at.get(step))) for at in values)) for step in steps]
    return table(["step", *(one.label for one in series)], rows)


def _text(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return "—"
    return plain(value, 0) if value == int(value) and abs(value) < 1e6 else plain(value, 3 if abs(value) < 100 else 1)
