"""The second parser of `math`: an allow-listed grammar of expressions. Text in, a tree out; nothing is evaluated.

Numbers, names, `+ − * / ^`, fractions, roots, functions from a list, factorials, binomials, sums and products.
Not covered: integrals, limits, derivatives, vectors, piecewise definitions.
"""

from fractions import Fraction
from typing import NamedTuple

from verifiers.lexer import Malformed, Token, Unevaluated, UnknownWord, tokens

__all__ = ["Malformed", "Node", "Unevaluated", "UnknownWord", "number", "parse"]

MAX_DEPTH = 50


class Node(NamedTuple):
    """One node: `op` is num, name, const, add, neg, mul, div, pow, fact, fn, sum or prod."""

    op: str
    args: tuple["Node", ...] = ()
    text: str = ""
    value: Fraction | None = None


def parse(text: str) -> Node:
    """The tree of an expression.

    Raises:
        Malformed: it is not an expression of the grammar. Unevaluated: a kind of it that leaves work to the reader.
    """
    parser = _Parser(tokens(text))
    try:
        node = parser.sum_()
    except RecursionError as error:
        raise Malformed("nested too deeply") from error
    parser.take("end", "")
    return node


def number(value: int | Fraction) -> Node:
    """The node of a value."""
    return Node("num", value=Fraction(value))


