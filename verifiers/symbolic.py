"""math-verify, for what the second parser cannot read: integrals, cases, unusual commands. Only ever in a worker.

Its timers are off: they need the main thread's alarm and are no defence against a tower; the pool's deadline is. One
candidate a side, gold first, by keyword. Nothing parsed is ever printed, which can take for ever.
"""

import re
from typing import Any

from verifiers.numbers import TooComplex

WARM_IMPORTS = ("math_verify", "sympy", "latex2sympy2_extended")
_MAX = 600
_BOMB = re.compile(r"\^\s*\{?\s*\(?\d{4,}|\^\s*[{(][^{}()]{0,80}\^|\d{4,}\s*\)?\s*!|!\s*\)?\s*!|\d{200,}")
"""Towers, long exponents, factorials of long numbers: none of them is worth a second of a worker."""


def warm() -> None:
    """Load and build what the first call would pay for."""
    equal("x+1", "1+x")


def equal(gold: str, given: str) -> bool | None:
    """Whether math-verify finds the answer equal; None when it cannot read one of them as a single value.

    Raises:
        TooComplex: the answer is built to take long.
    """
    if _BOMB.search(given):
        raise TooComplex("size")
    from math_verify import verify  # half a second: workers only

    if max(len(gold), len(given)) > _MAX:
        return None
    wanted, answer = _parsed(gold), _parsed(given)
    if wanted is None or answer is None:
        return None
    return bool(
        verify(
            gold=[wanted], target=[answer], float_rounding=15, numeric_precision=30, strict=True, timeout_seconds=None
        )
    )


def _parsed(text: str) -> Any | None:
    from math_verify import LatexExtractionConfig, parse

    found = parse(
        f"\\boxed{{{text}}}",
        extraction_config=[LatexExtractionConfig(boxed_match_priority=0)],
        extraction_mode="first_match",
        fallback_mode="no_fallback",
        parsing_timeout=None,
    )
    values = [value for value in found if not isinstance(value, str)]
    return values[0] if len(values) == 1 else None
