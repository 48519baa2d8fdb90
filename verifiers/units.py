"""Units behind numbers. The unit library sees the unit's text alone, and only text that cannot hold arithmetic.

Factors are exact fractions. Not covered: compound values such as `5 ft 3 in`.
"""

import re
import threading
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from verifiers.numbers import Value, simplest

_MAX = 60
_ALLOWED = re.compile(r"[A-Za-zµμΩ°Å'\"]+(?:[ */·^()A-Za-zµμΩ°Å-]|\^\{?-?[1-6]\}?|[23])*")
_WORD = re.compile(r"[A-Za-z]{2,24}")
_OTHER_WORDS = """or and to not but if than times is are was no nor either neither about approximately roughly maybe
perhaps plus minus over by of the sin cos tan log ln exp sqrt pi mod modulo base choose for from
with when where then so cdot frac squared cubed factorial half halves third thirds quarters negative
dozen dozens hundreds thousands millions more less fewer least most at each twice double remainder
infinity infty theta alpha beta gamma delta lambda mu phi psi sigma omega"""
_NOT_NOUNS = frozenset(_OTHER_WORDS.split())
_FRACTION = re.compile(r"\\frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_LONE = frozenset("mgshLNJWVAKCFTHΩ°")
_GLUED_UNITS = """cm mm km kg mg ft in mi min hr hrs Hz kHz MHz mol rad deg cal kcal ml mL dm nm um µm Pa kPa atm eV
yd lb lbs oz sec kW MW kJ mph kmh cm^2 cm^3 mm^2 km^2 ft^2 m^2 m^3 in^2"""
_GLUED = frozenset(_GLUED_UNITS.split())
_lock = threading.Lock()


class Factor(NamedTuple):
    """How a value becomes one in another unit: times `scale`, plus `offset`."""

    scale: Fraction
    offset: Fraction


def spelled(text: str) -> str:
    """The unit's text in one spelling: LaTeX fractions, powers and words for powers written out."""
    text = _FRACTION.sub(lambda found: f"{found[1].strip()}/({found[2].strip()})", text)
    text = text.replace("\\", " ").replace("{", "").replace("}", "").replace("μ", "µ")
    text = re.sub(r"° ?([CF])\b", r"deg\1", text)
    text = text.replace("°", " degree ").replace(" per ", "/")
    text = re.sub(r"\b(?:square|sq\.?) ([A-Za-z]+)", r"\1^2", text)
    text = re.sub(r"\b(?:cubic|cu\.?) ([A-Za-z]+)", r"\1^3", text)
    return " ".join(text.split()).rstrip(".")


def plausible(text: str, *, spaced: bool = True) -> bool:
    """Whether text behind a number can be its unit: one that is known, or up to three plain nouns.

    Without a blank between (`5m`, `5ab`) letters may as well be names: only the commonest units are taken then.
    """
    unit = spelled(text)
    if not unit or len(unit) > _MAX:
        return False
    words = unit.split()
    if any(word.lower() in _NOT_NOUNS for word in words):
        return False
    if len(unit) == 1:
        return unit in _LONE and spaced
    if not spaced and len(unit) < 4:
        return unit in _GLUED
    nouns = len(words) <= 3 and all(_WORD.fullmatch(word) for word in words)
    return nouns or known(unit)  # the library is loaded only for what is no plain noun


def known(unit: str) -> bool:
    """Whether the unit library knows this unit."""
    return _parsed(spelled(unit)) is not None


def same_kind(a: str, b: str) -> bool:
    """Whether two units measure the same kind of thing."""
    return factor(a, b) is not None or _noun(a) == _noun(b)


def converted(value: Value, unit: str, to: str) -> Value | None:
    """The value in the unit `to`; None when the units measure different things."""
    if _noun(unit) == _noun(to):
        return value
    factors = factor(unit, to)
    if factors is None:
        return None
    scale, offset = factors
    return simplest(value * scale + offset)


@lru_cache(maxsize=4096)
def factor(unit: str, to: str) -> Factor | None:
    """How a value in `unit` becomes one in `to`: scale and offset, exact."""
    source, target = _parsed(spelled(unit)), _parsed(spelled(to))
    if source is None or target is None or source.dimensionality != target.dimensionality:
        return None
    with _lock:  # the registry caches as it converts
        registry = _registry()
        zero = Fraction(registry.Quantity(Fraction(0), source).to(target).magnitude)
        one = Fraction(registry.Quantity(Fraction(1), source).to(target).magnitude)
    return Factor(one - zero, zero)


def to_base(unit: str) -> str | None:
    """The base units (angles: radians) of a unit; None if it is unknown."""
    parsed = _parsed(spelled(unit))
    if parsed is None:
        return None
    with _lock:
        return str(_registry().get_base_units(parsed)[1]) or "radian"


def _noun(unit: str) -> str:
    words = spelled(unit).lower()
    return words[:-1] if words.endswith("s") and len(words) > 3 else words


@lru_cache(maxsize=4096)
def _parsed(unit: str) -> Any | None:
    if len(unit) > _MAX or not _ALLOWED.fullmatch(unit) or unit.count("(") != unit.count(")"):
        return None
    text = re.sub(r"(?<=[A-Za-z)])([23])\b", r"**\1", unit.replace("^", "**").replace("·", "*"))
    text = re.sub(r"(?<=[A-Za-z)23]) (?=[A-Za-z(])", "*", text)
    with _lock:
        try:
            return _registry().parse_units(text)
        except Exception:  # noqa: BLE001 the library raises errors of tokenizers, of names and of arithmetic alike
            return None


@lru_cache(maxsize=1)
def _registry() -> Any:
    import pint  # 0.5 s: only when the first unit is met

    return pint.UnitRegistry(non_int_type=Fraction, autoconvert_offset_to_baseunit=False, cache_folder=None)
