"""Tokens of written mathematics, in the one spelling of `glyphs`. A list of allowed words; all others are refused."""

import re
from typing import NamedTuple

MAX_CHARS = 2_000
MAX_TOKENS = 400


class Malformed(ValueError):
    """The text is not mathematics that the grammar reads."""


class UnknownWord(Malformed):
    """A command, word or sign that the grammar does not know. It may well be mathematics."""


class Unevaluated(Malformed):
    """The text leaves an integral, a limit or a derivative to the reader."""


class Token(NamedTuple):
    """`kind` is num, name, fn, op or end."""

    kind: str
    text: str


FUNCTIONS = frozenset(
    (
        "sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "arccot", "sinh", "cosh", "tanh",
        "ln", "log", "lg", "exp", "sqrt", "gcd", "lcm", "max", "min", "abs", "asin", "acos", "atan", "arg", "Re", "Im",
        "operatorname", "sgn", "cbrt", "cis",
    )
)  # fmt: skip
GREEK = frozenset(
    (
        "alpha", "beta", "gamma", "delta", "epsilon", "varepsilon", "zeta", "eta", "theta", "vartheta", "iota", "kappa",
        "lambda", "mu", "nu", "xi", "rho", "sigma", "tau", "upsilon", "phi", "varphi", "chi", "psi", "omega", "Gamma",
        "Delta", "Theta", "Lambda", "Xi", "Sigma", "Phi", "Psi", "Omega", "ell", "hbar",
    )
)  # fmt: skip
_COMMANDS = {
    "frac": "frac", "binom": "binom", "dbinom": "binom", "tbinom": "binom", "sum": "sum", "prod": "prod", "div": "/",
    "lfloor": "lfloor", "rfloor": "rfloor", "lceil": "lceil", "rceil": "rceil", "lvert": "|", "rvert": "|", "vert": "|",
    "mid": "|", "le": "<=", "leq": "<=", "ge": ">=", "geq": ">=", "lt": "<", "gt": ">", "ne": "≠", "neq": "≠",
    "leqslant": "<=", "geqslant": ">=", "infty": "inf", "pi": "pi", "mod": "mod", "bmod": "mod", "lbrace": "{",
    "rbrace": "}", "over": "/", "star": "*", "degree": "°", "choose": "choose", "imath": "i",
}  # fmt: skip
_UNEVALUATED = frozenset(("int", "iint", "oint", "lim", "partial", "nabla", "limsup", "liminf"))
_IGNORED = frozenset(("limits", "nolimits", "displaystyle", "!", ",", ";", ":", " "))
_GREEK_SIGNS = "αβγδεζηθικλμνξρστυφχψωΓΔΘΛΞΣΦΨΩϕϑµ"
_GREEK_NAMES = """alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi rho sigma tau upsilon phi
chi psi omega Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega phi theta mu"""
_GREEK_LETTERS = dict(zip(_GREEK_SIGNS, _GREEK_NAMES.split(), strict=True))
_SYMBOLS = {"π": ("op", "pi"), "∞": ("op", "inf"), "√": ("fn", "sqrt"), "≤": ("op", "<="), "≥": ("op", ">=")}
_SYMBOLS |= {"≠": ("op", "≠"), "∑": ("op", "sum"), "∏": ("op", "prod"), "⌊": ("op", "lfloor"), "⌋": ("op", "rfloor")}
_SYMBOLS |= {"⌈": ("op", "lceil"), "⌉": ("op", "rceil")}
_TOKEN = re.compile(
    r"\s*(?:(?P<num>\d+(?:\.\d+)?|\.\d+)|\\(?P<cmd>[A-Za-z]+|.)|(?P<word>[A-Za-z]+)"
    r"|(?P<op>\*\*|<=|>=|==|[-+*/^_(){}\[\]|!,=<>'°%])|(?P<other>\S))"
)


def tokens(text: str) -> list[Token]:
    """The tokens of a text.

    Raises:
        Malformed: it is too long, or holds something that the grammar does not know.
        Unevaluated: it leaves an integral, a limit or a derivative to the reader.
    """
    if len(text) > MAX_CHARS:
        raise Malformed("too long")
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        kind, value = match.lastgroup or "other", match[match.lastgroup or "other"]
        found += _READERS[kind](value)
        if len(found) > MAX_TOKENS:
            raise Malformed("too many tokens")
    found.append(Token("end", ""))
    return found


def _number(text: str) -> list[Token]:
    return [Token("num", text)]


def _operator(text: str) -> list[Token]:
    return [Token("op", "^" if text == "**" else text)]


def _command(text: str) -> list[Token]:
    if text in _IGNORED:
        return []
    if text in _UNEVALUATED:
        raise Unevaluated(text)
    if text in FUNCTIONS:
        return [Token("fn", text)]
    if text in GREEK:
        return [Token("name", text)]
    if text in ("{", "}"):
        return [Token("op", "\\" + text)]
    if text == "|":
        return [Token("op", "|")]
    if text not in _COMMANDS:
        raise UnknownWord(f"\\{text}")
    return [Token("op" if _COMMANDS[text] != "i" else "name", _COMMANDS[text])]


def _word(text: str) -> list[Token]:
    """A run of letters: a function, a constant, a Greek name, or a product of letters."""
    if text in FUNCTIONS:
        return [Token("fn", text)]
    if text in GREEK:
        return [Token("name", text)]
    if text in ("pi", "inf", "mod"):
        return [Token("op", text)]
    if text in ("infinity", "infty", "oo"):
        return [Token("op", "inf")]
    for function in ("sqrt", "sin", "cos", "tan", "log", "exp", "ln", "pi"):
        if len(text) > len(function) and text.startswith(function):  # `sinx`, `lnx`, `pir`
            return [*_word(function), *_word(text[len(function) :])]
        if len(text) > len(function) and text.endswith(function) and len(text) <= len(function) + 2:  # `xsin`
            return [*_word(text[: -len(function)]), *_word(function)]
    if len(text) > 3:
        raise UnknownWord("a word")
    return [Token("name", letter) for letter in text]


def _other(text: str) -> list[Token]:
    if text in _SYMBOLS:
        return [Token(*_SYMBOLS[text])]
    if text in _GREEK_LETTERS:
        return [Token("name", _GREEK_LETTERS[text])]
    raise UnknownWord(text)


_READERS = {"num": _number, "cmd": _command, "word": _word, "op": _operator, "other": _other}
