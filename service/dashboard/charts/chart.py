"""What every chart is: a drawing, one sentence that reads it aloud, a legend, and its table twin."""

from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from service.dashboard.charts.table import Table


class Key(NamedTuple):
    """One entry of a legend; `tone` names the class that colours its marks."""

    label: str
    tone: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure before it is put on a page. `empty` charts have no drawing; the page says how to fill them."""

    drawing: Markup
    sentence: str
    twin: Table
    legend: tuple[Key, ...] = ()

    @property
    def empty(self) -> bool:
        return not self.drawing
