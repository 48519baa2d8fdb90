"""Remainders."""

from collections.abc import Mapping
from typing import Any

from factory.procedural.family import Family, Item, knob, numbers_near, of_digits, schema


class Modulo(Family):
    """The remainder of a division by a small number."""

    name = "math.modulo"
    knobs_schema = schema(
        digits=knob(1, 12, 2, "Digits of the number that is divided."),
        modulus=knob(2, 1000, 9, "The largest divisor; the smallest is 2."),
    )
    sentences = (
        "What is the remainder when {a} is divided by {m}? Answer with the number alone.",
        "Divide {a} by {m}. Reply with only the remainder.",
        "Compute {a} modulo {m}. Give just the number.",
    )
    terse = "{a}%{m}="

    def size(self, knobs: Mapping[str, Any]) -> int:
        return int(of_digits(knobs["digits"]).size * (knobs["modulus"] - 1))

    def item(self, number: int, knobs: Mapping[str, Any]) -> Item:
        low, count = of_digits(knobs["digits"])
        divisor, place = divmod(number, count)
        a, m = low + place, divisor + 2
        return Item({"a": str(a), "m": str(m)}, str(a % m), numbers_near(a % m), [str(a // m), str(a)])
