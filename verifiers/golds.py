"""A gold of `math`, read once: its shape, its number if it is one, its words if it is words."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from verifiers import quantity, regions
from verifiers.expression import Malformed
from verifiers.forms import is_number
from verifiers.glyphs import tidy
from verifiers.lexer import FUNCTIONS, GREEK
from verifiers.numbers import Number, TooComplex
from verifiers.peel import peel
from verifiers.structures import ALL_WORDS, EMPTY_WORDS, Shape, interval_of, read
from verifiers.words import normal

_WORDS = re.compile(r"[^\W\d_]+(?:[ ,.'&-]+[^\W\d_]+)*[.!]?")
_CONSTANTS = frozenset(("pi", "infinity", "inf", "oo"))


class Gold(NamedTuple):
    """`text` is peeled; `words` says that it is compared as words; `over_limit` that only its text is compared."""

    text: str
    squeezed: str
    normal: str
    shape: Shape
    number: Number | None
    words: bool
    over_limit: bool

    @property
    def tier(self) -> str:
        return "text" if self.words else "number" if self.number else "text"


@lru_cache(maxsize=32_768)
def gold_of(answer: str, wanted: str) -> Gold:
    """The gold of an answer text, of a declared type or `auto`."""
    text = peel(answer)
    shown = tidy(text)
    words = wanted == "text" or (wanted == "auto" and is_words(shown))
    shape, over_limit = _shape(text, "text" if words else wanted)
    if shape.kind == "text" and wanted == "auto":
        words = True
    number = quantity.gold_of(answer, {}, names=True) if not words and shape.kind == "expression" else None
    return Gold(text, shown.replace(" ", ""), normal(text), shape, number, words, over_limit)


def is_words(shown: str) -> bool:
    """Whether a text is words: letters only, some run of two or more that names no function or constant."""
    if shown.lower() in EMPTY_WORDS or shown.lower() in ALL_WORDS or not _WORDS.fullmatch(shown):
        return False
    runs = [run for run in re.findall(r"[^\W\d_]+", shown) if len(run) > 1]
    return any(run not in FUNCTIONS and run not in GREEK and run not in _CONSTANTS for run in runs) and not _list(shown)


def _list(shown: str) -> bool:
    """`x and y` and `a, b` are lists of names."""
    return all(len(run) == 1 or run in ("and", "or") for run in re.findall(r"[^\W\d_]+", shown))


def _shape(text: str, wanted: str) -> tuple[Shape, bool]:
    try:
        return _declared(read(text, wanted), wanted), False
    except (TooComplex, RecursionError):
        return Shape("opaque", text=tidy(text)[:4000]), True
    except Malformed:
        return Shape("opaque", text=tidy(text), broken=True), False


def _declared(shape: Shape, wanted: str) -> Shape:
    unbounded = wanted == "auto" and shape.kind == "tuple" and any(_infinite(item) for item in shape.items)
    if (wanted == "interval" or unbounded) and shape.region is None:
        region = interval_of(shape)
        return Shape("region", region=region, text=shape.text) if region else shape
    if wanted in ("set", "list") and shape.kind in ("expression", "equation"):
        return Shape("set", (shape,), text=shape.text)
    if wanted in ("set", "list") and shape.kind == "region" and shape.region == regions.EMPTY:
        return shape
    return shape


def _infinite(item: Shape) -> bool:
    return item.nodes in ((regions.INFINITY,), (regions.MINUS_INFINITY,))


_KINDS: Mapping[str, tuple[str, ...]] = {
    "number": ("expression",), "expression": ("expression",), "equation": ("equation", "expression"),
    "relation": ("relation", "region"), "interval": ("region",), "set": ("set", "region"), "list": ("set", "tuple"),
    "tuple": ("tuple",), "matrix": ("matrix", "tuple"), "time": ("clock",), "text": ("text",),
}  # fmt: skip


def declared_fault(answer: str, params: Mapping[str, Any]) -> str:
    """Why an answer cannot be a gold under these params; empty when it can."""
    wanted = params.get("answer_type", "auto")
    gold = gold_of(answer, wanted)
    if gold.shape.broken or not gold.squeezed:
        return "an answer does not parse"
    if wanted != "auto" and gold.shape.kind not in _KINDS[wanted] and not gold.over_limit:
        return f"an answer is not of the declared type {wanted}"
    if wanted == "number" and not gold.over_limit and not is_number(gold.shape.nodes[-1]):
        return "an answer of type number has a free name"
    return next(iter(quantity.faults(gold.number, params)), "") if gold.number else ""
