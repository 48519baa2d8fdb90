"""The shape of a mathematical answer: a tree of sets, tuples, regions, equations, matrices and expressions.

The same reader serves golds and answers; what a comparison makes of a shape is decided by the gold alone
(`comparison.py`): `(1,2)` is a pair beside a pair, and an open interval beside an interval.
"""

import re
from typing import NamedTuple

from verifiers import regions
from verifiers.expression import Malformed, Node, Unevaluated, UnknownWord, number, parse
from verifiers.glyphs import tidy
from verifiers.numbers import TooComplex, parse_tidy
from verifiers.peel import peel
from verifiers.regions import Region
from verifiers.splitting import balanced, enclosed, split
from verifiers.units import plausible
from verifiers.values import walk

MAX_CHARS = 2_000
EMPTY_WORDS = frozenset(
    ("no solution", "no solutions", "none", "empty set", "no real solution", "no real solutions", "the empty set",
     "there is no solution", "no such number", "\\emptyset", "\\varnothing", "∅", "{}", "\\{\\}", "\\{ \\}", "{ }")
)  # fmt: skip
ALL_WORDS = frozenset(
    ("\\mathbb{R}", "\\mathbb R", "ℝ", "all real numbers", "all reals", "all real number", "\\Bbb{R}", "\\R",
     "the set of all real numbers", "x \\in \\mathbb{R}")
)  # fmt: skip
_DOTS = ("\\ldots", "\\cdots", "\\dots", "...", "…", "\\vdots")
_MATRIX = re.compile(
    r"\\begin\{([pbB]?|small)(?:matrix|array)\}(?:\{[lcr|]*\})?(.*)\\end\{\1(?:matrix|array)\}", re.DOTALL
)
_CLOCK = re.compile(r"(\d{1,3}(?::\d{1,3}){1,3})\s*(?:([ap])\.?\s?m\.?)?", re.IGNORECASE)
_MEMBER = re.compile(r"^\\?[A-Za-z]+(?:_\{?\w+\}?)?\s*(?:\\in(?![a-z])|∈)\s*")
_OR = (" or ", "\\lor ", "\\vee ", "∨", "\\cup", "∪", " \\cup ")


class Shape(NamedTuple):
    """One answer. `kind` is expression, equation, relation, region, set, tuple, matrix, clock, text or opaque.

    `braced` says how a set or tuple was written: its brackets, or nothing for a bare list, or `or` for alternatives.
    `broken` marks an opaque text that uses only known words and still follows no grammar.
    """

    kind: str
    items: tuple["Shape", ...] = ()
    nodes: tuple[Node, ...] = ()
    text: str = ""
    braced: str = ""
    region: Region | None = None
    unit: str = ""
    rows: tuple[tuple[Node, ...], ...] = ()
    evaluated: bool = True
    broken: bool = False


def read(text: str, wanted: str = "auto") -> Shape:
    """The shape of a text (peeled).

    Raises:
        TooComplex: it is over a limit.
        Malformed: its brackets do not match, or it is nothing at all.
    """
    shown = tidy(text)
    if len(shown) > MAX_CHARS:
        raise TooComplex("length")
    if not shown or not balanced(shown.replace("\\lfloor", "(").replace("\\rfloor", ")")):
        raise Malformed("unbalanced brackets")
    return _read(shown, wanted)


def _read(shown: str, wanted: str) -> Shape:
    if wanted == "text":
        return Shape("text", text=shown)
    if shown.isdigit() and shown.isascii() and len(shown) <= MAX_CHARS:
        return Shape("expression", nodes=(number(int(shown)),), text=shown)
    lowered = shown.lower()
    if lowered in EMPTY_WORDS or shown in EMPTY_WORDS:
        return Shape("region", region=regions.EMPTY, text=shown)
    if shown in ALL_WORDS or lowered in ALL_WORDS:
        return Shape("region", region=regions.ALL, text=shown)
    if any(dots in shown for dots in _DOTS):
        return Shape("opaque", text=shown)
    if clock := _CLOCK.fullmatch(shown):
        return Shape("clock", text=f"{clock[1]} {(clock[2] or '').lower()}".strip())
    if matrix := _MATRIX.fullmatch(shown):
        return _matrix(matrix[2])
    return _several(_MEMBER.sub("", shown, count=1), wanted)


