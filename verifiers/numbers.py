"""The number tier: exact values of written numbers, in microseconds, with every size checked before it is converted.

Values are ints and Fractions; no float is ever made. Not covered: arithmetic to be carried out, names, roots: those
belong to the expression parser of `math`.
"""

import re
from fractions import Fraction
from math import log10
from typing import NamedTuple

from verifiers.glyphs import tidy

MAX_DIGITS = 4_000
MAX_EXPONENT = 10_000
MAX_POWER_DIGITS = 20_000
MAX_TEXT = 4_200
LONG_POWER_DIGITS = 30
"""A power with more digits than this is too long to write, and may stay unevaluated."""

Value = int | Fraction


class TooComplex(ValueError):
    """A size is over its limit. The answer's doing, never ours."""


class Number(NamedTuple):
    """A written number. `unit` is the text behind it; `evaluated` is false for powers left to the reader;
    `spaced` is false when a letter follows the digits at once (`5m`)."""

    value: Value
    decimal: bool = False
    digits: int = 0
    percent: bool = False
    unit: str = ""
    evaluated: bool = True
    spaced: bool = True


_CURRENCY = "$€£¥₹₩₽₺¢"
_DIGITS = r"(?:\d+(?:[., ]\d+)*|\.\d+)"
_SIGN = re.compile(rf"\s*([+-]?)\s*[{_CURRENCY}]?\s*([+-]?)\s*")
_NAMED = re.compile(r"\\?[A-Za-z]{1,12}(?:_\{?[A-Za-z0-9]{1,8}\}?)?(?:\([A-Za-z0-9]{1,3}\))?'?\s*=(?!=)\s*")
_PLAIN = re.compile(_DIGITS)
_MIXED = re.compile(r"(\d+)(?:\s+(\d+)\s*/\s*(\d+)|\s*\\frac\s*(?:\{\s*(\d+)\s*\}|(\d))\s*(?:\{\s*(\d+)\s*\}|(\d)))")
_PART = r"(?:\{([^{}]*)\}|(\d))"
_FRAC = re.compile(rf"\\frac\s*{_PART}\s*{_PART}")
_OVER = re.compile(rf"\s*/\s*({_DIGITS})")
_SCIENTIFIC = re.compile(
    r"(?:[eE]([+-]?\d+)(?![A-Za-z0-9])|\s*(?:\*|x)\s*10\s*(?:\^|\*\*)\s*(?:\{\s*([+-]?\d+)\s*\}|\(([+-]?\d+)\)|([+-]?\d+)))"
)
_POWER = re.compile(r"\s*(?:\^|\*\*)\s*(?:\{\s*(-?\d+)\s*\}|\((-?\d+)\)|(-?\d+))")
_BASED = re.compile(r"(\d[0-9A-Z]*|[A-Z]*[0-9A-Z]{2,})\s*_\s*(?:\{\s*\(?\s*(\d{1,2})\s*\)?\s*\}|(\d{1,2}))$")
_REPEATING = re.compile(r"(\d*)\.(\d*)(?:\\overline|\\bar|\\dot)\s*(?:\{(\d+)\}|(\d))")
_PERCENT = re.compile(r"\s*(?:%|percent\b|per cent\b)")
_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}


def parse(text: str, locale: str = "auto") -> Number | None:
    """The number that the whole of `text` (peeled) writes, with whatever unit stands behind it; None if it is none.

    Raises:
        TooComplex: the number is over a limit.
    """
    body = text[1:] if text[:1] in ("+", "-") else text
    if body.isdigit() and body.isascii():
        _check_digits(body)
        return Number(int(text), digits=len(body.lstrip("0")))
    if len(text) > MAX_TEXT:
        if sum(map(str.isdigit, text)) > MAX_DIGITS:
            raise TooComplex("digits")
        return None
    return parse_tidy(tidy(text), locale)


