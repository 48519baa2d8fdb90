"""Cuts a text at separators that stand outside all brackets. Linear; kinds of brackets need not match (`(1, 2]`)."""

from collections.abc import Sequence

_OPEN, _CLOSE = "([{", ")]}"


def outside(text: str) -> list[int]:
    """For each character the number of brackets that are open before it; escaped braces count as brackets."""
    depth, found = 0, []
    for char in text:
        if char in _CLOSE:
            depth = max(depth - 1, 0)
        found.append(depth)
        if char in _OPEN:
            depth += 1
    return found


def balanced(text: str) -> bool:
    """Whether every bracket that opens is closed, and none closes unopened, whatever their kinds."""
    depth = 0
    for char in text.replace("\\{", "(").replace("\\}", ")"):
        if char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            depth -= 1
            if depth < 0:
                return False
    return depth == 0


def split(text: str, separators: Sequence[str]) -> list[str]:
    """The parts between separators outside brackets, stripped."""
    if not any(separator in text for separator in separators):
        return [text.strip()]
    depths = outside(text)
    parts: list[str] = []
    start = i = 0
    while i < len(text):
        hit = next((s for s in separators if text.startswith(s, i)), None) if depths[i] == 0 else None
        if hit is None:
            i += 1
            continue
        parts.append(text[start:i].strip())
        i += len(hit)
        start = i
    parts.append(text[start:].strip())
    return parts


def enclosed(text: str) -> bool:
    """Whether the first character's bracket is closed by the last character."""
    if len(text) < 2 or text[0] not in _OPEN or text[-1] not in _CLOSE:
        return False
    return 0 not in outside(text)[1:-1]
