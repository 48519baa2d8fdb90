"""Text of tasks, rollouts and logs as a page may show it: plain, with every character that hides or turns text named.

Not covered: look-alike letters. They are shown as they are; the gates judge them.
"""

import unicodedata

from markupsafe import Markup, escape

MOST = 100_000
"""Characters that one page shows of one text."""

_KEPT = frozenset("\n\t")


def visible(text: str, most: int = MOST) -> Markup:
    """Escaped text; controls, bidirectional marks, zero-width and unassigned characters as `U+202E` chips."""
    shown = text[:most]
    if shown.isascii() and shown.isprintable():
        return escape(shown)
    parts: list[str] = []
    plain_from = 0
    for index, character in enumerate(shown):
        if character in _KEPT or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
            continue
        parts += [escape(shown[plain_from:index]), chip(character)]
        plain_from = index + 1
    return Markup("").join([*parts, escape(shown[plain_from:])])


def chip(character: str) -> Markup:
    """The name of a character that has no shape of its own."""
    name = unicodedata.name(character, "CONTROL")
    return Markup('<span class="esc" title="%s">U+%s</span>') % (name, f"{ord(character):04X}")


def head(text: str, most: int = 96) -> Markup:
    """The beginning of a text on one line."""
    line = " ".join(text[: most * 4].split())
    return visible(line[:most]) + ("…" if len(line) > most or len(text) > most * 4 else "")
