"""Vertical bins: how often a value fell into each range, each bin a link to its rows."""

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from markupsafe import Markup

from service.dashboard.charts.axes import framed, grid, vertical
from service.dashboard.charts.chart import Chart
from service.dashboard.charts.scale import Extent, Linear
from service.dashboard.charts.svg import UNITS, element, link, stretched
from service.dashboard.charts.table import Cell, table
from service.dashboard.charts.ticks import compact, percent, whole_ticks

LABELS = 10


class Bin(NamedTuple):
    """One range, named as its label says, and how many fell into it."""

    label: str
    number: int
    href: str | None = None
    tone: str = "tone-1"


def histogram(bins: Sequence[Bin], *, title: str, noun: str, height: int = 160) -> Chart:
    """Bins in the given order on a scale from zero."""
    whole = sum(one.number for one in bins)
    rows = [(Cell(one.label, one.href), Cell(f"{one.number:,}")) for one in bins]
    twin = table(["range", noun], rows)
    if whole == 0:
        return Chart(Markup(""), f"{title}: there are no {noun} yet.", twin)
    y = Linear(Extent(0.0, float(max(one.number for one in bins)) * 1.04), UNITS, 0)
    marks = whole_ticks(y.domain, 4)
    slot = UNITS / len(bins)
    drawn = []
    for index, one in enumerate(bins):
        top = y.at(one.number)
        label = f"{one.label}: {one.number:,} {noun}"
        hit = element("rect", class_="hit", x=index * slot, y=0, width=slot, height=UNITS)
        bar = element(
            "rect", class_=one.tone, x=index * slot + slot * 0.08, y=top, width=slot * 0.84, height=UNITS - top
        )
        drawn.append(link(one.href, label, bar, hit, tab=len(bins) <= 24))
    largest = max(bins, key=lambda one: one.number)
    sentence = f"{title}: {compact(whole)} {noun}; most at {largest.label} ({percent(largest.number / whole)})."
    plot = stretched(grid(marks, y), *drawn, height=height, label=sentence)
    texts = (
        element("text", one.label, x=f"{(index + 0.5) * 100 / len(bins):.2f}%", y=14, text_anchor="middle")
        for index, one in enumerate(bins)
        if index % ceil(len(bins) / LABELS) == 0  # more of them would run into one another
    )
    below = element("svg", *texts, class_="axis axis-x", width="100%", height=18, aria_hidden="true")
    return Chart(framed(plot, vertical(marks, y, height), below), sentence, twin)
