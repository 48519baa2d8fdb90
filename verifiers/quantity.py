"""A number with its unit against a gold: tolerances, percent, units, hedges. Shared by `numeric` and `math`."""

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

from verifiers import units
from verifiers.glyphs import tidy
from verifiers.numbers import Number, TooComplex, parse, simplest
from verifiers.peel import peel

PARAMS: Mapping[str, Any] = {
    "abs_tol": {"type": "number", "minimum": 0},
    "rel_tol": {"type": "number", "minimum": 0, "maximum": 1},
    "units": {"enum": ["optional", "required", "convert", "ignore"], "default": "optional"},
    "percent": {"enum": ["value", "face"], "default": "value"},
    "integer": {"type": "boolean", "default": False},
    "locale": {"enum": ["auto", "en", "eu"], "default": "auto"},
}
MEANING: Mapping[str, str] = {
    "wrong": "not equal",
    "hedged": "more than one value",
    "unit_mismatch": "the unit is missing, unknown or of another kind",
    "not_evaluated": "left to be computed",
}
_ITEMS = re.compile(r"\s*(?:,|;|\bor\b|\band\b|\bto\b|\bbetween\b|\\pm|±|(?<=[\d)}%])\s*-(?=\s*[\d(\\$]))\s*")
_HEDGE_MAX = 400
LONGEST = 4_200


def gold_of(text: str, params: Mapping[str, Any], *, names: bool = False) -> Number | None:
    """The gold of a reference; None when it is not one number with a known unit or a plain noun behind it.

    With `names`, letters right behind the digits may be names (`2ab`), and are units only if they are common ones.
    """
    return _gold(text, params.get("locale", "auto"), names)


@lru_cache(maxsize=4096)
def _gold(text: str, locale: str, names: bool) -> Number | None:
    try:
        number = parse(peel(text), locale)
    except TooComplex:
        return None
    if number is None or not number.unit:
        return number
    return number if units.plausible(number.unit, spaced=number.spaced or not names) else None


def unit_fits(given: Number, gold: Number) -> bool:
    """Whether the text behind a given number is a unit, and not a name: `5m` beside 5 may be a product."""
    return units.plausible(given.unit, spaced=given.spaced or bool(gold.unit))


def faults(gold: Number, params: Mapping[str, Any]) -> list[str]:
    """What is wrong with a gold under these params."""
    if params.get("integer") and gold.value.denominator != 1:
        return ["the answer is not an integer although `integer` is set"]
    if params.get("units") == "required" and not gold.unit:
        return ["`units: required` needs a unit in the answer"]
    if params.get("units") == "convert" and gold.unit and not units.known(gold.unit):
        return ["`units: convert` needs a unit that can be converted"]
    return []


def is_number(text: str, locale: str) -> bool:
    """Whether a slot's text is of the kind number: one number, or several of which one was to be chosen."""
    peeled = peel(text)
    if peeled.isdigit():
        return True
    try:
        number = parse(peeled, locale)
    except TooComplex:
        return True
    if number is not None:
        return not number.unit or units.plausible(number.unit)
    return len(several(peeled, locale)) > 1


def several(text: str, locale: str) -> list[Number]:
    """The numbers of a list, a range, a choice or a pair `±a`; empty when the text is anything else."""
    if len(text) > _HEDGE_MAX:
        return []
    shown = tidy(text)
    items = [item for item in _ITEMS.split(shown.strip("()[]{}\\ ")) if item.strip(" ()[]{}\\$")]
    numbers = [parse(peel(item.strip("()[]{}\\")), locale) for item in items]
    found = [number for number in numbers if number is not None]
    if len(found) != len(items) or not found:
        return []
    if len(found) == 1 and ("±" in shown or "\\pm" in shown):
        return [found[0], found[0]._replace(value=-found[0].value)]
    return found


def judge(parts: Sequence[str], gold: Number, params: Mapping[str, Any]) -> str:
    """The code of an answer (peeled) against a gold: `ok` or a key of `MEANING`.

    Raises:
        TooComplex: the answer is over a limit.
    """
    locale = params.get("locale", "auto")
    if len(parts) > 1:
        numbers = [parse(part, locale) for part in parts]
        values = {number.value if number else None for number in numbers}
        if len(values) > 1:
            return "hedged"
    number = parse(parts[0], locale)
    if number is None:
        number = _chain(parts[0], locale)
    if number is None:
        options = {found.value for found in several(parts[0], locale)}
        return "hedged" if len(options) > 1 else "wrong"
    return compare(gold, number, params)


def _chain(text: str, locale: str) -> Number | None:
    """`a = b = c` between numbers is worth its value, if it is true."""
    if "=" not in text or len(text) > _HEDGE_MAX:
        return None
    numbers = [parse(peel(part), locale) for part in tidy(text).split("=")]
    found = [number for number in numbers if number is not None]
    same = len(found) == len(numbers) > 1 and len({number.value for number in found}) == 1
    return found[-1] if same else None


def compare(gold: Number, given: Number, params: Mapping[str, Any]) -> str:
    """`ok` or a key of `MEANING`."""
    if gold[:1] == given[:1] and _bare(gold) and _bare(given):
        return "ok"  # the same value, with nothing around it that a rule could be about
    if not given.evaluated and gold.evaluated:
        return "not_evaluated"
    value = _in_gold_unit(gold, given, params)
    if isinstance(value, str):
        return value
    wanted = Fraction(gold.value)
    if params.get("percent") == "face":
        wanted = wanted * 100 if gold.percent else wanted
        value = value * 100 if given.percent else value
    if params.get("integer") and Fraction(value).denominator != 1:
        return "wrong"
    return "ok" if close(wanted, Fraction(value), params) or _float_noise(gold, given, value) else "wrong"


def _bare(number: Number) -> bool:
    return number.value.denominator == 1 and number.evaluated and not number.unit and not number.percent


def close(gold: Fraction, value: Fraction, params: Mapping[str, Any]) -> bool:
    """Equal, or within the declared tolerances. A relative one is relative to the gold."""
    if gold == value:
        return True
    if not params or params.get("integer"):
        return False
    absolute, relative = params.get("abs_tol") or 0, params.get("rel_tol") or 0
    if not absolute and not relative:
        return False
    return abs(gold - value) <= max(Fraction(repr(absolute)), Fraction(repr(relative)) * abs(gold))


def _float_noise(gold: Number, given: Number, value: int | Fraction) -> bool:
    """0.30000000000000004 is what a computer calls 0.3."""
    if not (given.decimal and given.digits >= 16 and gold.decimal and gold.digits <= 15 and gold.value):
        return False
    value = Fraction(value)
    exponent = len(str(abs(value.numerator))) - len(str(value.denominator))
    for places in (14 - exponent, 15 - exponent):
        if places <= 400 and round(value * Fraction(10) ** places) == gold.value * Fraction(10) ** places:
            return True
    return False


def _in_gold_unit(gold: Number, given: Number, params: Mapping[str, Any]) -> Fraction | str:
    """The given value in the gold's unit, or the code of what is wrong with its unit."""
    value, mode = Fraction(given.value), params.get("units", "optional")
    if given.unit and not units.plausible(given.unit):
        return "wrong"
    if mode == "ignore" or not gold.unit:
        return value
    if not given.unit:
        if mode == "convert":
            base = units.to_base(gold.unit)
            converted = units.converted(value, base, gold.unit) if base else None
            return "unit_mismatch" if converted is None else Fraction(converted)
        return "unit_mismatch" if mode == "required" else value
    converted = units.converted(value, given.unit, gold.unit)
    return "unit_mismatch" if converted is None else Fraction(simplest(converted))
