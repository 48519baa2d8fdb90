"""Shares over steps, stacked to one: what the outcomes, or the groups, were made of."""

import math
from collections.abc import Sequence

from markupsafe import Markup

from service.dashboard.charts.axes import framed, grid, horizontal, vertical
from service.dashboard.charts.chart import Chart, Key
from service.dashboard.charts.line import Series
from service.dashboard.charts.scale import Extent, Linear, extent
from service.dashboard.charts.svg import UNITS, element, stretched
from service.dashboard.charts.table import Cell, table
from service.dashboard.charts.ticks import ticks, whole_ticks

COLUMNS = 200


def area(series: Sequence[Series], *, title: str, height: int = 200) -> Chart:
    """Stacked shares; a step where a series says nothing counts as 0 for it, and steps are never invented."""
    steps = sorted({step for one in series for step, value in one.points if math.isfinite(value)})
    values = [{step: value for step, value in one.points if math.isfinite(value)} for one in series]
    rows = [(Cell(f"{step:.0f}"), *(Cell(_share(at.get(step))) for at in values)) for step in steps]
    twin = table(["step", *(one.label for one in series)], rows)
    if not steps:
        return Chart(Markup(""), f"{title}: nothing was measured yet.", twin)
    across = extent(steps)
    x, y = Linear(across, 0, UNITS), Linear(Extent(0.0, 1.0), UNITS, 0)
    kept = (
        steps if len(steps) <= COLUMNS else [steps[round(i * (len(steps) - 1) / (COLUMNS - 1))] for i in range(COLUMNS)]
    )
    places = [x.at(step) for step in kept] if len(kept) > 1 else [0.0, float(UNITS)]
    kept = kept if len(kept) > 1 else kept * 2
    floor = [0.0] * len(kept)
    layers = []
    for one, at in zip(series, values, strict=True):
        roof = [low + max(0.0, at.get(step, 0.0)) for low, step in zip(floor, kept, strict=True)]
        layers.append(_layer(one, places, floor, roof, y))
        floor = roof
    last = kept[-1]
    shown = [(one, at[last]) for one, at in zip(series, values, strict=True) if at.get(last, 0.0) > 0]
    sentence = (
        f"{title} at step {last:.0f}: " + (", ".join(f"{one.label} {_share(v)}" for one, v in shown) or "none") + "."
    )
    marks = ticks(y.domain, 4)
    marks = marks._replace(labels=tuple(f"{value:.0%}" for value in marks.values))
    plot = stretched(*layers, grid(marks, y), height=height, label=sentence)
    drawing = framed(plot, vertical(marks, y, height), horizontal(whole_ticks(across), x), "step")
    return Chart(drawing, sentence, twin, tuple(Key(one.label, one.tone) for one in series))


def _layer(one: Series, places: list[float], floor: list[float], roof: list[float], y: Linear) -> Markup:
    top = "L".join(f"{x:.1f} {y.at(value):.1f}" for x, value in zip(places, roof, strict=True))
    bottom = "L".join(f"{x:.1f} {y.at(value):.1f}" for x, value in reversed(list(zip(places, floor, strict=True))))
    return element("path", element("title", one.label), d=f"M{top}L{bottom}Z", class_=f"layer {one.tone}")


def _share(value: float | None) -> str:
    return "—" if value is None else f"{value:.1%}"
