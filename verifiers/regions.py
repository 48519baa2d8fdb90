"""Parts of the real line: intervals, unions of them, and solved inequalities, all as one canonical list of pieces."""

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import cmp_to_key
from typing import Any, NamedTuple

from verifiers.expression import Malformed, Node, parse
from verifiers.numbers import TooComplex, parse_tidy
from verifiers.splitting import outside
from verifiers.values import Inexact, Undefined, approximate, exact, names

_COMMANDS = re.compile(r"\\(leqslant|leq|le|geqslant|geq|ge|lt|gt|neq|ne)(?![A-Za-z])")
_SPELLED = {"le": "<=", "leq": "<=", "leqslant": "<=", "ge": ">=", "geq": ">=", "geqslant": ">=", "lt": "<", "gt": ">"}
_GLYPHS = (("≤", "<="), ("≥", ">="), ("⩽", "<="), ("⩾", ">="), ("\\not=", "≠"), ("=<", "<="), ("=>", ">="))
_NOT_EQUAL = re.compile(r"(?<=[A-Za-z ])!=")  # behind a digit or a bracket it is a factorial and an equals sign
_OPERATORS = ("<=", ">=", "≠", "<", ">")
_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "≠": "≠"}
INFINITY = Node("const", text="inf")
MINUS_INFINITY = Node("neg", (INFINITY,))


class Piece(NamedTuple):
    """One interval; a point when both ends are equal and closed."""

    low: Node
    high: Node
    low_closed: bool
    high_closed: bool


class Region(NamedTuple):
    """Pieces in order, none touching the next. `name` is the unknown of an inequality, when one was written."""

    pieces: tuple[Piece, ...]
    name: str = ""


class Relation(NamedTuple):
    """An inequality: a region when it is solved for one name, else its sides."""

    region: Region | None
    nodes: tuple[Node, ...]
    operator: str


EMPTY = Region(())
ALL = Region((Piece(MINUS_INFINITY, INFINITY, False, False),))


def between(low: Node, high: Node, low_closed: bool, high_closed: bool) -> Region | None:
    """One interval; None when its ends are not in order."""
    order = _order(low, high)
    if order is None or order > 0 or (order == 0 and not (low_closed and high_closed)):
        return None
    return Region((Piece(low, high, low_closed and not _infinite(low), high_closed and not _infinite(high)),))


def points(nodes: Sequence[Node]) -> Region | None:
    """Single points as a region."""
    return union([Region((Piece(node, node, True, True),)) for node in nodes], len(nodes))


def union(parts: Sequence[Region], expected: int) -> Region | None:
    """The union; None when some part was no region, or when ends cannot be put in order."""
    if len(parts) != expected or not parts:
        return None
    pieces = [piece for part in parts for piece in part.pieces]
    keyed = [(_value(piece.low), piece) for piece in pieces]
    if any(value is None for value, _ in keyed):
        return None
    keyed.sort(key=cmp_to_key(_earlier))
    merged: list[Piece] = []
    for _, piece in keyed:
        if merged and _touching(merged[-1], piece):
            merged[-1] = _joined(merged[-1], piece)
        else:
            merged.append(piece)
    return Region(tuple(merged), next((part.name for part in parts if part.name), ""))


def intersection(parts: Sequence[Region]) -> Region | None:
    """What all parts have in common; None when ends cannot be put in order."""
    found = parts[0]
    for other in parts[1:]:
        pieces: list[Piece] = []
        for a in found.pieces:
            for b in other.pieces:
                common = _common(a, b)
                if common is None:
                    return None
                pieces += common.pieces
        found = Region(tuple(pieces), found.name or other.name)
    return found


def without(node: Node) -> Region | None:
    """The line without one point."""
    return _ray("", "≠", node)


def relation(text: str) -> Relation | None:
    """The inequality that a text writes; None when it writes none.

    Raises:
        Malformed: a side is no expression.
    """
    shown = _COMMANDS.sub(lambda found: _SPELLED.get(found[1], "≠"), text)
    for glyph, plain in _GLYPHS:
        shown = shown.replace(glyph, plain)
    sides, operators = _sides(_NOT_EQUAL.sub("≠", shown))
    if not operators:
        return None
    try:
        nodes = tuple(_side(side) for side in sides)
    except Malformed:
        return None
    return Relation(_solved(nodes, operators), nodes, " ".join(operators))


def _side(text: str) -> Node:
    value = parse_tidy(text.strip())
    return Node("num", value=Fraction(value.value)) if value and not value.unit and value.evaluated else parse(text)


def _sides(text: str) -> tuple[list[str], list[str]]:
    depths = outside(text)
    sides, operators, start, i = [], [], 0, 0
    while i < len(text):
        hit = next((op for op in _OPERATORS if text.startswith(op, i)), None) if depths[i] == 0 else None
        if hit is None:
            i += 1
            continue
        sides.append(text[start:i])
        operators.append(hit)
        i += len(hit)
        start = i
    sides.append(text[start:])
    return sides, operators