def _several(shown: str, wanted: str) -> Shape:
    if "\\pm" in shown or "±" in shown or "\\mp" in shown:
        return _pair(shown, wanted)
    alternatives = [part for part in split(shown, _OR) if part]
    if len(alternatives) > 1:
        shapes = tuple(_read(part, wanted) for part in alternatives)
        if union := regions.union([shape.region for shape in shapes if shape.region is not None], len(shapes)):
            return Shape("region", region=union, text=shown, braced="or")
        as_regions = [_as_interval(shape) for shape in shapes]
        if "\\cup" in shown and (union := regions.union([r for r in as_regions if r is not None], len(shapes))):
            return Shape("region", region=union, text=shown)
        return _named_once(Shape("set", _flat(shapes), braced="or", text=shown))
    if "," in shown and wanted in ("auto", "number") and not enclosed(shown):
        grouped = _leaf_number(shown)
        if grouped is not None:
            return grouped
    items = [part for part in split(shown, (",", ";", " and ", "\\wedge ", "\\land ")) if part]
    if len(items) > 1:
        return _listed(shown, items, wanted)
    return _single(items[0] if items else shown, wanted)


def _listed(shown: str, items: list[str], wanted: str) -> Shape:
    shapes = tuple(_read(item.removeprefix("and ").strip(), wanted) for item in items)
    parts = [shape.region for shape in shapes if shape.kind == "region" and shape.region is not None]
    if len(parts) == len(shapes) and (both := regions.intersection(parts)):
        return Shape("region", region=both, text=shown)
    return _named_once(Shape("set", _flat(shapes), text=shown))


def _flat(shapes: tuple[Shape, ...]) -> tuple[Shape, ...]:
    """`1, \\pm 2` is one list of three."""
    found: list[Shape] = []
    for shape in shapes:
        found += shape.items if shape.kind == "set" and not shape.braced.startswith("{") else (shape,)
    return tuple(found)


def _named_once(shape: Shape) -> Shape:
    """`x = 1, 2` and `x = 1 or x = 2` name one unknown: the values alone are the list."""
    names = {item.nodes[0].text for item in shape.items if _names_value(item)}
    named = [_names_value(item) for item in shape.items]
    if len(names) == 1 and (all(named) or (named[0] and not any(named[1:]))):
        items = tuple(unnamed(item) if _names_value(item) else item for item in shape.items)
        return shape._replace(items=items)
    return shape


def _names_value(shape: Shape) -> bool:
    return shape.kind == "equation" and len(shape.nodes) == 2 and shape.nodes[0].op == "name"


def unnamed(shape: Shape) -> Shape:
    """The value of a shape `name = value`."""
    return Shape("expression", nodes=(shape.nodes[-1],), text=shape.text, evaluated=shape.evaluated)


def _pair(shown: str, wanted: str) -> Shape:
    spelled = shown.replace("±", "\\pm ").replace("\\mp", "\\mp ")
    upper = spelled.replace("\\pm", "+").replace("\\mp", "-")
    lower = spelled.replace("\\pm", "-").replace("\\mp", "+")
    shapes = (_read(tidy(upper), wanted), _read(tidy(lower), wanted))
    return _named_once(Shape("set", _flat(shapes), text=shown))


def _single(shown: str, wanted: str) -> Shape:
    if shown.startswith("\\{") and shown.endswith("\\}") and enclosed(shown[1:-2] + "}"):
        return _braced(shown[2:-2].strip(), shown, wanted)
    if enclosed(shown):
        inner = shown[1:-1].strip()
        if shown[0] == "{":
            return _braced(inner, shown, wanted) if "," in inner else _read(inner, wanted)
        items = split(inner, (",", ";"))
        if len(items) > 1 and all(items):
            return Shape("tuple", tuple(_read(item, "auto") for item in items), text=shown, braced=shown[0] + shown[-1])
        if shown[0] == "(" and shown[-1] == ")":
            return _read(inner, wanted)
        if shown[0] == "[" and shown[-1] == "]" and items[0]:
            return Shape("tuple", (_read(items[0], "auto"),), text=shown, braced="[]")
    if (rest := _without(shown)) is not None:
        return rest
    if (relation := regions.relation(shown)) is not None:
        return Shape("region" if relation.region else "relation", region=relation.region, nodes=relation.nodes,
                     text=relation.operator or shown, braced="relation")  # fmt: skip
    sides = split(shown, ("=",))
    if len(sides) > 1:
        return _equation(shown, sides)
    return _leaf(shown, wanted)


def _without(shown: str) -> Shape | None:
    """`\\mathbb{R} \\setminus \\{0\\}`: what is left of the line without some points."""
    sides = split(shown, ("\\setminus", "\\backslash"))
    if len(sides) != 2 or sides[0] not in ALL_WORDS:
        return None
    left_out = _read(sides[1], "auto")
    nodes = [item.nodes[0] for item in left_out.items if item.kind == "expression"]
    if left_out.kind != "set" or len(nodes) != len(left_out.items):
        return None
    region = regions.intersection([ray for node in nodes if (ray := regions.without(node))])
    return Shape("region", region=region, text=shown) if region else None


