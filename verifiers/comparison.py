"""An answer's shape against a gold's. The gold decides what is compared: the answer is read as what the gold is."""

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from verifiers import forms, regions, units
from verifiers.equality import proportional, same, same_up_to, within
from verifiers.expression import Node, number
from verifiers.numbers import TooComplex
from verifiers.structures import Shape, interval_of, unnamed
from verifiers.values import names
from verifiers.words import normal

UNKNOWN = "unknown"
"""Neither shown equal nor shown unequal."""

_MAX_ITEMS = 200
_ONE_WORD = re.compile(r"\{(\w+)\}")
_ANGLES = {"°": 180, "degree": 180, "degrees": 180, "deg": 180}


class Rules(NamedTuple):
    """What the task's params say about comparing, and the salt of the points."""

    params: Mapping[str, Any]
    salt: str

    def get(self, key: str, default: Any = None) -> Any:
        return self.params.get(key, default)


def compare(gold: Shape, given: Shape, rules: Rules) -> str:
    """`ok`, `wrong`, `hedged`, `not_evaluated`, `unit_mismatch`, or `unknown`.

    Raises:
        TooComplex: the answer is over a limit.
    """
    return _COMPARERS[gold.kind](gold, given, rules)


def _texts(gold: Shape, given: Shape, rules: Rules) -> str:
    return "ok" if normal(gold.text) == normal(given.text) else "wrong"


def _opaque(gold: Shape, given: Shape, rules: Rules) -> str:
    if _bare(gold.text) == _bare(given.text) and given.text:
        return "ok"
    return "wrong" if any(dots in gold.text for dots in ("dots", "...", "…")) else UNKNOWN


def _bare(text: str) -> str:
    """Without blanks and without braces around one word: `\\pmod 7` is `\\pmod{7}`."""
    return _ONE_WORD.sub(r"\1", text.replace(" ", ""))


def _clocks(gold: Shape, given: Shape, rules: Rules) -> str:
    """Field by field, never as a ratio; `5:30 pm` is 17:30."""
    if given.kind != "clock":
        return "wrong"
    (first, first_half), (second, second_half) = _fields(gold.text), _fields(given.text)
    if len(first) != len(second):
        return "wrong"
    if (first_half and second_half) or (first_half != second_half and 12 < max(first[0], second[0]) < 24):
        first, second = _of_day(first, first_half), _of_day(second, second_half)
    return "ok" if first == second else "wrong"


def _fields(text: str) -> "tuple[list[int], str]":
    clock, _, half = text.partition(" ")
    return [int(part) for part in clock.split(":")], half


def _of_day(fields: list[int], half: str) -> list[int]:
    if not half:
        return fields
    return [fields[0] % 12 + (12 if half == "p" else 0), *fields[1:]]


def _expressions(gold: Shape, given: Shape, rules: Rules) -> str:
    if given.kind == "set" and len(given.items) == 1:
        given = given.items[0]
    if given.kind == "set":
        return _hedge(gold, given, rules)
    if given.kind == "equation":
        return _chain(gold, given, rules)
    if given.kind != "expression":
        return "not_evaluated" if not given.evaluated else UNKNOWN if given.kind == "opaque" else "wrong"
    return _values(gold, given, rules)


def _hedge(gold: Shape, given: Shape, rules: Rules) -> str:
    """Several values where one was asked for, unless they are all the same one."""
    codes = {compare(gold, item, rules) for item in given.items[:_MAX_ITEMS]}
    return "ok" if codes == {"ok"} else "hedged"


def _chain(gold: Shape, given: Shape, rules: Rules) -> str:
    """`x = 3 + 4 = 7` is worth its last part if every step is true."""
    nodes = given.nodes
    start = 1 if nodes[0].op == "name" and nodes[0].text not in names(nodes[-1]) else 0
    if nodes[0].op == "name" and nodes[0].text in names(gold.nodes[-1]):
        start = 0
    for left, right in zip(nodes[start:], nodes[start + 1 :], strict=False):
        if same(left, right, rules.salt) is not True:
            return "wrong"
    if start == 0 and any(names(node) for node in nodes):
        return "wrong"
    return _values(gold, given._replace(kind="expression", nodes=(nodes[-1],)), rules)


def _values(gold: Shape, given: Shape, rules: Rules) -> str:
    wanted, value = gold.nodes[-1], given.nodes[-1]
    form = rules.get("form") or ("evaluated" if forms.is_number(wanted) else "any")
    if (code := _form(form, wanted, value, gold, given)) != "ok":
        return code
    scaled = _in_gold_unit(wanted, value, gold.unit, given.unit, rules)
    if isinstance(scaled, str):
        return scaled
    wanted, value = scaled
    found = same_up_to(wanted, value, rules.get("free_constants", ()), rules.salt)
    absolute, relative = rules.get("abs_tol") or 0, rules.get("rel_tol") or 0
    numbers = forms.is_number(wanted) and forms.is_number(value)
    if found is False and numbers and (absolute or relative):
        found = within(wanted, value, absolute, relative)
    return "ok" if found else UNKNOWN if found is None else "wrong"


