"""A funnel: how many reached each stage, what share of the stage before, and who was turned away where."""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from service.dashboard.charts.chart import Chart
from service.dashboard.charts.svg import element
from service.dashboard.charts.table import Cell, table
from service.dashboard.charts.ticks import compact, percent


class Refusal(NamedTuple):
    """Those that a stage turned away for one reason."""

    label: str
    number: int
    href: str | None = None


class Stage(NamedTuple):
    """One stage, and what was lost on the way to the next one."""

    label: str
    number: int
    href: str | None = None
    refused: tuple[Refusal, ...] = ()


def funnel(stages: Sequence[Stage], *, noun: str) -> Chart:
    """Stages in order; widths are shares of the first stage."""
    first = stages[0].number if stages else 0
    rows = []
    for index, stage in enumerate(stages):
        before = stages[index - 1].number if index else stage.number
        refused = "; ".join(f"{one.label} {one.number:,}" for one in stage.refused) or "—"
        rows.append(
            (
                Cell(stage.label, stage.href),
                Cell(f"{stage.number:,}"),
                Cell(_share(stage.number, before)),
                Cell(refused),
            )
        )
    twin = table(["stage", noun, "of the stage before", "turned away after it"], rows)
    if first <= 0:
        return Chart(Markup(""), f"No {noun} have entered yet.", twin)
    drawing = element(
        "div",
        *(
            _stage(stage, stages[index - 1].number if index else None, first, noun)
            for index, stage in enumerate(stages)
        ),
        class_="funnel",
        role="list",
    )
    last = stages[-1]
    sentence = f"Of {compact(first)} {noun} {compact(last.number)} ({_share(last.number, first)}) became {last.label}."
    return Chart(drawing, sentence, twin)


def _stage(stage: Stage, before: int | None, first: int, noun: str) -> Markup:
    width = 100 * min(1.0, stage.number / first)
    bar = element(
        "svg",
        element("rect", class_="track", width="100%", height="100%", rx=3),
        element("rect", class_="tone-1", width=f"{width:.2f}%", height="100%", rx=3),
        width="100%",
        height=22,
        aria_hidden="true",
        class_="bar",
    )
    step = element("span", _share(stage.number, before) if before is not None else "", class_="funnel-step")
    inner = (
        element("span", stage.label, class_="bar-label"),
        bar,
        element("span", compact(stage.number), class_="bar-value"),
        step,
    )
    label = f"{stage.label}: {stage.number:,} {noun}"
    row = (
        element("a", *inner, href=stage.href, aria_label=label, class_="funnel-row")
        if stage.href
        else element("span", *inner, class_="funnel-row")
    )
    return element("div", row, *_refused(stage), role="listitem")


def _refused(stage: Stage) -> list[Markup]:
    if not stage.refused:
        return []
    chips = [
        element("a", f"{one.label} ", element("b", f"{one.number:,}"), href=one.href, class_="chip")
        if one.href
        else element("span", f"{one.label} ", element("b", f"{one.number:,}"), class_="chip")
        for one in stage.refused
    ]
    return [element("div", element("span", "turned away:", class_="muted"), *chips, class_="funnel-refused")]


def _share(part: int, whole: int) -> str:
    return percent(part / whole) if whole else "—"