def _braced(inner: str, shown: str, wanted: str) -> Shape:
    """`\\{1, 2\\}`, or `\\{x | x > 1\\}`, which is its condition."""
    for bar in ("\\mid ", "|", ":"):
        head, found, condition = inner.partition(bar)
        if found and len(head.strip()) <= 16 and ("<" in condition or ">" in condition or "\\" in condition):
            return _read(condition.strip(), wanted)
    if not inner:
        return Shape("region", region=regions.EMPTY, text=shown)
    items = [part for part in split(inner, (",", ";")) if part]
    return _named_once(Shape("set", tuple(_read(item, "auto") for item in items), text=shown, braced="{}"))


def _equation(shown: str, sides: list[str]) -> Shape:
    left = sides[0]
    if len(sides) == 2 and enclosed(left) and "," in left:  # (x, y) = (1, 2)
        return _read(sides[1], "auto")
    if len(sides) == 2 and re.fullmatch(r"\\?[A-Za-z]+\s*\([A-Za-z](?:, ?[A-Za-z])*\)", left):
        try:
            return Shape("equation", nodes=(Node("name", text=left), _node(sides[1])), text=shown)
        except Malformed:
            return Shape("opaque", text=shown)
    if len(sides) == 2 and re.fullmatch(r"\\?[A-Za-z]+(?:_\{?\w+\}?)?'?", left):
        inner = _read(sides[1], "auto")
        if inner.kind != "expression":
            return inner
    try:
        return Shape("equation", nodes=tuple(_node(side) for side in sides), text=shown)
    except Unevaluated:
        return Shape("opaque", text=shown, evaluated=False)
    except Malformed:
        return Shape("opaque", text=shown)


def _node(text: str) -> Node:
    leaf = _leaf_number(text)
    if leaf is not None and not leaf.unit:
        return leaf.nodes[0]
    return parse(text)


def _leaf(shown: str, wanted: str) -> Shape:
    """An expression, perhaps with a unit behind it."""
    found = _leaf_number(shown)
    if found is not None:
        return found
    words = shown.split(" ")
    for count in (3, 2, 1):
        unit = " ".join(words[-count:])
        if len(words) > count and plausible(unit):
            try:
                return Shape("expression", nodes=(_node(" ".join(words[:-count])),), text=shown, unit=unit)
            except Malformed:
                continue
    if shown.endswith("°") and (degrees := _tree(shown[:-1])) and not any(part.op == "fn" for part in walk(degrees)):
        return Shape("expression", nodes=(degrees,), text=shown, unit="°")
    try:
        return Shape("expression", nodes=(parse(shown),), text=shown)
    except Unevaluated:
        return Shape("opaque", text=shown, evaluated=False)
    except UnknownWord:
        return Shape("opaque" if "\\" in shown else "text", text=shown)
    except Malformed:
        return Shape("opaque", text=shown, broken=True)


def _leaf_number(shown: str) -> Shape | None:
    """A plain written number: groups, mixed numbers and bases are read by the number tier alone."""
    value = parse_tidy(shown)
    if value is None or "=" in shown or (value.unit and not plausible(value.unit, spaced=value.spaced)):
        return None
    as_written = not value.evaluated or (not value.unit and ("/" in shown or "frac" in shown))
    node = _tree(shown) if as_written else None
    return Shape(
        "expression", nodes=(node or number(value.value),), text=shown, unit=value.unit, evaluated=value.evaluated
    )


def _tree(shown: str) -> Node | None:
    """The tree of a number as it was written: `2/4` is not yet 1/2."""
    try:
        return parse(shown)
    except Malformed:
        return None


def _matrix(body: str) -> Shape:
    rows = [row for row in (part.strip() for part in body.split("\\\\")) if row]
    try:
        found = tuple(tuple(_node(peel(cell)) for cell in row.split("&")) for row in rows)
    except Malformed:
        return Shape("opaque", text=body)
    return (
        Shape("matrix", rows=found) if found and len({len(row) for row in found}) == 1 else Shape("opaque", text=body)
    )


def _as_interval(shape: Shape) -> Region | None:
    if shape.region is not None:
        return shape.region
    return interval_of(shape)


def interval_of(shape: Shape) -> Region | None:
    """A pair in brackets as an interval; a set of values as points."""
    if shape.kind == "tuple" and len(shape.items) == 2 and all(item.kind == "expression" for item in shape.items):
        low, high = (item.nodes[0] for item in shape.items)
        return regions.between(low, high, shape.braced[0] == "[", shape.braced[-1] == "]")
    if shape.kind == "set" and shape.items and all(item.kind == "expression" for item in shape.items):
        return regions.points([item.nodes[0] for item in shape.items])
    return None
