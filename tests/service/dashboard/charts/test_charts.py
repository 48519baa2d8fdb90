"""Every chart escapes what it is given, has no inline style, reads itself aloud, and has a twin that says the same."""

import xml.etree.ElementTree as ET
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.dashboard.charts.area import area
from service.dashboard.charts.bars import Bar, Part, bars, stack
from service.dashboard.charts.chart import Chart
from service.dashboard.charts.funnel import Refusal, Stage, funnel
from service.dashboard.charts.histogram import Bin, histogram
from service.dashboard.charts.line import Series, line, sparkline
from service.dashboard.charts.svg import element
from service.dashboard.charts.table import ROWS, Cell, table

HOSTILE = '"><script>alert(1)</script> & <b style="x">'
POINTS = ((0.0, 0.1), (1.0, 0.4), (2.0, float("nan")), (3.0, 0.9))


def made(label: str) -> dict[str, Chart]:
    return {
        "bars": bars([Bar(label, 3, f"/tasks?domain={label}"), Bar("b", 1)], noun="tasks"),
        "stack": stack([Part(label, 3, "tone-1", "/x"), Part("b", 1, "tone-2")], noun="attempts"),
        "line": line([Series(label, POINTS, "tone-1")], title=label, step_href=lambda step: f"/r?step={step}"),
        "area": area([Series(label, POINTS, "tone-1"), Series("b", POINTS, "tone-2")], title=label),
        "histogram": histogram([Bin(label, 3, "/x"), Bin("b", 0)], title="t", noun="tasks"),
        "funnel": funnel([Stage(label, 9, "/x", (Refusal(label, 2, "/y"),)), Stage("b", 7)], noun="tasks"),
    }


EMPTY: dict[str, Callable[[], Chart]] = {
    "bars": lambda: bars([], noun="tasks"),
    "bars of zero": lambda: bars([Bar("a", 0)], noun="tasks"),
    "stack": lambda: stack([], noun="tasks"),
    "line": lambda: line([], title="t"),
    "line of nothing finite": lambda: line([Series("a", ((0.0, float("inf")),), "tone-1")], title="t"),
    "area": lambda: area([], title="t"),
    "histogram": lambda: histogram([], title="t", noun="tasks"),
    "funnel": lambda: funnel([], noun="tasks"),
    "funnel of zero": lambda: funnel([Stage("a", 0), Stage("b", 0)], noun="tasks"),
}


@pytest.mark.parametrize("name", made("a"))
def test_a_label_is_text_and_never_markup(name: str) -> None:
    drawing = str(made(HOSTILE)[name].drawing)
    assert "<script" not in drawing
    root = ET.fromstring(f"<r>{drawing}</r>")
    assert all("style" not in one.attrib and not any(key.startswith("on") for key in one.attrib) for one in root.iter())


@pytest.mark.parametrize("name", made("a"))
def test_every_link_says_where_it_leads(name: str) -> None:
    root = ET.fromstring(f"<r>{made('a')[name].drawing}</r>")
    links = [one for one in root.iter() if one.tag == "a"]
    assert all(one.get("href") and (one.get("aria-label") or "".join(one.itertext()).strip()) for one in links)
    assert not any(one.get("role") == "img" and list(one.iter("a")) for one in root.iter())


@pytest.mark.parametrize("name", made("a"))
def test_a_chart_reads_itself_aloud_and_has_a_twin(name: str) -> None:
    chart = made("a")[name]
    assert chart.sentence.endswith(".")
    assert len(chart.twin.rows) >= 1
    assert not chart.empty


@pytest.mark.parametrize("name", EMPTY)
def test_nothing_to_show_is_said_and_not_drawn(name: str) -> None:
    chart = EMPTY[name]()
    assert chart.empty
    assert chart.sentence


def test_the_twin_of_a_curve_has_its_values() -> None:
    chart = line([Series("a", POINTS, "tone-1")], title="a")
    assert [row[1].text for row in chart.twin.rows] == ["0.100", "0.400", "—", "0.900"]


def test_one_point_is_visible() -> None:
    assert "dot" in line([Series("a", ((5.0, 0.3),), "tone-1")], title="a").drawing


def test_a_gap_in_the_data_is_a_gap_in_the_curve() -> None:
    drawing = line([Series("a", POINTS, "tone-1")], title="a").drawing
    curve = next(part for part in drawing.split("<path") if "curve" in part)
    assert curve.count("M") == 2


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(), min_size=1, max_size=400))
def test_any_curve_is_drawn_within_its_budget(values: list[float]) -> None:
    points = tuple((float(index), value) for index, value in enumerate(values))
    chart = line([Series("a", points, "tone-1")] * 4, title="a")
    assert len(chart.drawing) < 50_000
    root = ET.fromstring(f"<r>{chart.drawing}</r>")
    places = [value for one in root.iter() for key, value in one.attrib.items() if key in ("d", "x", "y", "width")]
    assert not [place for place in places if "nan" in place or "inf" in place]


def test_a_long_twin_keeps_its_ends_and_says_that_it_is_thinned() -> None:
    found = table(["step"], [(Cell(str(index)),) for index in range(1000)])
    assert len(found.rows) == ROWS
    assert "of 1000 rows" in found.note
    assert (found.rows[0][0].text, found.rows[-1][0].text) == ("0", "999")


def test_an_inline_style_is_refused() -> None:
    with pytest.raises(ValueError, match="content security policy"):
        element("rect", style="fill:red")
    with pytest.raises(ValueError, match="content security policy"):
        element("rect", onclick="x()")


def test_a_sparkline_of_one_value_is_no_curve() -> None:
    assert sparkline([1.0], label="x") == ""
    assert 'role="img"' in sparkline([1.0, None, 2.0], label="x")
