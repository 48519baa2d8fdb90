"""Facets of the task list: how many tasks each value of a dimension has, each a link that adds or drops the filter."""

from dataclasses import dataclass
from typing import NamedTuple

from starlette.requests import Request

from service.dashboard.filters import TaskFilter
from service.dashboard.record import Record
from service.dashboard.urls import page_url

SHOWN = 12
DIMENSIONS = ("status", "domain", "split", "verifier", "origin", "licence")
NONE = "none"
"""How the record names the tasks that lack the value; no filter asks for them."""
WITHOUT = {"origin": "submitted", "licence": "none given"}
OPEN = frozenset({"status", "domain"})


class FacetRow(NamedTuple):
    """One value with its number of tasks; `href` chooses it, or drops it when it is chosen; empty: no filter."""

    name: str
    n: float
    href: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class Facet:
    """One dimension; `more` values are not shown."""

    name: str
    chosen: str
    rows: tuple[FacetRow, ...]
    more: int
    open: bool


def facets(request: Request, record: Record, chosen: TaskFilter) -> list[Facet]:
    """The facets beside the list. Their counts are over all tasks, whatever else is chosen."""
    found = []
    for name in DIMENSIONS:
        counts = record.counts("tasks", f"by_{name}")
        value = getattr(chosen, name)
        rows = []
        for one, n in list(counts.items())[:SHOWN]:
            target = chosen.having(**{name: "" if one == value else one})
            href = "" if one == NONE else page_url(request, "/tasks", **target.chosen)
            rows.append(FacetRow(WITHOUT.get(name, one) if one == NONE else one, n, href, one == value))
        found.append(Facet(name, value, tuple(rows), max(0, len(counts) - SHOWN), name in OPEN or bool(value)))
    return found
