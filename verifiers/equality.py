"""Whether two expressions have the same value: exactly where both are rational, else by many digits, at fixed points.

With names, both are computed at several points of both signs, so that a simplification which needs an assumption
(`\\sqrt{x^2} = x`) is not taken for an identity. The points depend on a salt, so no answer can be built around them.
"""

import hashlib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import permutations
from typing import Any

from verifiers.expression import Node
from verifiers.numbers import TooComplex
from verifiers.values import Env, Inexact, Undefined, approximate, exact, names, walk

POINTS = 8
NEEDED = 4
_TIGHT = 10.0**-40
_NOISE = 10.0**-20


def same(a: Node, b: Node, salt: str) -> bool | None:
    """Equal, unequal, or None when neither can be shown.

    Raises:
        TooComplex: a size is over its limit.
    """
    if a == b:
        return True
    free = sorted(names(a) | names(b))
    if not free:
        return _equal_at(a, b, {})
    agreed = 0
    for env in points(free, salt, whole=_counts(a) or _counts(b)):
        found = _equal_at(a, b, env)
        if found is False:
            return False
        agreed += found is True
    return True if agreed >= NEEDED else None


def points(free: Sequence[str], salt: str, *, whole: bool = False) -> list[dict[str, Fraction]]:
    """Fixed points for these names: fractions of both signs, some large, none special; or small whole numbers."""
    found = [{name: _coordinate(name, k, salt) for name in free} for k in range(POINTS)]
    if not whole:
        return found
    return [{name: Fraction(1 + abs(value.numerator) % 40) for name, value in env.items()} for env in found]


def _counts(node: Node) -> bool:
    """Whether a tree counts with its names: a sum up to n means nothing between whole numbers."""
    return any(part.op in ("sum", "prod") and names(Node("add", part.args[:2])) for part in walk(node))


def _coordinate(name: str, k: int, salt: str) -> Fraction:
    digest = hashlib.sha256(f"{salt}\0{name}\0{k}".encode()).digest()
    above = 1 + int.from_bytes(digest[:4], "big") % 9973
    below = (101, 997, 1009, 4001)[digest[4] % 4]
    sign = -1 if digest[5] % 3 == 0 else 1
    return Fraction(sign * above, below)


def _equal_at(a: Node, b: Node, env: Env) -> bool | None:
    """Equal at a point; None when one of them is not defined there."""
    try:
        first, second = _exact(a, env), _exact(b, env)
        if first is not None and second is not None:
            return first == second
        return _close(a, b, env)
    except Undefined:
        return None


def _exact(node: Node, env: Env) -> Fraction | None:
    try:
        return exact(node, env)
    except Inexact:
        return None


def _close(a: Node, b: Node, env: Env) -> bool:
    first, second = approximate(a, env), approximate(b, env)
    scale, gap = max(abs(first), abs(second)), abs(first - second)
    if gap <= scale * _TIGHT:
        return True
    if scale > _NOISE:
        return False
    first, second = _settled(a, first, env), _settled(b, second, env)
    return bool(abs(first - second) <= max(abs(first), abs(second)) * _TIGHT)


def _settled(node: Node, rough: Any, env: Env) -> Any:
    """A tiny value with more digits; zero where it was nothing but what cancelling left over."""
    fine = approximate(node, env, 200)
    return fine if abs(fine - rough) <= abs(fine) * _NOISE else fine * 0


def within(gold: Node, value: Node, absolute: float, relative: float) -> bool:
    """Whether a real value lies within a tolerance of a real gold. A relative one is relative to the gold."""
    try:
        wanted, given = approximate(gold, {}), approximate(value, {})
    except Undefined:
        return False
    bound = max(approximate(_number(absolute), {}).real, approximate(_number(relative), {}).real * abs(wanted))
    return bool(abs(wanted - given) <= bound * (1 + 10.0**-30))


def _number(value: float) -> Node:
    return Node("num", value=Fraction(repr(value)))


def proportional(a: Sequence[Node], b: Sequence[Node], salt: str, *, positive: bool = False) -> bool | None:
    """Whether left − right of two equations agree up to a constant factor that is not zero."""
    first, second = _difference(a), _difference(b)
    free = sorted(names(first) | names(second))
    ratio: Any = None
    agreed = 0
    for env in points(free, salt):
        found = _ratio(first, second, env)
        if found is None:
            continue
        if found == 0 or (ratio is not None and not _alike(found, ratio)):
            return False
        ratio = found
        agreed += 1
    if agreed < (NEEDED if free else 1):
        return None
    return not positive or (getattr(ratio, "imag", 0) == 0 and getattr(ratio, "real", ratio) > 0)


def _difference(sides: Sequence[Node]) -> Node:
    return Node("add", (sides[0], Node("neg", (sides[1],))))


def _ratio(a: Node, b: Node, env: Env) -> Any | None:
    try:
        above, below = _exact(a, env), _exact(b, env)
        if above is not None and below is not None:
            return above / below if below else (None if not above else 0)
        first, second = approximate(a, env), approximate(b, env)
    except Undefined:
        return None
    if abs(second) < 10.0**-50:
        return None if abs(first) < 10.0**-50 else 0
    return first / second


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a == b
    a, b = (Node("num", value=v) if isinstance(v, Fraction) else v for v in (a, b))
    a, b = (approximate(v, {}) if isinstance(v, Node) else v for v in (a, b))
    return bool(abs(a - b) <= _TIGHT * max(abs(a), abs(b)))


def renamed(node: Node, mapping: Mapping[str, str]) -> Node:
    """The tree with names replaced."""
    if node.op == "name":
        return node._replace(text=mapping.get(node.text, node.text))
    return node._replace(args=tuple(renamed(arg, mapping) for arg in node.args)) if node.args else node


def same_up_to(a: Node, b: Node, free_constants: Sequence[str], salt: str) -> bool | None:
    """`same`, where the answer `b` may call the gold's free constants by other names."""
    found = same(a, b, salt)
    mine = [name for name in free_constants if name in names(a)]
    others = sorted(names(b) - (names(a) - set(mine)))
    if found or not mine or len(others) != len(mine) or len(mine) > 4:
        return found
    for order in permutations(mine):
        if same(a, renamed(b, dict(zip(others, order, strict=True))), salt):
            return True
    return found


__all__ = ["TooComplex", "points", "proportional", "renamed", "same", "same_up_to", "within"]
