"""Putting numbers in order."""

from collections.abc import Mapping
from typing import Any

from factory.procedural.family import Family, Item, arrangement, arrangements, choice, knob, of_digits, schema


class Sorting(Family):
    """Different numbers, to be written in ascending or descending order with blanks between them."""

    name = "list.sort"
    verifier = "exact"
    knobs_schema = schema(
        digits=knob(1, 6, 1, "Digits of each number."),
        length=knob(2, 10, 4, "How many numbers there are."),
        order=choice(("ascending", "descending"), "The order asked for."),
    )
    sentences = (
        "Sort these numbers in {order} order: {spaced}. Answer with the numbers alone, separated by single spaces.",
        "Put {spaced} into {order} order. Reply with only the numbers, with one space between them.",
    )
    terse = "{short} {spaced}="

    def size(self, knobs: Mapping[str, Any]) -> int:
        return arrangements(of_digits(knobs["digits"]).size, knobs["length"])

    def item(self, number: int, knobs: Mapping[str, Any]) -> Item:
        low, count = of_digits(knobs["digits"])
        values = [low + place for place in arrangement(number, count, knobs["length"])]
        down = knobs["order"] == "descending"
        ordered = sorted(values, reverse=down)
        swapped = [ordered[1], ordered[0], *ordered[2:]]
        slots = {"order": knobs["order"], "short": "desc" if down else "sort", "spaced": _spaced(values)}
        wrong = [_spaced(swapped), _spaced(ordered[::-1]), _spaced(ordered[:-1])]
        return Item(slots, _spaced(ordered), wrong, [_spaced(values)])


def _spaced(values: list[int]) -> str:
    return " ".join(map(str, values))
