"""`raises` and `approx`, for assertions that name pytest where there is none. Standard library only: runs in a box.

Not covered: everything else of pytest; arrays; `approx` inside other containers than lists, tuples and dicts.
"""

import re
import sys
import types
from typing import Any


class Raised:
    """What `raises` has caught."""

    value: BaseException
    type: type[BaseException]


class Block:
    """The block must raise one of the expected exceptions."""

    def __init__(self, expected: Any, match: str | None) -> None:
        self._expected, self._match, self._info = expected, match, Raised()

    def __enter__(self) -> Raised:
        return self._info

    def __exit__(self, kind: Any, value: Any, trace: Any) -> bool:
        if kind is None:
            raise AssertionError(f"did not raise {self._expected}")
        if not issubclass(kind, self._expected):
            return False
        self._info.type, self._info.value = kind, value
        if self._match is not None and not re.search(self._match, str(value)):
            raise AssertionError("raised with another message")
        return True


def raises(expected: Any, function: Any = None, *args: Any, match: str | None = None, **kwargs: Any) -> Any:
    """A block that must raise, or what the call has raised."""
    block = Block(expected, match)
    if function is None:
        return block
    with block as info:
        function(*args, **kwargs)
    return info


class approx:
    """Equal within a relative (1e-6) or an absolute (1e-12) tolerance, whichever is wider."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expected: Any, rel: float | None = None, abs: float | None = None) -> None:
        self._expected = expected
        self._rel = (0.0 if abs is not None else 1e-6) if rel is None else rel
        self._abs = 1e-12 if abs is None else abs

    def __eq__(self, given: object) -> bool:
        return self._same(self._expected, given)

    def _same(self, expected: Any, given: Any) -> bool:
        if isinstance(expected, dict):
            return (
                isinstance(given, dict)
                and expected.keys() == given.keys()
                and all(self._same(value, given[key]) for key, value in expected.items())
            )
        if isinstance(expected, list | tuple):
            return (
                type(given) is type(expected) and len(given) == len(expected) and all(map(self._same, expected, given))
            )
        if expected == given:
            return True
        numbers = (int, float, complex)
        if not isinstance(expected, numbers) or not isinstance(given, numbers):
            return False
        # Written so that NaN and infinities reject.
        gap = abs(expected - given)
        return gap <= max(self._rel * abs(expected), self._abs) and gap != float("inf")


def install() -> None:
    """Be `pytest`, unless there is one."""
    try:
        import pytest  # noqa: F401
    except ImportError:
        module = types.ModuleType("pytest")
        module.__dict__.update(raises=raises, approx=approx)
        sys.modules["pytest"] = module
