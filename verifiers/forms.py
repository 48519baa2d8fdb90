"""Whether an answer is carried out: no names left in a number, no sums left to add, lowest terms where asked."""

import math

from verifiers.expression import Node
from verifiers.numbers import LONG_POWER_DIGITS, TooComplex
from verifiers.values import Inexact, Undefined, exact, names, walk


def is_number(node: Node) -> bool:
    """Whether a tree is a number: no names, and finite."""
    return not names(node) and not any(part.op == "const" and part.text == "inf" for part in walk(node))


def is_plain(node: Node) -> bool:
    """Whether a tree shows a plain number: digits, or a fraction of them, with a sign."""
    if node.op == "neg":
        return is_plain(node.args[0])
    if node.op == "div":
        return all(is_plain(arg) and arg.op != "div" for arg in node.args)
    return node.op == "num"


def evaluated(node: Node, gold: Node) -> bool:
    """Whether an answer to a number gold is carried out as far as the gold is."""
    if names(node) or any(part.op in ("sum", "prod") for part in walk(node)):
        return False
    return not is_plain(gold) or not any(_arithmetic(part) for part in walk(node))


def _arithmetic(node: Node) -> bool:
    """Integer arithmetic that was left to the reader. Fractions, roots and logarithms may stay; so may long powers."""
    if node.op in ("add", "mul"):
        rational = [arg for arg in node.args if _rational(arg)]
        return len(rational) > 1 and not _scientific(node)
    if node.op == "div":
        return any(_rational(arg) and not is_plain(arg) and _short(arg) for arg in node.args)
    if node.op == "pow":
        return all(_rational(arg) for arg in node.args) and not _ten(node.args[0]) and _short(node)
    if node.op == "fact" or (node.op == "fn" and node.text in ("binom", "mod", "gcd", "lcm", "max", "min")):
        return all(_rational(arg) for arg in node.args) and _short(node)
    return False


def _rational(node: Node) -> bool:
    return all(part.op in ("num", "neg", "div", "pow", "mul", "add", "fact") for part in walk(node)) and is_number(node)


def _short(node: Node) -> bool:
    try:
        value = exact(node, {})
    except (Inexact, Undefined, TooComplex):
        return False
    return max(value.numerator.bit_length(), value.denominator.bit_length()) < LONG_POWER_DIGITS * 3.33


def _ten(node: Node) -> bool:
    return node.op == "num" and node.value == 10


def _scientific(node: Node) -> bool:
    return node.op == "mul" and len(node.args) == 2 and node.args[1].op == "pow" and _ten(node.args[1].args[0])


def simplified(node: Node) -> bool:
    """Carried out, in lowest terms, and no square left under a square root."""
    return not any(_arithmetic(part) or _reducible(part) for part in walk(node))


def _reducible(node: Node) -> bool:
    if node.op == "div" and all(_integer(arg) is not None for arg in node.args):
        above, below = (_integer(arg) or 0 for arg in node.args)
        return below <= 1 or math.gcd(above, below) > 1
    if node.op == "fn" and node.text == "sqrt" and len(node.args) == 1:
        value = _integer(node.args[0])
        return value is not None and 0 <= value < 10**9 and any(value % (k * k) == 0 for k in range(2, 1001))
    return False


def _integer(node: Node) -> int | None:
    if node.op == "neg":
        inner = _integer(node.args[0])
        return -inner if inner is not None else None
    return int(node.value) if node.op == "num" and node.value is not None and node.value.denominator == 1 else None