class _Parser:
    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._at = 0
        self._depth = 0
        self._bars = 0

    # --- tokens

    def _is(self, *texts: str) -> bool:
        token = self._tokens[self._at]
        return token.kind == "op" and token.text in texts

    def _next(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def take(self, kind: str, text: str) -> None:
        token = self._tokens[self._at]
        if (token.kind, token.text) != (kind, text):
            raise Malformed(f"expected {text or kind}, found {token.text or token.kind}")
        self._at += 1

    # --- grammar, loosest first

    def sum_(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Malformed("nested too deeply")
        terms = [self._signed()]
        while self._is("+", "-"):
            negative = self._next().text == "-"
            term = self._signed()
            terms.append(Node("neg", (term,)) if negative else term)
        self._depth -= 1
        return terms[0] if len(terms) == 1 else Node("add", tuple(terms))

    def _signed(self) -> Node:
        negative = False
        while self._is("+", "-"):
            negative ^= self._next().text == "-"
        node = self._product()
        return Node("neg", (node,)) if negative else node

    def _product(self) -> Node:
        node = self._power()
        while True:
            if self._is("*"):
                self._next()
                node = _times(node, self._factor())
            elif self._is("/"):
                self._next()
                node = Node("div", (node, self._factor()))
            elif self._is("mod"):
                self._next()
                node = Node("fn", (node, self._factor()), "mod")
            elif self._starts_factor():
                node = _times(node, self._power())
            else:
                return node

    def _factor(self) -> Node:
        """A factor behind an explicit `*` or `/`, which may carry a sign of its own."""
        if self._is("-", "+"):
            negative = self._next().text == "-"
            node = self._power()
            return Node("neg", (node,)) if negative else node
        return self._power()

    def _starts_factor(self) -> bool:
        token = self._tokens[self._at]
        if token.kind == "num":
            return self._tokens[self._at - 1].kind != "num"  # `2 3` is not a product
        if token.kind in ("name", "fn"):
            return True
        if token.kind == "op" and token.text == "|":
            return self._bars == 0
        return token.kind == "op" and token.text in _OPENERS

    def _power(self) -> Node:
        return self._raised(self._postfixed(self._primary()))

    def _raised(self, base: Node) -> Node:
        if not self._is("^"):
            return base
        self._next()
        exponent = self._group() if self._is("{") else self._exponent()
        return self._postfixed(Node("pow", (base, exponent)))

    def _exponent(self) -> Node:
        """An exponent without braces: one signed primary; towers lean right."""
        negative = False
        while self._is("-", "+"):
            negative ^= self._next().text == "-"
        node = self._power()
        return Node("neg", (node,)) if negative else node

    def _postfixed(self, node: Node) -> Node:
        while self._is("!", "%", "°", "'"):
            sign = self._next().text
            if sign == "!":
                node = Node("fact", (node,))
            elif sign == "%":
                node = Node("div", (node, number(100)))
            elif sign == "°":
                node = Node("mul", (node, Node("div", (Node("const", text="pi"), number(180)))))
            elif node.op == "name":
                node = Node("name", text=node.text + "'")
            else:
                raise Malformed("a prime behind something that is no name")
        return node

    def _primary(self) -> Node:
        token = self._next()
        if token.kind == "num":
            return self._mixed(Node("num", value=Fraction(token.text)))
        if token.kind == "name":
            return self._name(token.text)
        if token.kind == "fn":
            return self._function(token.text)
        if token.kind == "op" and token.text in _OPENERS:
            return self._opened(token.text)
        if token.kind == "op" and token.text == "|" and self._bars == 0:
            self._bars += 1
            node = self.sum_()
            self.take("op", "|")
            self._bars -= 1
            return Node("fn", (node,), "abs")
        raise Malformed(f"unexpected {token.text or 'end'}")

    def _opened(self, text: str) -> Node:
        if text in ("(", "[", "{"):
            bars, self._bars = self._bars, 0
            node = self.sum_()
            self.take("op", {"(": ")", "[": "]", "{": "}"}[text])
            self._bars = bars
            return node
        if text in ("lfloor", "lceil"):
            node = self.sum_()
            self.take("op", "r" + text[1:])
            return Node("fn", (node,), text[1:])
        if text in ("pi", "inf"):
            return Node("const", text=text)
        if text in ("frac", "binom"):
            above, below = self._argument(), self._argument()
            return Node("div", (above, below)) if text == "frac" else Node("fn", (above, below), "binom")
        return self._iterated(text)

    def _mixed(self, whole: Node) -> Node:
        """`2\\frac{1}{2}` is two and a half: a whole number right before a proper fraction of numbers."""
        if not self._is("frac") or whole.value is None or whole.value.denominator != 1:
            return whole
        at = self._at
        self._next()
        above, below = self._argument(), self._argument()
        if above.op == below.op == "num" and above.value is not None and below.value is not None:
            if 0 < above.value < below.value:
                return number(whole.value + above.value / below.value)
            raise Malformed("a mixed number with an improper fraction")
        self._at = at
        return whole

    def _group(self) -> Node:
        self.take("op", "{")
        bars, self._bars = self._bars, 0
        node = self.sum_()
        self.take("op", "}")
        self._bars = bars
        return node

    def _argument(self) -> Node:
        """An argument of a command: a group, or one digit or letter."""
        if self._is("{"):
            return self._group()
        token = self._tokens[self._at]
        if token.kind == "num" and len(token.text) > 1 and token.text.isdigit():
            self._tokens[self._at] = Token("num", token.text[1:])
            return number(int(token.text[0]))
        self._next()
        if token.kind == "num":
            return Node("num", value=Fraction(token.text))
        if token.kind == "name":
            return self._name(token.text, subscripts=False)
        if token.kind == "op" and token.text == "pi":
            return Node("const", text="pi")
        raise Malformed("a command lacks its argument")

    def _name(self, text: str, *, subscripts: bool = True) -> Node:
        if subscripts and self._is("_"):
            self._next()
            subscript = self._subscript()
            if text == "C" and self._is("^"):  # C_n^k
                self._next()
                chosen = self._group() if self._is("{") else self._argument()
                return Node("fn", (subscript, chosen), "binom")
            return Node("name", text=f"{text}_{_shown(subscript)}")
        if text == "e":
            return Node("const", text="e")
        return Node("const", text="i") if text == "i" else Node("name", text=text)

    def _subscript(self) -> Node:
        if self._is("{"):
            return self._group()
        token = self._next()
        if token.kind == "num":
            return Node("num", value=Fraction(token.text))
        if token.kind == "name":
            return Node("name", text=token.text)
        raise Malformed("an odd subscript")

    def _function(self, text: str) -> Node:
        if text == "sqrt":
            return self._root()
        base: Node | None = None
        exponent: Node | None = None
        while self._is("_", "^"):
            if self._next().text == "_":
                base = self._group() if self._is("{") else self._argument()
            else:
                exponent = self._group() if self._is("{") else self._exponent_of_function()
        arguments = self._arguments(text)
        if base is not None:
            if text != "log":
                raise Malformed("a base where there is none")
            node = Node("fn", (*arguments, base), "log")
        else:
            node = Node("fn", arguments, text)
        if exponent is None:
            return node
        if exponent == Node("neg", (number(1),)):  # the inverse function, never the reciprocal
            if text not in ("sin", "cos", "tan", "cot"):
                raise Malformed("an inverse that the grammar does not know")
            return Node("fn", arguments, "arc" + text)
        return Node("pow", (node, exponent))

    def _exponent_of_function(self) -> Node:
        if self._is("-"):
            self._next()
            return Node("neg", (self._argument(),))
        return self._argument()

    def _arguments(self, text: str) -> tuple[Node, ...]:
        if self._is("(") or (self._is("{") and text != "abs"):
            closing = ")" if self._next().text == "(" else "}"
            bars, self._bars = self._bars, 0
            found = [self.sum_()]
            while self._is(","):
                self._next()
                found.append(self.sum_())
            self.take("op", closing)
            self._bars = bars
            if len(found) > 1 and text not in ("gcd", "lcm", "max", "min"):
                raise Malformed("too many arguments")
            return tuple(found)
        return (self._bare_argument(),)

    def _bare_argument(self) -> Node:
        """`\\sin 2x y` takes the product up to the next sign or function."""
        if self._tokens[self._at].kind == "fn":
            return self._power()
        node = self._power()
        while self._starts_factor() and self._tokens[self._at].kind in ("num", "name"):
            node = _times(node, self._power())
        if self._is("/") and self._tokens[self._at + 1].kind == "num" and node.op in ("const", "mul", "num"):
            self._next()
            node = Node("div", (node, self._primary()))  # \sin \pi/6
        return node

    def _root(self) -> Node:
        degree: Node | None = None
        if self._is("["):
            self._next()
            degree = self.sum_()
            self.take("op", "]")
        if self._is("("):
            self._next()
            inner = self.sum_()
            self.take("op", ")")
        elif self._is("pi"):
            self._next()
            inner = Node("const", text="pi")
        else:
            inner = self._argument_or_number()
        return Node("fn", (inner,) if degree is None else (inner, degree), "sqrt")

    def _argument_or_number(self) -> Node:
        token = self._tokens[self._at]
        before = self._tokens[self._at - 1]
        if token.kind == "num" and before.text == "sqrt":  # √12 and \sqrt 12 mean the root of twelve
            self._next()
            return Node("num", value=Fraction(token.text))
        return self._argument()

    def _iterated(self, text: str) -> Node:
        """`\\sum_{k=1}^{n} body`: (low, high, body), the index as text."""
        if text not in ("sum", "prod"):
            raise Malformed(f"unexpected {text}")
        self.take("op", "_")
        self.take("op", "{")
        index = self._next()
        self.take("op", "=")
        low = self.sum_()
        self.take("op", "}")
        self.take("op", "^")
        high = self._group() if self._is("{") else self._argument()
        if index.kind != "name":
            raise Malformed("an odd index")
        return Node(text, (low, high, self._product()), index.text)


_OPENERS = frozenset(("(", "[", "{", "frac", "binom", "pi", "inf", "lfloor", "lceil", "sum", "prod"))


def _times(left: Node, right: Node) -> Node:
    """A flat product: a long one must not become a deep tree."""
    return Node("mul", (*left.args, right) if left.op == "mul" else (left, right))


def _shown(node: Node) -> str:
    if node.op == "num" and node.value is not None:
        return str(node.value)
    if node.op in ("name", "const"):
        return node.text
    return node.op + ",".join(_shown(arg) for arg in node.args)