def _solved(nodes: tuple[Node, ...], operators: list[str]) -> Region | None:
    if len(nodes) == 2 and (found := _distance(nodes, operators[0])):
        return found
    lone = [i for i, node in enumerate(nodes) if node.op == "name"]
    rest = [node for node in nodes if node.op != "name"]
    if len(lone) != 1 or any(names(node) for node in rest):
        return None
    name = nodes[lone[0]].text
    if len(nodes) == 2:
        operator = operators[0] if lone[0] == 0 else _FLIPPED[operators[0]]
        return _ray(name, operator, rest[0])
    if len(nodes) == 3 and lone == [1]:
        parts = [_ray(name, _FLIPPED[operators[0]], nodes[0]), _ray(name, operators[1], nodes[2])]
        found = intersection([part for part in parts if part is not None]) if None not in parts else None
        return found._replace(name=name) if found else None
    return None


def _distance(nodes: tuple[Node, ...], operator: str) -> Region | None:
    """`|x - a| < b`: the points nearer to a than b, or farther."""
    inside, bound = nodes
    if (inside.op, inside.text) != ("fn", "abs") or names(bound) or operator == "≠":
        return None
    inner = inside.args[0]
    name, *shift = inner.args if inner.op == "add" else (inner,)
    if name.op != "name" or len(shift) > 1 or any(names(node) for node in shift):
        return None
    back = [Node("neg", (node,)) for node in shift]
    low, high = Node("add", (Node("neg", (bound,)), *back)), Node("add", (bound, *back))
    closed = operator.endswith("=")
    found = between(low, high, closed, closed)
    if found is None or operator[0] == "<":
        return found and found._replace(name=name.text)
    rays = [_ray(name.text, operator.replace(">", "<"), low), _ray(name.text, operator, high)]
    return union([ray for ray in rays if ray], 2)


def _ray(name: str, operator: str, end: Node) -> Region | None:
    if operator == "≠":
        pieces = (Piece(MINUS_INFINITY, end, False, False), Piece(end, INFINITY, False, False))
        return Region(pieces, name)
    closed = operator.endswith("=")
    if operator[0] == "<":
        return Region((Piece(MINUS_INFINITY, end, False, closed and not _infinite(end)),), name)
    return Region((Piece(end, INFINITY, closed and not _infinite(end), False),), name)


def _infinite(node: Node) -> bool:
    return node in (INFINITY, MINUS_INFINITY)


def _value(node: Node) -> Any | None:
    """A number to put ends in order with; None when there is none."""
    if node == INFINITY:
        return float("inf")
    if node == MINUS_INFINITY:
        return float("-inf")
    try:
        return exact(node, {})
    except Inexact:
        pass
    except (Undefined, TooComplex):
        return None
    try:
        value = approximate(node, {})
    except (Undefined, TooComplex):
        return None
    return value.real if abs(value.imag) == 0 else None


def _order(a: Node, b: Node) -> int | None:
    if a == b:
        return 0
    first, second = _value(a), _value(b)
    if first is None or second is None:
        return None
    return int(bool(_more(first, second))) - int(bool(_more(second, first)))


def _more(a: Any, b: Any) -> bool:
    """Also between a fraction and a number of many digits, which do not compare with each other."""
    if isinstance(a, Fraction) and not isinstance(b, Fraction | float):
        return bool(a.numerator > b * a.denominator)
    if isinstance(b, Fraction) and not isinstance(a, Fraction | float):
        return bool(a * b.denominator > b.numerator)
    return bool(a > b)


def _earlier(a: tuple[Any, Piece], b: tuple[Any, Piece]) -> int:
    order = int(_more(a[0], b[0])) - int(_more(b[0], a[0]))
    return order or int(b[1].low_closed) - int(a[1].low_closed)


def _touching(a: Piece, b: Piece) -> bool:
    order = _order(b.low, a.high)
    return order is not None and (order < 0 or (order == 0 and (a.high_closed or b.low_closed)))


def _joined(a: Piece, b: Piece) -> Piece:
    order = _order(a.high, b.high)
    low_closed = a.low_closed or (b.low_closed and _order(a.low, b.low) == 0)
    if order == 0:
        return Piece(a.low, a.high, low_closed, a.high_closed or b.high_closed)
    further = b if order is not None and order < 0 else a
    return Piece(a.low, further.high, low_closed, further.high_closed)


def _common(a: Piece, b: Piece) -> Region | None:
    low_order, high_order = _order(a.low, b.low), _order(a.high, b.high)
    if low_order is None or high_order is None:
        return None
    low, low_closed = (a.low, a.low_closed) if low_order > 0 else (b.low, b.low_closed)
    high, high_closed = (a.high, a.high_closed) if high_order < 0 else (b.high, b.high_closed)
    low_closed = a.low_closed and b.low_closed if low_order == 0 else low_closed
    high_closed = a.high_closed and b.high_closed if high_order == 0 else high_closed
    order = _order(low, high)
    if order is None:
        return None
    if order > 0 or (order == 0 and not (low_closed and high_closed)):
        return EMPTY
    return Region((Piece(low, high, low_closed, high_closed),))
