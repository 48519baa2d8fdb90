"""The statistics record as lines of text: a name, its value, and how the number was had."""

from collections.abc import Iterator
from typing import Any


def lines(value: Any, path: str = "") -> Iterator[str]:
    """One line for each leaf of the record, by its path."""
    if isinstance(value, dict) and "value" in value and "method" in value:
        yield f"{path:48} {_text(value['value']):>16}   {value['method']}"
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from lines(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from lines(item, f"{path}[{index}]")
    else:
        yield f"{path:48} {_text(value):>16}"


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(item)}" for key, item in value.items())
    return str(value)
