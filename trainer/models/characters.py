"""A character tokenizer over a fixed alphabet: printable ASCII and newline.

Text is lost nowhere silently: a character outside the alphabet becomes UNKNOWN, and UNKNOWN or a control id inside a
response decodes to U+FFFD, so a response that holds one can never be judged as if it did not.
"""

from collections.abc import Mapping, Sequence
from typing import Any

PAD, EOS, UNKNOWN = 0, 1, 2
ALPHABET = "\n" + "".join(chr(code) for code in range(32, 127))
_FIRST = 3
VOCABULARY = _FIRST + len(ALPHABET)
_IDS = {character: index + _FIRST for index, character in enumerate(ALPHABET)}
REPLACEMENT = "\ufffd"


def encode(text: str) -> tuple[int, ...]:
    """Ids of the text alone: no start, no end is added."""
    return tuple(_IDS.get(character, UNKNOWN) for character in text)


def decode(ids: Sequence[int]) -> str:
    """The text of a response; one EOS at the end is not part of it."""
    body = ids[:-1] if ids and ids[-1] == EOS else ids
    return "".join(ALPHABET[index - _FIRST] if index >= _FIRST else REPLACEMENT for index in body)


def prompt_text(messages: Sequence[Mapping[str, Any]]) -> str:
    """The contents of the messages, a line break between two: a model this small affords no role names."""
    return "\n".join(str(message["content"]) for message in messages)
