"""Removes what is only dress from an answer: delimiters, bold, wrappers, full stop, redundant brackets. Linear time.

Golds are peeled by the same function as answers.
"""

import unicodedata
from typing import NamedTuple

from verifiers.boxes import unboxed

_ROUNDS = 12
_PAIRS = (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]"), ("**", "**"), ("__", "__"), ("`", "`"))
_WRAPPERS = (
    "\\text", "\\mathrm", "\\mathbf", "\\textbf", "\\textit", "\\textrm", "\\mbox", "\\mathit", "\\mathsf",
    "\\boldsymbol", "\\operatorname",
)  # fmt: skip
_SIZES = (
    "\\left",
    "\\right",
    "\\bigl",
    "\\bigr",
    "\\Bigl",
    "\\Bigr",
    "\\big",
    "\\Big",
    "\\displaystyle",
    "\\textstyle",
)
_OPENING, _CLOSING = "([{", ")]}"


class Structure(NamedTuple):
    """Where brackets close, and the positions just inside brackets that hold a separator."""

    closing: dict[int, int]
    commas: set[int]


def peel(text: str) -> str:
    """The answer without its dress."""
    text = text.strip()
    if text.isalnum():
        return text
    if "\\" in text:
        text = unwrapped(without_sizes(unboxed(text)))
    for _ in range(_ROUNDS):
        before = text
        text = _without_stop(text.strip())
        for left, right in _PAIRS:
            if len(text) >= len(left) + len(right) and text.startswith(left) and text.endswith(right):
                inner = text[len(left) : -len(right)]
                if left not in inner and not (right == "$" and inner.endswith("\\")):
                    text = inner.strip()
        text = _without_outer(text)
        if text == before:
            break
    return text


def without_sizes(text: str) -> str:
    """Without `\\left`, `\\right` and other commands that only choose a size."""
    for size in _SIZES:
        if size in text:
            first, *rest = text.split(size)
            # `\leftarrow` is another command; `\left.` stands for no bracket at all
            text = first + "".join(size + part if part[:1].isalpha() else part.removeprefix(".") for part in rest)
    return text


def unwrapped(text: str) -> str:
    """Text wrappers (`\\text{cm}`) replaced by what they hold, set off by blanks."""
    for wrapper in _WRAPPERS:
        if wrapper + "{" in text or wrapper + " {" in text:
            text = _unwrap(text.replace(wrapper + " {", wrapper + "{"), wrapper + "{")
    return text


def _unwrap(text: str, opening: str) -> str:
    out: list[str] = []
    ends: list[str] = []
    i = 0
    while i < len(text):
        if text.startswith(opening, i):
            out.append(" ")
            ends.append(" ")
            i += len(opening)
            continue
        char = text[i]
        if char == "\\" and i + 1 < len(text):
            out.append(text[i : i + 2])
            i += 2
            continue
        if char == "{":
            ends.append(char)
        elif char == "}" and ends:
            char = char if ends.pop() == "{" else " "
        out.append(char)
        i += 1
    return "".join(out)


def _without_stop(text: str) -> str:
    if text.endswith("...") or text[-2:-1] == "\\":
        return text
    return text[:-1].rstrip() if text.endswith((".", "。", ";", ",")) else text


def _without_outer(text: str) -> str:
    """Without the brackets that enclose the whole and change nothing: `((7))`, `{7}`, never `(1, 2)` or `\\{1\\}`."""
    if text[:1] not in ("(", "{") or text[-1:] not in (")", "}") or text.endswith("\\}"):
        return text
    closing, commas = _structure(text)
    left, right = 0, len(text) - 1
    while left < right and closing.get(left) == right and text[left] in "({":
        if left + 1 < right and (left + 1) in commas:
            break
        left, right = left + 1, right - 1
        while left < right and text[left].isspace():
            left += 1
        while left < right and text[right].isspace():
            right -= 1
    return text[left : right + 1]


def _structure(text: str) -> Structure:
    stack: list[int] = []
    closing: dict[int, int] = {}
    commas: set[int] = set()
    escaped = False
    for i, char in enumerate(text):
        if escaped or char == "\\":
            escaped = not escaped
        elif char in _OPENING:
            stack.append(i)
        elif char in _CLOSING and stack:
            start = stack.pop()
            # an interval pairs unlike brackets: `(1,2]` encloses nothing redundant
            if _OPENING.index(text[start]) == _CLOSING.index(char):
                closing[start] = i
        elif char in ",;" and stack:
            commas.add(stack[-1] + 1)
    return Structure(closing, commas)


def folded(text: str) -> str:
    """NFKC, blanks folded: the least that two texts must share to be the same string."""
    return " ".join(unicodedata.normalize("NFKC", text).split())
