"""Boxes of LaTeX: `\\boxed{…}`, `\\fbox{…}`, `\\boxed 3`. One pass over the text, whatever is in it."""

from typing import NamedTuple

_COMMANDS = ("\\boxed", "\\fbox")
_BETWEEN = (" and ", "\\text{and}", "\\text{ and }", "\\(", "\\)", "\\[", "\\]", "\\quad", "\\qquad", "\\,", "\\;")


class Box(NamedTuple):
    """Where a box starts and ends in the text, and what it holds."""

    start: int
    end: int
    content: str


def boxed(text: str) -> tuple[str, ...]:
    """The contents of the last run of boxes that only blanks, `$`, commas, semicolons and `and` separate.

    Empty when there is no balanced box, or when the last one is empty.
    """
    if "\\boxed" not in text and "\\fbox" not in text:
        return ()
    if simple := _simple(text):
        return simple
    boxes = _outermost(text)
    if not boxes:
        return ()
    run = [boxes[-1]]
    for box in reversed(boxes[:-1]):
        if run[0].start - box.end > 40 or not _only_separators(text[box.end : run[0].start]):
            break
        run.insert(0, box)
    contents = list(dict.fromkeys(unboxed(box.content).strip() for box in run))
    return tuple(contents) if all(contents) else ()


def _simple(text: str) -> tuple[str, ...]:
    """The usual response, without the scan: one box, no braces or commands in it."""
    at = text.find("\\boxed{")
    if at < 0 or text.find("\\boxed", at + 1) >= 0 or "\\fbox" in text or text[at - 1 : at] == "\\":
        return ()
    content = text[at + 7 : text.find("}", at)].strip()
    return (content,) if content and content.replace("-", "").isalnum() else ()


def unboxed(text: str) -> str:
    """The text with every balanced box replaced by what it holds, nested ones too."""
    if "\\boxed" not in text and "\\fbox" not in text:
        return text
    closing = _braces(text)
    dropped: set[int] = set()
    for start, brace in _starts(text):
        if brace in closing:
            dropped.update(range(start, brace + 1))
            dropped.add(closing[brace])
    return "".join(char for i, char in enumerate(text) if i not in dropped)


def _outermost(text: str) -> list[Box]:
    closing = _braces(text)
    found: list[Box] = []
    end = 0
    for start, brace in _starts(text):
        if start < end:
            continue
        if brace in closing:
            end = closing[brace] + 1
            found.append(Box(start, end, text[brace + 1 : end - 1]))
        elif text[brace : brace + 1] not in ("{", ""):
            end = _bare_end(text, brace)
            found.append(Box(start, end, text[brace:end].rstrip(".,;:!?")))
    return found


def _starts(text: str) -> list[tuple[int, int]]:
    """(position of the command, position of the first character after it and its blanks), in order."""
    found = []
    for command in _COMMANDS:
        at = text.find(command)
        while at >= 0:
            after = at + len(command)
            while after < len(text) and text[after] in " \t":
                after += 1
            if not text[at + len(command) : at + len(command) + 1].isalpha():
                found.append((at, after))
            at = text.find(command, at + 1)
    return sorted(found)


def _bare_end(text: str, at: int) -> int:
    while at < len(text) and not text[at].isspace() and text[at] != "$":
        at += 1
    return at


def _braces(text: str) -> dict[int, int]:
    """Where each opening brace is closed. An escaped brace is a character, not a group."""
    stack: list[int] = []
    closing: dict[int, int] = {}
    escaped = False
    for i, char in enumerate(text):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == "{":
            stack.append(i)
        elif char == "}" and stack:
            closing[stack.pop()] = i
    return closing


def _only_separators(between: str) -> bool:
    between = f" {between} "
    for word in _BETWEEN:
        between = between.replace(word, " ")
    return not between.strip(" \t\r\n$,;")
