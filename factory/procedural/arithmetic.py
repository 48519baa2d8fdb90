"""Sums, differences and products of whole numbers."""

import math
from collections.abc import Mapping
from typing import Any

from factory.procedural.family import Family, Item, knob, numbers_near, of_digits, schema

DIGITS = knob(1, 12, 2, "Digits of each number.")


def _operands(number: int, digits: int, terms: int) -> list[int]:
    low, count = of_digits(digits)
    found = []
    for _ in range(terms):
        number, place = divmod(number, count)
        found.append(low + place)
    return found


class Addition(Family):
    """The sum of some numbers."""

    name = "math.add"
    knobs_schema = schema(digits=DIGITS, terms=knob(2, 6, 2, "How many numbers are added."))
    sentences = (
        "What is {expression}? Answer with the number alone.",
        "Add these numbers: {listed}. Reply with only the sum.",
        "Work out the total of {listed}. Give just the number.",
    )
    terse = "{expression}="

    def size(self, knobs: Mapping[str, Any]) -> int:
        return int(of_digits(knobs["digits"]).size ** knobs["terms"])

    def item(self, number: int, knobs: Mapping[str, Any]) -> Item:
        values = _operands(number, knobs["digits"], knobs["terms"])
        slots = {"expression": "+".join(map(str, values)), "listed": ", ".join(map(str, values))}
        return Item(slots, str(sum(values)), numbers_near(sum(values)), [str(values[0]), str(values[-1])])


class Subtraction(Family):
    """The difference of two numbers, the larger one first."""

    name = "math.subtract"
    knobs_schema = schema(digits=DIGITS)
    sentences = (
        "What is {a}-{b}? Answer with the number alone.",
        "Subtract {b} from {a}. Reply with only the difference.",
        "By how much is {a} larger than {b}? Give just the number.",
    )
    terse = "{a}-{b}="

    def size(self, knobs: Mapping[str, Any]) -> int:
        count = of_digits(knobs["digits"]).size
        return count * (count + 1) // 2

    def item(self, number: int, knobs: Mapping[str, Any]) -> Item:
        low = of_digits(knobs["digits"]).low
        row = (math.isqrt(8 * number + 1) - 1) // 2  # the pairs (a, b) with b ≤ a, counted row by row
        a, b = low + row, low + number - row * (row + 1) // 2
        return Item({"a": str(a), "b": str(b)}, str(a - b), numbers_near(a - b), [str(a), str(b)])


class Multiplication(Family):
    """The product of some numbers."""

    name = "math.multiply"
    knobs_schema = schema(digits=DIGITS, terms=knob(2, 4, 2, "How many numbers are multiplied."))
    sentences = (
        "What is {expression}? Answer with the number alone.",
        "Multiply these numbers: {listed}. Reply with only the product.",
        "Work out the product of {listed}. Give just the number.",
    )
    terse = "{expression}="

    def size(self, knobs: Mapping[str, Any]) -> int:
        return int(of_digits(knobs["digits"]).size ** knobs["terms"])

    def item(self, number: int, knobs: Mapping[str, Any]) -> Item:
        values = _operands(number, knobs["digits"], knobs["terms"])
        product = math.prod(values)
        slots = {"expression": "*".join(map(str, values)), "listed": ", ".join(map(str, values))}
        return Item(slots, str(product), numbers_near(product), [str(sum(values)), str(values[0])])
