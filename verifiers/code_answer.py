"""The code in a response: the last fence with the language's tag or none, else the whole visible text.

Fences follow CommonMark: a line of three or more backticks or tildes opens one, a line of at least as many of the same
mark and nothing else closes it, the end of the text closes the last. Linear in the length of the text.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from sandbox.contract import Backend, Limits, SandboxUnavailable
from verifiers.contract import Context, Finding, Outcome, Response
from verifiers.response import visible
from verifiers.shapes import LIMITS, TEXT_PARAMS

TAGS: Mapping[str, frozenset[str]] = {
    "python": frozenset(("python", "python3", "python2", "py", "py3", "python3.11")),
    "bash": frozenset(("bash", "sh", "shell", "zsh")),
    "c": frozenset(("c", "c11", "c99", "c17")),
    "cpp": frozenset(("cpp", "c++", "cc", "cxx", "cpp17", "cpp20", "c++17", "c++20")),
    "javascript": frozenset(("javascript", "js", "node", "mjs")),
}
LANGUAGES = tuple(TAGS)
CODE_PARAMS: Mapping[str, Any] = {
    "limits": LIMITS,
    **{key: TEXT_PARAMS[key] for key in ("think", "max_chars", "on_truncated", "rewards")},
}
"""What every code verifier takes besides its own params."""


class Fence(NamedTuple):
    """The first word of the info string, lower case, without braces and dots, and what the fence holds."""

    tag: str
    content: str


def code_in(response: Response, params: Mapping[str, Any], language: str) -> str | Finding:
    """The code of a response, or the finding that ends the matter."""
    text = visible(response, params, prose=False)
    if isinstance(text, Finding):
        return text
    wanted = TAGS[language]
    found = [fence.content for fence in fences(text) if not fence.tag or fence.tag in wanted]
    if found:
        found = [content for content in found if content.strip()]
        if not found:
            return Finding(Outcome.FORMAT_ERROR, "no_answer", "every fence is blank")
    code = found[-1] if found else text
    if any("\ud800" <= char <= "\udfff" for char in code):
        return Finding(Outcome.FORMAT_ERROR, "no_answer", "the code holds characters that no file can hold")
    return code


def fences(text: str) -> list[Fence]:
    """Every fenced block, in order."""
    found: list[Fence] = []
    mark, indent, tag = "", 0, ""
    content: list[str] = []
    for line in text.removesuffix("\n").split("\n"):
        line = line.removesuffix("\r")
        bare = line.strip(" \t")
        if not mark:
            mark = _opening(bare)
            if mark:
                indent, tag, content = len(line) - len(line.lstrip(" \t")), _tag(bare[len(mark) :]), []
        elif bare.startswith(mark) and not bare.strip(mark[0]):
            found.append(Fence(tag, _joined(content)))
            mark = ""
        else:
            content.append(_dedented(line, indent))
    if mark:
        found.append(Fence(tag, _joined(content)))
    return found


def limits_of(params: Mapping[str, Any], context: Context) -> Limits:
    """The bounds of one test: those of the params, else the task's own."""
    return replace(context.limits, **params.get("limits", {}))


def sandbox_of(context: Context) -> Backend:
    """The backend that the engine lends.

    Raises:
        SandboxUnavailable: it lends none.
    """
    if context.sandbox is None:
        raise SandboxUnavailable("no sandbox is set up")
    return context.sandbox


def _opening(line: str) -> str:
    for char in "`~":
        mark = line[: len(line) - len(line.lstrip(char))]
        if len(mark) >= 3 and (char == "~" or "`" not in line[len(mark) :]):
            return mark
    return ""


def _tag(info: str) -> str:
    words = info.replace("{", " ").replace("}", " ").split()
    return words[0].lower().lstrip(".").rstrip(":,") if words else ""


def _dedented(line: str, indent: int) -> str:
    blanks = len(line) - len(line.lstrip(" \t"))
    return line[min(indent, blanks) :]


def _joined(lines: list[str]) -> str:
    return "\n".join(lines) + "\n" if lines else ""
