"""Values of expression trees: exact fractions where there are any, else many digits at chosen points.

Sizes are estimated by logarithms before anything is computed. Points are fixed: the same trees always compare alike.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from verifiers.expression import Node
from verifiers.numbers import MAX_POWER_DIGITS, TooComplex, power

MAX_TERMS = 1_000
MAX_INEXACT_EXPONENT = 20_000
_DIGITS = 60

Env = Mapping[str, Fraction]


class Undefined(ArithmeticError):
    """The expression has no value there: a division by zero, a logarithm of zero."""


class Inexact(ArithmeticError):
    """The value is not a fraction, or no way to compute it as one is known."""


def names(node: Node) -> frozenset[str]:
    """The free names of a tree."""
    if node.op == "name":
        return frozenset((node.text,))
    found = frozenset[str]().union(*(names(arg) for arg in node.args)) if node.args else frozenset[str]()
    return found - {node.text} if node.op in ("sum", "prod") else found


def walk(node: Node) -> Iterator[Node]:
    """The tree's nodes, parents first."""
    yield node
    for arg in node.args:
        yield from walk(arg)


def exact(node: Node, env: Env) -> Fraction:
    """The value as a fraction.

    Raises:
        Inexact: it is not rational, or not known to be. Undefined: there is none. TooComplex: it is too long.
    """
    if node.op == "num" and node.value is not None:
        return node.value
    if node.op == "name":
        if node.text not in env:
            raise Inexact(node.text)
        return env[node.text]
    reader = _EXACT.get(node.op)
    if reader is None:
        raise Inexact(node.op)
    value = reader(node, env)
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_POWER_DIGITS * 3.33:
        raise TooComplex("value")
    return value


def _add(node: Node, env: Env) -> Fraction:
    return sum((exact(arg, env) for arg in node.args), Fraction(0))


def _mul(node: Node, env: Env) -> Fraction:
    product = Fraction(1)
    for arg in node.args:
        product *= exact(arg, env)
        if max(product.numerator.bit_length(), product.denominator.bit_length()) > MAX_POWER_DIGITS * 3.33:
            raise TooComplex("product")
    return product


def _div(node: Node, env: Env) -> Fraction:
    above, below = (exact(arg, env) for arg in node.args)
    if not below:
        raise Undefined("division by zero")
    return above / below


def _neg(node: Node, env: Env) -> Fraction:
    return -exact(node.args[0], env)


def _pow(node: Node, env: Env) -> Fraction:
    base, exponent = (exact(arg, env) for arg in node.args)
    if exponent.denominator != 1:
        return _rational_root(power_of(base, exponent.numerator), exponent.denominator)
    return power_of(base, exponent.numerator)


def power_of(base: Fraction, exponent: int) -> Fraction:
    """`base ** exponent`, refused when it would be too long."""
    if not base and exponent <= 0:
        raise Undefined("a power of zero")
    return Fraction(power(base, exponent))


def _rational_root(value: Fraction, degree: int) -> Fraction:
    if value < 0 or degree > 64 or degree < 1:
        raise Inexact("root")
    above, below = _integer_root(value.numerator, degree), _integer_root(value.denominator, degree)
    if above is None or below is None:
        raise Inexact("root")
    return Fraction(above, below)


