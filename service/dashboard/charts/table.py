"""The table twin of a chart: the same values as text, and the keyboard's way to the rows behind them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

ROWS = 25
"""A twin shows at most this many rows; longer series are thinned evenly and the caption says so."""


class Cell(NamedTuple):
    """One value as text, with an address when rows stand behind it."""

    text: str
    href: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Column heads, rows of cells, and a note when rows were left out."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


def table(columns: Sequence[str], rows: Sequence[tuple[Cell, ...]]) -> Table:
    """A twin of at most `ROWS` rows; the first and the last row are always kept."""
    if len(rows) <= ROWS:
        return Table(tuple(columns), tuple(rows))
    picks = sorted({round(index * (len(rows) - 1) / (ROWS - 1)) for index in range(ROWS)})
    note = f"{len(picks)} of {len(rows)} rows, evenly spaced"
    return Table(tuple(columns), tuple(rows[index] for index in picks), note)
