"""Whether a program's output is the expected one: by tokens, by lines, or exactly.

No number is converted without need, and none of unbounded length: an output of 10^5 digits is compared as text.
"""

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_LONGEST_NUMBER = 1_000


def same_output(expected: str, given: str, checker: Mapping[str, Any]) -> bool:
    """Compare by the checker's kind; `program` is not decided here."""
    if checker.get("ignore_case"):
        expected, given = expected.casefold(), given.casefold()
    match checker.get("kind", "tokens"):
        case "exact":
            return expected == given
        case "lines":
            return _lines(expected) == _lines(given)
        case _:
            return _same_tokens(expected.split(), given.split(), checker)


def _lines(text: str) -> list[str]:
    """Lines without trailing blanks and CR; trailing empty lines do not count."""
    lines = [line.rstrip() for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _same_tokens(expected: list[str], given: list[str], checker: Mapping[str, Any]) -> bool:
    if len(expected) != len(given):
        return False
    if "float_abs" not in checker and "float_rel" not in checker:
        return expected == given
    absolute, relative = checker.get("float_abs", 0.0), checker.get("float_rel", 0.0)
    return all(
        gold == token or _close(gold, token, absolute, relative) for gold, token in zip(expected, given, strict=True)
    )


def _close(gold: str, token: str, absolute: float, relative: float) -> bool:
    """A tolerance is for golds with a point or an exponent; an integer gold is met by its own value alone."""
    if max(len(gold), len(token)) > _LONGEST_NUMBER or not (_NUMBER.fullmatch(gold) and _NUMBER.fullmatch(token)):
        return False
    if _INTEGER.fullmatch(gold):
        return Fraction(gold) == Fraction(token)
    wanted, found = float(gold), float(token)
    # Written so that NaN and infinities reject.
    return math.isfinite(found) and abs(found - wanted) <= max(absolute, relative * abs(wanted))
