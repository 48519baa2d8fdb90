"""The frame around a plot: labels of the vertical and the horizontal axis, and grid lines.

Text is placed in percent of an unscaled drawing, so that it keeps its size when the plot is stretched.
"""

from markupsafe import Markup

from service.dashboard.charts.scale import Linear
from service.dashboard.charts.svg import UNITS, element
from service.dashboard.charts.ticks import Ticks

AXIS_WIDTH = 46
"""Pixels kept for the labels of the vertical axis; the stylesheet's grid has the same width."""


def grid(marks: Ticks, scale: Linear) -> Markup:
    """Horizontal hairlines at the ticks."""
    path = " ".join(f"M0 {scale.at(value):.1f}H{UNITS}" for value in marks.values)
    return element("path", class_="grid", d=path, vector_effect="non-scaling-stroke")


def vertical(marks: Ticks, scale: Linear, height: int) -> Markup:
    """The labels left of the plot."""
    texts = (
        element(
            "text", label, x=AXIS_WIDTH - 8, y=f"{scale.at(value) / UNITS * 100:.2f}%", dy=".32em", text_anchor="end"
        )
        for value, label in zip(marks.values, marks.labels, strict=True)
    )
    return element("svg", *texts, class_="axis axis-y", width=AXIS_WIDTH, height=height, aria_hidden="true")


def horizontal(marks: Ticks, scale: Linear) -> Markup:
    """The labels below the plot; the outermost ones turn inwards, so that they are never cut off."""
    texts = []
    for value, label in zip(marks.values, marks.labels, strict=True):
        share = scale.at(value) / UNITS
        anchor = "start" if share < 0.04 else "end" if share > 0.96 else "middle"
        texts.append(element("text", label, x=f"{share * 100:.2f}%", y=14, text_anchor=anchor))
    return element("svg", *texts, class_="axis axis-x", width="100%", height=18, aria_hidden="true")


def framed(plot: Markup, left: Markup, below: Markup, note: str = "") -> Markup:
    """Plot and axes in the grid that the stylesheet lays out; `note` names the horizontal axis."""
    return element("div", left, plot, below, element("span", note, class_="axis-note"), class_="framed")
