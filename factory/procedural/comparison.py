"""Which of some numbers is the largest or the smallest."""

from collections.abc import Mapping
from typing import Any

from factory.procedural.family import Family, Item, arrangement, arrangements, choice, knob, of_digits, schema


class Comparison(Family):
    """The numbers differ, so that there is one answer."""

    name = "math.compare"
    knobs_schema = schema(
        digits=knob(1, 12, 2, "Digits of each number."),
        terms=knob(2, 8, 2, "How many numbers are compared."),
        ask=choice(("largest", "smallest"), "What is asked for."),
    )
    sentences = (
        "Which of these numbers is the {ask}: {listed}? Answer with the number alone.",
        "Here are some numbers: {listed}. Reply with only the {ask} one.",
        "Find the {ask} number in this list: {listed}. Give just that number.",
    )
    terse = "{short} {spaced}="

    def size(self, knobs: Mapping[str, Any]) -> int:
        return arrangements(of_digits(knobs["digits"]).size, knobs["terms"])

    def item(self, number: int, knobs: Mapping[str, Any]) -> Item:
        low, count = of_digits(knobs["digits"])
        values = [low + place for place in arrangement(number, count, knobs["terms"])]
        largest = knobs["ask"] == "largest"
        answer = max(values) if largest else min(values)
        slots = {
            "ask": knobs["ask"],
            "short": "max" if largest else "min",
            "listed": ", ".join(map(str, values)),
            "spaced": " ".join(map(str, values)),
        }
        others = [str(value) for value in values if value != answer]
        return Item(slots, str(answer), [*others, str(answer + 1)], others[:1])