def _form(form: str, wanted: Node, value: Node, gold: Shape, given: Shape) -> str:
    if form == "any":
        return "ok"
    if form == "simplified":
        return "ok" if forms.simplified(value) or value == wanted else "not_evaluated"
    if not forms.is_number(wanted):
        return "ok"
    if not given.evaluated and gold.evaluated and forms.is_plain(wanted):
        return "not_evaluated"
    return "ok" if forms.evaluated(value, wanted) else "not_evaluated"


def _in_gold_unit(wanted: Node, value: Node, gold_unit: str, unit: str, rules: Rules) -> "tuple[Node, Node] | str":
    """Both values in one unit, or the code of what is wrong with the answer's unit."""
    mode = rules.get("units", "optional")
    if not gold_unit and unit in _ANGLES and not forms.is_plain(wanted) and mode != "ignore":
        return wanted, _based(value, unit) or value  # 45° beside π/4: a gold in radians has no unit to show
    if mode == "ignore" or not gold_unit:
        return wanted, value
    if not unit:
        if mode == "required":
            return "unit_mismatch"
        if mode == "optional":
            return wanted, value
        scaled = _based(wanted, gold_unit)
        return (scaled, value) if scaled else "unit_mismatch"
    if unit == gold_unit or units.converted(Fraction(1), unit, gold_unit) == 1:
        return wanted, value
    first, second = _based(wanted, gold_unit), _based(value, unit)
    if first is None or second is None or not units.same_kind(unit, gold_unit):
        return "unit_mismatch"
    return first, second


def _based(value: Node, unit: str) -> Node | None:
    """A value in base units (angles: radians, exactly)."""
    if unit in _ANGLES:
        return Node("mul", (value, Node("div", (Node("const", text="pi"), number(_ANGLES[unit])))))
    base = units.to_base(unit)
    factor = units.factor(unit, base) if base else None
    if factor is None:
        return None
    return Node("add", (Node("mul", (value, number(factor.scale))), number(factor.offset)))


def _equations(gold: Shape, given: Shape, rules: Rules) -> str:
    left, right = gold.nodes[0], gold.nodes[-1]
    lone = len(gold.nodes) == 2 and left.op == "name" and left.text not in names(right)
    if given.kind == "set" and len(given.items) > 1:
        return "hedged"
    if lone and (not names(right) or given.kind == "expression"):  # x = c wants the solved form
        if given.kind == "equation" and given.nodes[0].op == "name" and given.nodes[0].text != left.text:
            return "wrong"
        return _expressions(unnamed(gold), given, rules)
    if given.kind != "equation":
        return UNKNOWN if given.kind == "opaque" else "wrong"
    if len(gold.nodes) != 2 or len(given.nodes) != 2:
        pairs = list(zip(gold.nodes, given.nodes, strict=False))
        equal = len(gold.nodes) == len(given.nodes) and all(same(a, b, rules.salt) for a, b in pairs)
        return "ok" if equal else "wrong"
    if lone and left.op == "name" and "(" in left.text and given.nodes[0].text != left.text:
        return "wrong"
    found = proportional(gold.nodes, given.nodes, rules.salt)
    if found is False and rules.get("free_constants") and lone and given.nodes[0] == left:
        found = same_up_to(right, given.nodes[1], rules.get("free_constants"), rules.salt)
    return "ok" if found else UNKNOWN if found is None else "wrong"


def _relations(gold: Shape, given: Shape, rules: Rules) -> str:
    """An inequality that is not solved: the same one up to a factor, which turns it round when negative."""
    if given.kind != "relation" or len(gold.nodes) != 2 or len(given.nodes) != 2:
        return UNKNOWN if given.kind in ("relation", "opaque") else "wrong"
    turned = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "≠": "≠"}
    if gold.text == given.text and proportional(gold.nodes, given.nodes, rules.salt, positive=gold.text != "≠"):
        return "ok"
    swapped = (given.nodes[1], given.nodes[0])
    if turned[gold.text] == given.text and proportional(gold.nodes, swapped, rules.salt, positive=True):
        return "ok"
    return "wrong"


