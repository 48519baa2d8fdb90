"""What of a response is scored: the visible text of the last assistant turn.

In this order: the text of a trajectory, the size cap, an invented turn (text the policy wrote in another role's name)
cut off, thinking dropped. Everything is linear in the length of the text.
"""

from collections.abc import Mapping
from typing import Any

from verifiers.contract import Finding, Outcome, Response

MAX_CHARS = 200_000
OPEN, CLOSE = "<think>", "</think>"
_ROLES = ("Human:", "User:", "Assistant:", "System:")
_TEMPLATE_TOKENS = (
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|start_header_id|>", "<|end_of_text|>",
    "<|user|>", "<|assistant|>", "<|system|>", "<start_of_turn>", "<end_of_turn>", "[INST]", "[/INST]",
)  # fmt: skip
_MARKS = " \t\r*#>_"


def visible(response: Response, params: Mapping[str, Any], *, prose: bool = True) -> str | Finding:
    """The scored text, or the finding that ends the matter.

    `prose` is false for code, patches and structured data: a line `User:` may be part of them.
    """
    if params.get("on_truncated") == "skip" and _truncated(response):
        return Finding(Outcome.SKIPPED, "truncated", "the rollout was cut by its length limit")
    text = text_of(response)
    if len(text) > params.get("max_chars", MAX_CHARS):
        return Finding(Outcome.FORMAT_ERROR, "too_long", f"{len(text)} characters")
    if not text or text.isspace():
        return Finding(Outcome.FORMAT_ERROR, "empty", "there is no text")
    return _without_thinking(text, params.get("think", "strip") == "strip", prose)


def text_of(response: Response) -> str:
    """The text of a response; empty when there is none."""
    if isinstance(response, str):
        return response
    if not isinstance(response, Mapping):
        return ""
    trajectory = response.get("trajectory")
    messages = (trajectory if isinstance(trajectory, Mapping) else response).get("messages")
    for message in reversed(messages) if isinstance(messages, list) else ():
        if isinstance(message, Mapping) and message.get("role") == "assistant":
            text = _content(message.get("content"))
            if text.strip():
                return text
    return ""


def _truncated(response: Response) -> bool:
    if not isinstance(response, Mapping):
        return False
    inner = response.get("trajectory")
    found = [response, inner] if isinstance(inner, Mapping) else [response]
    return any(part.get("finish_reason") == "length" for part in found)


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = []
    for part in content:
        if isinstance(part, str):
            parts.append(part)
        elif isinstance(part, Mapping) and part.get("type", "text") in ("text", "output_text"):
            parts.append(part["text"] if isinstance(part.get("text"), str) else "")
    return "".join(parts)


def _without_thinking(text: str, strip: bool, prose: bool) -> str | Finding:
    if not strip or "think>" not in text:
        shown = _before_turn(text, 0, len(text)) if prose else text
    else:
        if prose:
            text = _cut_outside_thinking(text)
        shown = text[text.rfind(CLOSE) + len(CLOSE) :] if CLOSE in text else text
        if OPEN in shown:
            return Finding(Outcome.FORMAT_ERROR, "unfinished_think", "thinking was opened and not closed")
        if not shown.strip():
            return Finding(Outcome.FORMAT_ERROR, "empty", "nothing follows the thinking")
    if not shown.strip():
        return Finding(Outcome.FORMAT_ERROR, "no_answer", "nothing precedes a turn in another role's name")
    return shown


def _cut_outside_thinking(text: str) -> str:
    """Cut at the first invented turn that is not inside thinking, where a policy may well quote its prompt."""
    at = 0
    inside = _next_is_close(text)
    while at < len(text):
        tag = CLOSE if inside else OPEN
        end = text.find(tag, at)
        end = len(text) if end < 0 else end
        if not inside:
            shown = _before_turn(text, at, end)
            if len(shown) < end - at:
                return text[: at + len(shown)]
        at = end + len(tag)
        inside = not inside
    return text


def _next_is_close(text: str) -> bool:
    """Whether the text begins inside thinking that the prompt opened."""
    close, opening = text.find(CLOSE), text.find(OPEN)
    return close >= 0 and (opening < 0 or close < opening)


def _before_turn(text: str, start: int, end: int) -> str:
    cut = end
    for token in _TEMPLATE_TOKENS if "<" in text or "[" in text else ():
        found = text.find(token, start, cut)
        cut = found if found >= 0 else cut
    for role in _ROLES if ":" in text else ():
        found = text.find(role, start, cut)
        while found >= 0:
            near = max(start, found - 20)  # never look further back than marks can reach
            line = text.rfind("\n", near, found) + 1 or near
            if (line == start or text[line - 1] == "\n") and not text[line:found].strip(_MARKS):
                cut = line
                break
            found = text.find(role, found + 1, cut)
    return text[start:cut]