def parse_tidy(text: str, locale: str = "auto") -> Number | None:
    """`parse` for a text in the one spelling of `glyphs`."""
    named = _NAMED.match(text)
    if named:
        text = text[named.end() :]
    if based := _BASED.fullmatch(text.lstrip("+-").strip()):
        return _based(based, text.lstrip().startswith("-"))
    sign = _SIGN.match(text)
    if sign is None or (sign[1] and sign[2]):
        return None
    found = _unsigned(text[sign.end() :].lstrip(), locale)
    if found and "-" in (sign[1], sign[2]):
        found = found._replace(value=-found.value)
    return found


def decimal_of(text: str, locale: str = "auto") -> Number | None:
    """A plain number: digits, groups and a decimal mark."""
    marks = text.replace(" ", "")
    if "," not in text and " " not in text and marks.count(".") <= 1 and locale != "eu":
        return _decimal(text)
    plain = _ungrouped(text, locale)
    return _decimal(plain) if plain is not None else None


def power(base: Value, exponent: int) -> Value:
    """`base ** exponent`, refused before it is computed when the result would be too long.

    Raises:
        TooComplex: the power has more than 20,000 digits.
        ZeroDivisionError: a negative power of zero.
    """
    size = max(abs(base.numerator), base.denominator)
    if size > 1 and (abs(exponent) > 4 * MAX_POWER_DIGITS or abs(exponent) * _log10(size) > MAX_POWER_DIGITS):
        raise TooComplex("power")
    return simplest(Fraction(base) ** exponent)


def simplest(value: Value) -> Value:
    """An int where the value is whole."""
    return value.numerator if value.denominator == 1 else value


def _log10(value: int) -> float:
    bits = value.bit_length()
    return log10(value) if bits < 900 else bits * 0.30103


def _check_digits(digits: str) -> None:
    if len(digits) > MAX_DIGITS:
        raise TooComplex("digits")


def _unsigned(text: str, locale: str) -> Number | None:
    if repeating := _REPEATING.match(text):
        return _suffixed(_repeating(repeating), text[repeating.end() :])
    if (mixed := _MIXED.match(text)) and (number := _mixed(mixed)):
        return _suffixed(number, text[mixed.end() :])
    if fraction := _FRAC.match(text):
        above = _signed_plain(fraction[1] or fraction[2] or "", locale)
        below = _signed_plain(fraction[3] or fraction[4] or "", locale)
        return _suffixed(_ratio(above, below), text[fraction.end() :])
    plain = _PLAIN.match(text)
    if plain is None:
        return None
    number = decimal_of(plain[0], locale)
    if number is None and " " in plain[0]:
        return None
    return _continued(number, text[plain.end() :], locale)


def _continued(number: Number | None, rest: str, locale: str) -> Number | None:
    """What may follow a plain number: an exponent, a power, a denominator."""
    if number is None:
        return None
    if scientific := _SCIENTIFIC.match(rest):
        exponent = next(group for group in scientific.groups() if group)
        if len(exponent) > 8 or abs(int(exponent)) > MAX_EXPONENT:
            raise TooComplex("exponent")
        value = number.value * power(10, int(exponent))
        return _suffixed(number._replace(value=simplest(Fraction(value))), rest[scientific.end() :])
    if raised := _POWER.match(rest):
        return _suffixed(_raised(number, next(group for group in raised.groups() if group)), rest[raised.end() :])
    if over := _OVER.match(rest):
        return _suffixed(_ratio(number, decimal_of(over[1], locale)), rest[over.end() :])
    return _suffixed(number, rest)


def _raised(number: Number, exponent: str) -> Number | None:
    if len(exponent) > 8:
        raise TooComplex("power")
    if number.value == 0 and exponent.startswith("-"):
        return None
    value = power(number.value, int(exponent))
    short = number.value != 10 and _log10(max(abs(value.numerator), value.denominator)) < LONG_POWER_DIGITS
    return Number(value, evaluated=not short)


