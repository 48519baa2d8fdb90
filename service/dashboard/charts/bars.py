"""Horizontal bars: one row a category, label and value as text beside the bar, each row a link."""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from service.dashboard.charts.chart import Chart, Key
from service.dashboard.charts.svg import element, join
from service.dashboard.charts.table import Cell, table
from service.dashboard.charts.ticks import compact, percent


class Bar(NamedTuple):
    """One category. `tone` is the class of its colour."""

    label: str
    value: float
    href: str | None = None
    tone: str = "tone-1"


class Part(NamedTuple):
    """One slice of a stacked bar."""

    label: str
    value: float
    tone: str
    href: str | None = None


def bars(items: Sequence[Bar], *, noun: str) -> Chart:
    """Bars on a common scale from zero. `noun` names what is counted, in the plural."""
    whole = sum(max(0.0, item.value) for item in items)
    largest = max((item.value for item in items), default=0.0)
    if whole <= 0:
        return Chart(Markup(""), f"There are no {noun} yet.", table(["", noun], []))
    drawing = element("div", *(_row(item, largest, noun) for item in items), class_="bars", role="list")
    top = max(items, key=lambda item: item.value)
    sentence = f"{compact(whole)} {noun}; most in {top.label}: {compact(top.value)} ({percent(top.value / whole)})."
    rows = [
        (Cell(item.label, item.href), Cell(f"{item.value:,.0f}"), Cell(f"{item.value / whole:.1%}")) for item in items
    ]
    return Chart(drawing, sentence, table(["", noun, "share"], rows))


def _row(item: Bar, largest: float, noun: str) -> Markup:
    share = max(0.0, item.value) / largest if largest > 0 else 0.0
    width = max(0.6, 100 * share) if item.value > 0 else 0  # a bar of one among thousands is still seen
    bar = element(
        "svg",
        element("rect", class_="track", width="100%", height="100%", rx=2),
        element("rect", class_=item.tone, width=f"{width:.2f}%", height="100%", rx=2),
        class_="bar",
        width="100%",
        height=10,
        aria_hidden="true",
    )
    inner = join(
        (
            element("span", item.label, class_="bar-label"),
            bar,
            element("span", compact(item.value), class_="bar-value"),
        )
    )
    if item.href is None:
        return element("div", inner, class_="bar-row", role="listitem")
    label = f"{item.label}: {item.value:,.0f} {noun}"
    return element("div", element("a", inner, href=item.href, aria_label=label, class_="bar-row"), role="listitem")


def stack(parts: Sequence[Part], *, noun: str, height: int = 14) -> Chart:
    """One bar cut into shares of the whole, with a legend: shape and word beside the colour."""
    whole = sum(max(0.0, part.value) for part in parts)
    shown = [part for part in parts if part.value > 0]
    if whole <= 0:
        return Chart(Markup(""), f"There are no {noun} yet.", table(["", noun], []))
    marks, left = [], 0.0
    for part in shown:
        width = 100 * part.value / whole
        label = f"{part.label}: {part.value:,.0f} {noun} ({part.value / whole:.1%})"
        rect = element("rect", x=f"{left:.3f}%", width=f"{width:.3f}%", height="100%", class_=part.tone)
        title = element("title", label)
        mark = element("a", title, rect, href=part.href, aria_label=label) if part.href else element("g", title, rect)
        marks.append(mark)
        left += width
    sentence = (
        "; ".join(f"{part.label} {percent(part.value / whole)}" for part in shown) + f" of {compact(whole)} {noun}."
    )
    drawing = element("svg", *marks, class_="stack", width="100%", height=height, role="group", aria_label=sentence)
    rows = [(Cell(p.label, p.href), Cell(f"{p.value:,.0f}"), Cell(f"{p.value / whole:.1%}")) for p in parts]
    legend = tuple(Key(f"{part.label} {percent(part.value / whole)}", part.tone) for part in shown)
    return Chart(drawing, sentence, table(["", noun, "share"], rows), legend)
