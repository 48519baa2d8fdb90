"""Spelling of mathematics: every way to write a minus, a blank, a fraction or a power becomes one way.

Superscripts, subscripts and vulgar fractions are read before NFKC, which would glue them to their neighbours
(`10²` would become 102, `2½` would become 21/2).
"""

import unicodedata

_SUPER = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ", "0123456789+-ni")
_SUB = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_SUPERS, _SUBS = frozenset("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ"), frozenset("₀₁₂₃₄₅₆₇₈₉")
_REPLACED = (
    ("\\dfrac", "\\frac"), ("\\tfrac", "\\frac"), ("\\cfrac", "\\frac"), ("{,}", ","), ("\\!", ""),
    ("\\,", " "), ("\\;", " "), ("\\:", " "), ("\\ ", " "), ("~", " "), ("\\qquad", " "), ("\\quad", " "),
    ("\\thinspace", " "), ("\\$", "$"), ("\\%", "%"), ("\\_", "_"), ("\\pounds", "£"), ("\\euro", "€"),
    ("^{\\circ}", "°"), ("^\\circ", "°"), ("\\circ", "°"), ("\\degree", "°"), ("^°", "°"),
    ("\\langle", "("), ("\\rangle", ")"), ("\\times", "*"), ("\\cdot", "*"), ("\\ast", "*"),
)  # fmt: skip
_ROW = "\ue000"
_GLYPHS = str.maketrans(
    {
        **dict.fromkeys("−‐‑‒–—﹣－", "-"), **dict.fromkeys("×·⋅∙✕∗", "*"), "÷": "/", "∕": "/", "⁄": "/", "∶": ":",
        **dict.fromkeys("\u200b\u2060\ufeff\u00ad", None), "‘": "'", "’": "'", "“": '"', "”": '"', "º": "°", "˚": "°",
    }
)  # fmt: skip


def tidy(text: str) -> str:
    """The text in the one spelling that the parsers read."""
    if not text.isascii():
        text = _raised(text).translate(_GLYPHS)
        text = unicodedata.normalize("NFKC", text).translate(_GLYPHS)
    if "\\" in text or "~" in text or "{" in text:
        text = text.replace("\\\\", _ROW)  # two backslashes end a row; the second one escapes nothing
        for spelled, plain in _REPLACED:
            if spelled in text:
                text = _replaced(text, spelled, plain)
        text = text.replace(_ROW, "\\\\")
    return " ".join(text.split())


def _replaced(text: str, command: str, plain: str) -> str:
    """`\\cdots` is not `\\cdot` followed by an s."""
    if not command[-1].isalpha():
        return text.replace(command, plain)
    first, *rest = text.split(command)
    glued = command[-4:] != "frac"
    return first + "".join((command if glued and part[:1].isalpha() else plain) + part for part in rest)


def _raised(text: str) -> str:
    out: list[str] = []
    mode = ""
    for char in text:
        kind = "^" if char in _SUPERS else "_" if char in _SUBS else ""
        if kind != mode:
            out.append("}" if mode else "")
            out.append(kind + "{" if kind else "")
            mode = kind
        if kind:
            out.append(char.translate(_SUPER if kind == "^" else _SUB))
        elif unicodedata.category(char) == "No" and "⁄" in (fraction := unicodedata.normalize("NFKC", char)):
            out.append(" " + fraction.replace("⁄", "/"))
        else:
            out.append(char)
    out.append("}" if mode else "")
    return "".join(out)