def _regions(gold: Shape, given: Shape, rules: Rules) -> str:
    if rules.get("relations") == "strict" and (gold.braced == "relation") != (given.braced == "relation"):
        return "wrong"
    region = given.region if given.region is not None else interval_of(given)
    if region is None or gold.region is None:
        return UNKNOWN if given.kind == "opaque" else "wrong"
    if gold.region.name and region.name and gold.region.name != region.name:
        return "wrong"
    if len(region.pieces) != len(gold.region.pieces):
        return "wrong"
    for mine, theirs in zip(gold.region.pieces, region.pieces, strict=True):
        if (mine.low_closed, mine.high_closed) != (theirs.low_closed, theirs.high_closed):
            return "wrong"
        if not (_ends(mine.low, theirs.low, rules) and _ends(mine.high, theirs.high, rules)):
            return "wrong"
    return "ok"


def _ends(a: Node, b: Node, rules: Rules) -> bool:
    infinite = (regions.INFINITY, regions.MINUS_INFINITY)
    if a in infinite or b in infinite:
        return a == b
    return bool(same(a, b, rules.salt))


def _tuples(gold: Shape, given: Shape, rules: Rules) -> str:
    if gold.braced != "()" and gold.braced != given.braced:
        return _bracketed(gold, given, rules)
    items = _as_tuple(gold, given)
    if items is None or len(items) != len(gold.items):
        return UNKNOWN if given.kind == "opaque" else "wrong"
    return _all(zip(gold.items, items, strict=True), rules)


def _bracketed(gold: Shape, given: Shape, rules: Rules) -> str:
    """A gold like `(1, 2]` or `[1, 2]` is an interval; a list in square brackets may be given bare."""
    mine = interval_of(gold)
    if mine is not None:
        return _regions(Shape("region", region=mine), given, rules)
    if gold.braced == "[]" and given.kind == "set" and not given.braced and len(given.items) == len(gold.items):
        return _all(zip(gold.items, given.items, strict=True), rules)
    return "wrong"


def _as_tuple(gold: Shape, given: Shape) -> Sequence[Shape] | None:
    if given.kind == "tuple" and (given.braced == gold.braced or given.braced == "()"):
        return given.items
    if given.kind == "set" and not given.braced:
        return given.items
    if given.kind == "matrix" and 1 in (len(given.rows), len(given.rows[0])):
        return [Shape("expression", nodes=(node,)) for row in given.rows for node in row]
    return None


def _all(pairs: Any, rules: Rules) -> str:
    codes = [compare(a, b, rules) for a, b in pairs]
    if "wrong" in codes or "hedged" in codes:
        return "wrong"
    return next((code for code in codes if code != "ok"), "ok")


def _sets(gold: Shape, given: Shape, rules: Rules) -> str:
    """Every item of each side has its equal on the other. Repeats collapse; a subset or superset fails."""
    items = given.items if given.kind == "set" else (given,)
    if given.kind in ("region", "matrix", "text", "clock") and len(gold.items) != 1:
        return _regions_of_set(gold, given, rules)
    if given.kind == "opaque":
        return UNKNOWN
    if max(len(items), len(gold.items)) > _MAX_ITEMS:
        raise TooComplex("items")
    if _named(gold.items) != _named(items):
        items = tuple(unnamed(item) if item.kind == "equation" and not _named(gold.items) else item for item in items)
    left = list(items)
    for wanted in gold.items:
        codes = [compare(wanted, item, rules) for item in items]
        if "ok" not in codes:
            return next((code for code in codes if code in (UNKNOWN, "not_evaluated")), "wrong")
        left = [item for item in left if item is not items[codes.index("ok")] and compare(wanted, item, rules) != "ok"]
    return "wrong" if left else "ok"


def _named(items: Sequence[Shape]) -> bool:
    return all(item.kind == "equation" for item in items)


def _regions_of_set(gold: Shape, given: Shape, rules: Rules) -> str:
    region = interval_of(gold)
    return _regions(Shape("region", region=region), given, rules) if region and given.kind == "region" else "wrong"


def _matrices(gold: Shape, given: Shape, rules: Rules) -> str:
    rows = given.rows if given.kind == "matrix" else _rows(given)
    if rows is None or [len(row) for row in rows] != [len(row) for row in gold.rows]:
        return UNKNOWN if given.kind == "opaque" else "wrong"
    pairs = zip((n for row in gold.rows for n in row), (n for row in rows for n in row), strict=True)
    return _all(((Shape("expression", nodes=(a,)), Shape("expression", nodes=(b,))) for a, b in pairs), rules)


def _rows(given: Shape) -> Sequence[Sequence[Node]] | None:
    """`[[1, 2], [3, 4]]` as rows."""
    if given.kind != "tuple" or not all(row.kind == "tuple" for row in given.items):
        return None
    if not all(cell.kind == "expression" for row in given.items for cell in row.items):
        return None
    return [[cell.nodes[0] for cell in row.items] for row in given.items]


_COMPARERS = {
    "text": _texts, "opaque": _opaque, "clock": _clocks, "expression": _expressions, "equation": _equations,
    "relation": _relations, "region": _regions, "tuple": _tuples, "set": _sets, "matrix": _matrices,
}  # fmt: skip
