"""Where in a text the answer is. Own linear code: no regular expression ever runs over a whole response.

`find` returns an `Answer`: the candidate texts of one slot, in order. Several candidates mean that the response wrote
several boxes side by side: one list, which a verifier that asks for one value calls a hedge.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from verifiers.boxes import boxed

_LINE_MARKS = " \t\r*#>_-`"
_LABELS = ("final answer", "answer")
_SENTENCE = "answer is"


class Answer(NamedTuple):
    """The candidates of a slot, and the slot's name."""

    parts: tuple[str, ...]
    slot: str

    @property
    def text(self) -> str:
        return ", ".join(self.parts)


def find(text: str, slot: str, fits: Callable[[Answer], bool]) -> Answer | None:
    """The answer in `slot`, or None. For `auto`: the first slot that exists and fits, else the first that exists."""
    if slot != "auto":
        parts = _named(text, slot)
        return Answer(parts, slot) if parts else None
    first: Answer | None = None
    for name, parts in _automatic(text):
        if not parts:
            continue
        answer = Answer(parts, name)
        if fits(answer):
            return answer
        first = first or answer
    whole = Answer((text.strip(),), "raw")
    if fits(whole):
        return whole
    return first


def _automatic(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "boxed", boxed(text)
    yield "tag:answer", tag(text, "answer")
    yield "answer_line", answer_line(text)
    yield "sentence", sentence(text)
    yield "hash", hash_line(text)


def _named(text: str, slot: str) -> tuple[str, ...]:
    if slot.startswith("tag:"):
        return tag(text, slot[4:])
    return _SLOTS[slot](text)


def tag(text: str, name: str) -> tuple[str, ...]:
    """The content of the last `<name>…</name>`."""
    end = text.rfind(f"</{name}>")
    start = text.rfind(f"<{name}>", 0, end) if end >= 0 else -1
    return _unless_blank(text[start + len(name) + 2 : end]) if start >= 0 else ()


def hash_line(text: str) -> tuple[str, ...]:
    """What follows the last `####` on its line."""
    at = text.rfind("####")
    if at < 0:
        return ()
    end = text.find("\n", at)
    return _unless_blank(text[at + 4 : end if end >= 0 else len(text)].lstrip("#"))


def answer_line(text: str) -> tuple[str, ...]:
    """The last line that starts with `Answer:` or `Final answer:`; an empty one means the next line with text."""
    lowered = text.lower()
    if len(lowered) != len(text):  # some capitals have no lower case of the same length: fold ASCII only
        lowered = "".join(c.lower() if c.isascii() else c for c in text)
    end = len(text)
    while (at := lowered.rfind("answer", 0, end)) >= 0:
        value = _labelled(text, lowered, at)
        if value is not None:
            return _unless_blank(value)
        end = at
    return ()


def _labelled(text: str, lowered: str, at: int) -> str | None:
    line = text.rfind("\n", max(at - 40, 0), at) + 1  # a label stands near the start: never look further back
    if (not line and at > 40) or lowered[line : at + 6].strip(_LINE_MARKS) not in _LABELS:
        return None
    stop = text.find("\n", at)
    stop = len(text) if stop < 0 else stop
    rest = text[at + 6 : stop].lstrip(" \t*_")
    if rest[:1] not in (":", "："):
        return None
    marks = text[line : at + 6] + text[at + 6 : stop].partition(rest[0])[0]
    value = _unbold(rest[1:], marks)
    return value if value.strip() else _next_line(text, stop)


def _unbold(value: str, before: str) -> str:
    """Drop the closing marks of a bold label (`**Answer:** 42`) or of a bold line (`**Answer: 42**`)."""
    value = value.strip()
    for mark in ("**", "__"):
        if before.count(mark) % 2:
            value = value.removeprefix(mark) if value.startswith(mark) else value.removesuffix(mark)
    return value


def _next_line(text: str, at: int) -> str:
    while 0 <= at < len(text):
        stop = text.find("\n", at + 1)
        stop = len(text) if stop < 0 else stop
        if line := text[at + 1 : stop].strip():
            return line
        at = stop
    return ""


def sentence(text: str) -> tuple[str, ...]:
    """What follows the last "answer is", up to the end of its sentence."""
    at = text.lower().rfind(_SENTENCE)
    if at < 0 or len(text.lower()) != len(text):
        return ()
    at += len(_SENTENCE)
    stop = text.find("\n", at)
    stop = len(text) if stop < 0 else stop
    line = text[at:stop].lstrip(" :\t")
    return _unless_blank(line[: _sentence_end(line)])


def _sentence_end(line: str) -> int:
    for i, char in enumerate(line):
        if char in ".!?" and (i + 1 == len(line) or line[i + 1].isspace()):
            if char == "!" and i and line[i - 1].isalnum():
                continue  # a factorial
            return i
    return len(line)


def last_number(text: str) -> tuple[str, ...]:
    """The last number. Between digits a hyphen is a range, not a sign."""
    at = len(text) - 1
    while at >= 0 and not (text[at].isdigit() and text[at].isascii()):
        at -= 1
    if at < 0:
        return ()
    end = at + 1
    while at > 0 and (text[at - 1].isdigit() or _joins(text, at, end)):
        at -= 1
    return (_signed(text, at, end) + ("%" if text[end : end + 1] == "%" or text[end : end + 2] == "\\%" else ""),)


def _joins(text: str, at: int, end: int) -> bool:
    """Whether the character before `at` belongs to the number whose digits start there."""
    char = text[at - 1]
    before = text[at - 2] if at >= 2 else ""
    if char in "./":
        return before.isdigit() or (char == "." and not before.isalnum())
    if char == ",":
        tail = text[at:end].split(",", 1)[0].split(".", 1)[0]
        return before.isdigit() and len(tail) == 3
    if char in "eE":
        return before.isdigit()
    return char in "+-" and before in ("e", "E") and at >= 3 and text[at - 3].isdigit()


def _signed(text: str, at: int, end: int) -> str:
    number = text[at:end]
    sign = text[at - 1] if at else ""
    if sign and sign in "-−+" and not (at >= 2 and (text[at - 2].isalnum() or text[at - 2] in ")]}")):
        return sign + number
    if sign == "$" and at >= 2 and text[at - 2] in "-−":
        return "-" + number
    return number


def _raw(text: str) -> tuple[str, ...]:
    return _unless_blank(text)


def _unless_blank(text: str) -> tuple[str, ...]:
    text = text.strip()
    return (text,) if text else ()


_SLOTS: dict[str, Callable[[str], tuple[str, ...]]] = {
    "boxed": boxed,
    "answer_line": answer_line,
    "hash": hash_line,
    "last_number": last_number,
    "raw": _raw,
}