def _suffixed(number: Number | None, rest: str) -> Number | None:
    """A percent sign, a scale word and a unit behind the number."""
    if number is None or not rest:
        return number
    if percent := _PERCENT.match(rest):
        number = number._replace(value=simplest(Fraction(number.value) / 100), percent=True)
        rest = rest[percent.end() :]
    word, _, behind = rest.strip().partition(" ")
    if word in _SCALES:
        number = number._replace(value=simplest(number.value * Fraction(10 ** _SCALES[word])))
        rest = behind
    unit = rest.strip().rstrip(".").strip()
    spaced = not (rest[:1].isascii() and rest[:1].isalpha())
    return number._replace(unit=unit, spaced=spaced) if not unit or not unit[0].isdigit() else None


def _signed_plain(text: str, locale: str) -> Number | None:
    text = text.strip()
    number = decimal_of(text.lstrip("+-"), locale) if _PLAIN.fullmatch(text.lstrip("+-")) else None
    return number._replace(value=-number.value) if number and text.startswith("-") else number


def _ratio(above: Number | None, below: Number | None) -> Number | None:
    if above is None or below is None or below.value == 0:
        return None
    return Number(simplest(Fraction(above.value) / below.value))


def _mixed(match: re.Match[str]) -> Number | None:
    whole, *parts = (group for group in match.groups() if group is not None)
    above, below = (int(part) for part in parts if len(part) <= 100) if max(map(len, parts)) <= 100 else (1, 0)
    _check_digits(whole)
    if not 0 < above < below:
        return None  # an improper fraction behind a whole number is malformed
    return Number(simplest(int(whole) + Fraction(above, below)))


def _based(match: re.Match[str], negative: bool) -> Number | None:
    digits, base = match[1], int(match[2] or match[3])
    if len(digits) > 1000:
        raise TooComplex("digits")
    if not 2 <= base <= 36 or any(int(digit, 36) >= base for digit in digits):
        return None
    return Number(int(digits, base) * (-1 if negative else 1))


def _repeating(match: re.Match[str]) -> Number:
    whole, fixed, cycle = match[1] or "0", match[2], match[3] or match[4]
    _check_digits(whole + fixed + cycle)
    shift = 10 ** len(fixed)
    value = Fraction(int(whole + fixed), shift) + Fraction(int(cycle), (10 ** len(cycle) - 1) * shift)
    return Number(simplest(value))


def _decimal(text: str) -> Number | None:
    whole, point, part = text.partition(".")
    if not (whole + part).isdigit() or (point and not part and not whole):
        return None
    digits = (whole + part).lstrip("0")
    _check_digits(digits)
    _check_digits(part)
    if not part:
        return Number(int(whole), digits=len(digits))
    return Number(simplest(Fraction(int(whole + part), 10 ** len(part))), decimal=True, digits=len(digits))


def _ungrouped(text: str, locale: str) -> str | None:
    """The number without group marks and with a decimal point; None when the marks do not make one number."""
    group, point = _marks(text, locale)
    whole, mark, part = text.partition(point) if point else (text, "", "")
    if mark and not part.isdigit():
        return None
    groups = re.split(rf"[{re.escape(group)} ]", whole)
    if len(groups) > 1 and not _grouped(groups):
        return None
    return "".join(groups) + ("." + part if mark else "")


def _marks(text: str, locale: str) -> tuple[str, str]:
    """The group mark and the decimal mark of this text; the decimal mark is empty when there is none."""
    comma, dot = text.rfind(","), text.rfind(".")
    if locale == "en":
        return ",", "."
    if locale == "eu":
        return ".", ","
    if comma >= 0 and dot >= 0:
        return (",", ".") if dot > comma else (".", ",")
    if comma >= 0 or text.count(".") == 1:
        return ",", "."
    return ".", ""


def _grouped(groups: list[str]) -> bool:
    first, *rest = groups
    return 1 <= len(first) <= 3 and first[0] != "0" and all(len(group) == 3 and group.isdigit() for group in rest)