def _integer_root(value: int, degree: int) -> int | None:
    if value < 2:
        return value
    if degree == 2:
        root = math.isqrt(value)
        return root if root * root == value else None
    low, high = 1, 1 << (value.bit_length() // degree + 1)
    while low < high:
        middle = (low + high) // 2
        if middle**degree < value:
            low = middle + 1
        else:
            high = middle
    return low if low**degree == value else None


def _factorial(node: Node, env: Env) -> Fraction:
    value = exact(node.args[0], env)
    if value.denominator != 1:
        raise Inexact("factorial")
    if value < 0:
        raise Undefined("factorial")
    if value > MAX_POWER_DIGITS or math.lgamma(float(value) + 1) / math.log(10) > MAX_POWER_DIGITS:
        raise TooComplex("factorial")
    return Fraction(math.factorial(int(value)))


def _binomial(node: Node, env: Env) -> Fraction:
    """Also for fractions above: the falling factorial over k!."""
    above, below = (exact(arg, env) for arg in node.args)
    if below.denominator != 1:
        raise Inexact("binomial")
    chosen = int(below)
    if above.denominator == 1 and 0 <= chosen <= above:
        chosen = min(chosen, int(above) - chosen)
    if chosen < 0:
        return Fraction(0)
    if chosen > MAX_TERMS or chosen * math.log10(abs(float(min(abs(above), Fraction(10**300)))) + 2) > MAX_POWER_DIGITS:
        raise TooComplex("binomial")
    value = Fraction(1)
    for i in range(chosen):
        value = value * (above - i) / (i + 1)
    return value


def _function(node: Node, env: Env) -> Fraction:
    reader = _EXACT_FUNCTIONS.get(node.text)
    if reader is None:
        raise Inexact(node.text)
    if node.text == "binom":
        return _binomial(node, env)
    return reader(*(exact(arg, env) for arg in node.args))


def _sqrt(value: Fraction, degree: Fraction = Fraction(2)) -> Fraction:
    if degree.denominator != 1 or degree < 2:
        raise Inexact("root")
    if value < 0 and degree % 2:
        return -_rational_root(-value, int(degree))
    return _rational_root(value, int(degree))


def _mod(value: Fraction, by: Fraction) -> Fraction:
    if not by:
        raise Undefined("mod 0")
    return value % by


def _integers(found: Callable[..., int]) -> Callable[..., Fraction]:
    def read(*values: Fraction) -> Fraction:
        if any(value.denominator != 1 for value in values):
            raise Inexact("integers")
        return Fraction(found(*(int(value) for value in values)))

    return read


def _series(node: Node, env: Env) -> Fraction:
    total = Fraction(0 if node.op == "sum" else 1)
    for at in _indices(node, env):
        term = exact(node.args[2], {**env, node.text: Fraction(at)})
        total = total + term if node.op == "sum" else total * term
        if max(total.numerator.bit_length(), total.denominator.bit_length()) > MAX_POWER_DIGITS * 3.33:
            raise TooComplex("series")
    return total


def _indices(node: Node, env: Env) -> range:
    low, high = exact(node.args[0], env), exact(node.args[1], env)
    if low.denominator != 1 or high.denominator != 1:
        raise Inexact("bounds")
    if high - low > MAX_TERMS:
        raise TooComplex("bounds")
    return range(int(low), int(high) + 1)


_EXACT: dict[str, Callable[[Node, Env], Fraction]] = {
    "add": _add, "mul": _mul, "div": _div, "neg": _neg, "pow": _pow, "fact": _factorial, "fn": _function,
    "sum": _series, "prod": _series,
}  # fmt: skip
_EXACT_FUNCTIONS: dict[str, Callable[..., Fraction]] = {
    "abs": abs, "floor": lambda value: Fraction(math.floor(value)), "ceil": lambda value: Fraction(math.ceil(value)),
    "sqrt": _sqrt, "mod": _mod, "binom": _mod, "max": max, "min": min, "gcd": _integers(math.gcd),
    "lcm": _integers(math.lcm), "cbrt": lambda value: _sqrt(value, Fraction(3)),
}  # fmt: skip


def approximate(node: Node, env: Env, digits: int = _DIGITS) -> Any:
    """The value as an mpmath complex number of so many digits.

    Raises:
        Undefined: there is none. TooComplex: it is out of all proportion.
    """
    mp = _context(digits)
    try:
        value = mp.mpmathify(_approximate(node, env, mp))
    except (ZeroDivisionError, ValueError, OverflowError, TypeError) as error:
        raise Undefined(type(error).__name__) from error
    if not mp.isfinite(value):
        raise Undefined("not finite")
    return value


@lru_cache(maxsize=8)
def _context(digits: int) -> Any:
    import mpmath  # 60 ms: only in a worker

    mp = mpmath.mp.clone()
    mp.dps = digits
    return mp


def _approximate(node: Node, env: Env, mp: Any) -> Any:
    if node.op == "const":
        return {"pi": mp.pi, "e": mp.e, "i": mp.j, "inf": mp.inf}[node.text]
    try:
        value = exact(node, env)
    except Inexact:
        return _inexact(node, env, mp)
    return mp.mpf(value.numerator) / value.denominator


def _inexact(node: Node, env: Env, mp: Any) -> Any:
    if node.op == "name":
        raise Undefined(node.text)
    if node.op in ("sum", "prod"):
        try:
            indices = _indices(node, env)
        except Inexact as error:
            raise Undefined("bounds") from error
        terms = [_approximate(node.args[2], {**env, node.text: Fraction(at)}, mp) for at in indices]
        return mp.fsum(terms) if node.op == "sum" else mp.fprod(terms)
    args = [_approximate(arg, env, mp) for arg in node.args]
    return _sized(_OPERATIONS[node.op if node.op != "fn" else node.text](mp, *args), mp)


def _sized(value: Any, mp: Any) -> Any:
    size = abs(value)
    if size and mp.isfinite(size) and abs(mp.mag(size)) > MAX_INEXACT_EXPONENT * 4:
        raise TooComplex("value")
    return value


def _raised(mp: Any, base: Any, exponent: Any) -> Any:
    if base and abs(exponent) * (abs(mp.mag(abs(base))) + 1) > MAX_INEXACT_EXPONENT * 4:
        raise TooComplex("power")
    return mp.power(base, exponent)


def _exponential(mp: Any, value: Any) -> Any:
    if abs(value) > MAX_INEXACT_EXPONENT * 2:
        raise TooComplex("exponential")
    return mp.exp(value)


def _root(mp: Any, value: Any, degree: Any = 2) -> Any:
    if degree != 2 and mp.im(value) == 0 and mp.re(value) < 0 and int(degree) == degree and int(degree) % 2:
        return -mp.root(-mp.re(value), int(degree))  # the real root of a negative number
    return mp.sqrt(value) if degree == 2 else mp.power(value, 1 / mp.mpmathify(degree))


def _gamma(mp: Any, value: Any) -> Any:
    if abs(value) > 5_000:
        raise TooComplex("factorial")
    return mp.factorial(value)


def _logarithm(mp: Any, value: Any, base: Any = None) -> Any:
    return mp.log(value) if base is None else mp.log(value) / mp.log(base)


def _plain(name: str) -> Callable[..., Any]:
    return lambda mp, *args: getattr(mp, name)(*args)


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": lambda mp, *args: mp.fsum(args),
    "mul": lambda mp, *args: mp.fprod(args),
    "div": lambda mp, a, b: a / b,
    "neg": lambda mp, a: -a,
    "pow": _raised,
    "exp": _exponential,
    "cis": lambda mp, a: _exponential(mp, mp.j * a),
    "fact": _gamma,
    "sqrt": _root,
    "cbrt": lambda mp, a: _root(mp, a, 3),
    "log": _logarithm,
    "ln": _logarithm,
    "lg": lambda mp, a: mp.log(a) / mp.log(10),
    "abs": lambda mp, a: abs(a),
    "arccot": lambda mp, a: mp.pi / 2 - mp.atan(a),
    "binom": _plain("binomial"),
    "sgn": _plain("sign"),
    **{name: _plain(name) for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "arg")},
    **{name: _plain(name) for name in ("floor", "ceil")},
    **{f"arc{name}": _plain(f"a{name}") for name in ("sin", "cos", "tan")},
    **{f"a{name}": _plain(f"a{name}") for name in ("sin", "cos", "tan")},
    "Re": _plain("re"),
    "Im": _plain("im"),
    "max": lambda mp, *args: max(args, key=mp.re),
    "min": lambda mp, *args: min(args, key=mp.re),
    "mod": lambda mp, a, b: mp.fmod(a, b),
}  # fmt: skip
