"""Plain data between two processes that do not trust each other, as JSON. Standard library only: it runs in boxes.

JSON carries None, booleans, finite floats, text and small integers as they are; everything else is a list whose first
item is a tag. Subclasses are read with the base class's methods, so an object's own `__eq__`, `__iter__` or `__str__`
never gets a say. What is neither plain data nor one of a few standard containers is offered to the caller, who may
share it as a handle; else it is `NotPlain`. Reading builds values from checked parts only: nothing is evaluated,
imported by name or unpickled.

Not covered: two names for one list. Data is copied: a change on one side is not seen on the other.
"""

import builtins
import collections
import math
import operator
import sys
from collections.abc import Callable, Iterable
from typing import Any

DEPTH = 200
NODES = 1_000_000
"""Most values in one message; a list that holds itself twice would double at each level."""
SMALL = 1 << 62

Token = Any
Share = Callable[[Any], list[Any] | None]
Adopt = Callable[[list[Any]], Any]


class NotPlain(Exception):
    """A value that cannot be sent; the text names its type or its fault."""


class BadData(Exception):
    """What arrived is not what the other side of this codec would have sent."""


_BUILTINS = """
    abs all any ascii bin bool bytearray bytes callable chr complex dict divmod enumerate filter float format frozenset
    hash hex int isinstance issubclass iter len list map max min next object oct ord pow range repr reversed round set
    slice sorted str sum tuple type zip Ellipsis NotImplemented
"""


def _named() -> dict[str, Any]:
    """Pure functions, types and exceptions that both sides have: they cross by name."""
    found: dict[str, Any] = {f"builtins.{name}": getattr(builtins, name) for name in _BUILTINS.split()}
    for module in (operator, math):
        members = vars(module).items()
        found.update({f"{module.__name__}.{k}": v for k, v in members if callable(v) and not k.startswith("_")})
    for kind in (str, bytes, int, float, list, tuple, dict, set, frozenset):
        method = type(str.upper)
        names = [k for k, v in vars(kind).items() if type(v) is method]
        found.update({f"{kind.__name__}.{k}": getattr(kind, k) for k in names})
    for name, value in vars(builtins).items():
        if isinstance(value, type) and issubclass(value, Exception):
            found[f"builtins.{name}"] = value
    return found


NAMED = _named()
NAMES = {id(value): name for name, value in NAMED.items()}


# ── writing ──


class Encoder:
    """Encodes one message; `share` turns what is not plain into a token, or refuses with None."""

    def __init__(self, share: Share) -> None:
        self._share = share
        self._left = NODES

    def encode(self, value: Any, depth: int = 0) -> Token:
        """The token of a value.

        Raises:
            NotPlain: it is no plain data and was refused, or is too deep or too big.
        """
        kind = type(value)
        if value is None or kind is bool or kind is str:
            return value
        if kind is int and -SMALL < value < SMALL:
            return value
        self._left -= 1
        if depth > DEPTH:
            raise NotPlain(f"nested deeper than {DEPTH}")
        if self._left < 0:
            raise NotPlain(f"more than {NODES} values")
        for base in kind.__mro__:
            writer = _WRITERS.get(base)
            if writer is not None:
                return writer(self, value, depth + 1)
        name = NAMES.get(id(value))
        if name is not None:
            return ["n", name]
        found = _of_module(self, value, kind, depth + 1) or self._share(value)
        if found is None:
            raise NotPlain(kind.__name__)
        return found

    def all(self, values: Iterable[Any], depth: int) -> list[Token]:
        found: list[Token] = []
        for value in values:
            if len(found) > self._left:
                raise NotPlain(f"more than {NODES} values")
            found.append(self.encode(value, depth))
        self._left -= len(found)
        return found


def _write_int(encoder: Encoder, value: Any, depth: int) -> Token:
    exact = int.__int__(value)
    return exact if -SMALL < exact < SMALL else ["i", hex(exact)]


def _write_float(encoder: Encoder, value: Any, depth: int) -> Token:
    exact = float.__float__(value)
    return exact if math.isfinite(exact) else ["f", repr(exact)]


def _write_tuple(encoder: Encoder, value: Any, depth: int) -> Token:
    items = encoder.all(tuple.__iter__(value), depth)
    fields = getattr(type(value), "_fields", None) if type(value) is not tuple else None
    if type(fields) is tuple and len(fields) == len(items) and all(type(name) is str for name in fields):
        return ["record", type(value).__name__, list(fields), items]
    return ["t", items]


def _write_dict(encoder: Encoder, value: Any, depth: int) -> Token:
    return ["d", _pairs(encoder, dict.items(value), depth)]


def _pairs(encoder: Encoder, items: Iterable[tuple[Any, Any]], depth: int) -> list[Token]:
    return [encoder.all(pair, depth) for pair in items]


def _write_default(encoder: Encoder, value: Any, depth: int) -> Token:
    factory = NAMES.get(id(value.default_factory))
    pairs = _pairs(encoder, dict.items(value), depth)
    return ["defaultdict", factory, pairs] if factory else ["d", pairs]


def _write_deque(encoder: Encoder, value: Any, depth: int) -> Token:
    return ["deque", encoder.all(collections.deque.__iter__(value), depth), value.maxlen]


def _write_range(encoder: Encoder, value: Any, depth: int) -> Token:
    return ["range", encoder.all((value.start, value.stop, value.step), depth)]


def _write_slice(encoder: Encoder, value: Any, depth: int) -> Token:
    return ["slice", encoder.all((value.start, value.stop, value.step), depth)]


_WRITERS: dict[type, Callable[[Encoder, Any, int], Token]] = {
    str: lambda e, v, d: str.__str__(v),
    int: _write_int,
    float: _write_float,
    complex: lambda e, v, d: ["c", e.all((complex.__complex__(v).real, complex.__complex__(v).imag), d)],
    bytes: lambda e, v, d: ["b", bytes.hex(v)],
    bytearray: lambda e, v, d: ["ba", bytearray.hex(v)],
    list: lambda e, v, d: ["l", e.all(list.__iter__(v), d)],
    tuple: _write_tuple,
    set: lambda e, v, d: ["s", e.all(set.__iter__(v), d)],
    frozenset: lambda e, v, d: ["fs", e.all(frozenset.__iter__(v), d)],
    dict: _write_dict,
    collections.OrderedDict: lambda e, v, d: ["odict", _pairs(e, collections.OrderedDict.items(v), d)],
    collections.Counter: lambda e, v, d: ["counter", _pairs(e, dict.items(v), d)],
    collections.defaultdict: _write_default,
    collections.deque: _write_deque,
    type({}.keys()): lambda e, v, d: ["keys", e.all(v, d)],
    type({}.values()): lambda e, v, d: ["values", e.all(v, d)],
    type({}.items()): lambda e, v, d: ["items", _pairs(e, v, d)],
    range: _write_range,
    slice: _write_slice,
}


def _of_module(encoder: Encoder, value: Any, kind: type, depth: int) -> Token | None:
    """Numbers and times of the standard library; a module that was never imported has no values."""
    for module, name, parts in _MODULED:
        found = getattr(sys.modules.get(module), name, None)
        if found is not None and kind is found:
            return [f"{module}.{name}", encoder.all(parts(value), depth)]
    return None


_MODULED: tuple[tuple[str, str, Callable[[Any], tuple[Any, ...]]], ...] = (
    ("fractions", "Fraction", lambda v: (v.numerator, v.denominator)),
    ("decimal", "Decimal", lambda v: (str(v),)),
    ("datetime", "datetime", lambda v: (v.isoformat(),)),
    ("datetime", "date", lambda v: (v.isoformat(),)),
    ("datetime", "time", lambda v: (v.isoformat(),)),
    ("datetime", "timedelta", lambda v: (v.days, v.seconds, v.microseconds)),
)


# ── reading ──


class Decoder:
    """Decodes one message; `adopt` makes something of the tokens that are not plain data."""

    def __init__(self, adopt: Adopt) -> None:
        self._adopt = adopt

    def decode(self, token: Token) -> Any:
        """The value of a token.

        Raises:
            BadData: the token is not one that `Encoder` makes.
        """
        try:
            return self._value(token, 0)
        except BadData:
            raise
        except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, RecursionError) as error:
            raise BadData(type(error).__name__) from error

    def _value(self, token: Token, depth: int) -> Any:
        if token is None or type(token) in (bool, int, float, str):
            return token
        if type(token) is not list or not token or type(token[0]) is not str or depth > DEPTH + 2:
            raise BadData("no token")
        reader = _READERS.get(token[0])
        if reader is not None:
            return reader(self, token, depth + 1)
        return self._adopt(token)

    def all(self, tokens: Token, depth: int) -> list[Any]:
        if type(tokens) is not list:
            raise BadData("no list")
        return [self._value(token, depth) for token in tokens]

    def pairs(self, tokens: Token, depth: int) -> list[tuple[Any, Any]]:
        if type(tokens) is not list:
            raise BadData("no list")
        return [(key, value) for key, value in (self.all(pair, depth) for pair in tokens)]


def _texts(token: Token, count: int) -> None:
    if len(token) != count or any(type(part) is not str for part in token):
        raise BadData("no text")


def _read_int(decoder: Decoder, token: Token, depth: int) -> Any:
    _texts(token, 2)
    return int(token[1], 16)


def _read_float(decoder: Decoder, token: Token, depth: int) -> Any:
    return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[token[1]]


def _read_record(decoder: Decoder, token: Token, depth: int) -> Any:
    _, name, fields, items = token
    values = decoder.all(items, depth)
    if type(fields) is not list or len(fields) != len(values) or type(name) is not str:
        raise BadData("no record")
    return record_type(name, tuple(fields))(values)


_records: dict[tuple[Any, ...], Any] = {}


def record_type(name: str, fields: tuple[Any, ...]) -> Any:
    """A tuple with names, like `namedtuple` but built without evaluating text."""
    if (name, fields) in _records:
        return _records[name, fields]
    for field in fields:
        if type(field) is not str or not field.isidentifier() or field.startswith("_"):
            raise BadData("no field name")
    members: dict[str, Any] = {field: property(operator.itemgetter(i)) for i, field in enumerate(fields)}
    members["__slots__"] = ()
    members["_fields"] = fields
    members["_asdict"] = lambda self: dict(zip(fields, self, strict=True))
    members["__repr__"] = lambda self: (
        name + "(" + ", ".join(f"{field}={value!r}" for field, value in zip(fields, self, strict=True)) + ")"
    )
    return _records.setdefault((name, fields), type("record", (tuple,), members))


def _read_named(decoder: Decoder, token: Token, depth: int) -> Any:
    return NAMED[token[1]]


def _read_deque(decoder: Decoder, token: Token, depth: int) -> Any:
    if token[2] is not None and type(token[2]) is not int:
        raise BadData("no length")
    return collections.deque(decoder.all(token[1], depth), token[2])


def _read_range(decoder: Decoder, token: Token, depth: int) -> Any:
    return range(*(operator.index(part) for part in decoder.all(token[1], depth)))


def _read_complex(decoder: Decoder, token: Token, depth: int) -> Any:
    real, imaginary = decoder.all(token[1], depth)
    if type(real) is not float or type(imaginary) is not float:
        raise BadData("no complex")
    return complex(real, imaginary)


def _read_fraction(decoder: Decoder, token: Token, depth: int) -> Any:
    from fractions import Fraction

    above, below = decoder.all(token[1], depth)
    return Fraction(operator.index(above), operator.index(below))


def _read_decimal(decoder: Decoder, token: Token, depth: int) -> Any:
    from decimal import Decimal, InvalidOperation

    (text,) = decoder.all(token[1], depth)
    if type(text) is not str:
        raise BadData("no decimal")
    try:
        return Decimal(text)
    except InvalidOperation as error:
        raise BadData("no decimal") from error


def _read_time(decoder: Decoder, token: Token, depth: int) -> Any:
    import datetime

    parts = decoder.all(token[1], depth)
    kind = getattr(datetime, token[0].partition(".")[2])
    if kind is datetime.timedelta:
        return kind(*(operator.index(part) for part in parts))
    return kind.fromisoformat(*parts)


_READERS: dict[str, Callable[[Decoder, Token, int], Any]] = {
    "i": _read_int,
    "f": _read_float,
    "c": _read_complex,
    "b": lambda r, t, d: bytes.fromhex(t[1]),
    "ba": lambda r, t, d: bytearray.fromhex(t[1]),
    "l": lambda r, t, d: r.all(t[1], d),
    "t": lambda r, t, d: tuple(r.all(t[1], d)),
    "s": lambda r, t, d: set(r.all(t[1], d)),
    "fs": lambda r, t, d: frozenset(r.all(t[1], d)),
    "d": lambda r, t, d: dict(r.pairs(t[1], d)),
    "odict": lambda r, t, d: collections.OrderedDict(r.pairs(t[1], d)),
    "counter": lambda r, t, d: collections.Counter(dict(r.pairs(t[1], d))),
    "defaultdict": lambda r, t, d: collections.defaultdict(NAMED[t[1]], r.pairs(t[2], d)),
    "deque": _read_deque,
    "keys": lambda r, t, d: dict.fromkeys(r.all(t[1], d)).keys(),
    "values": lambda r, t, d: dict(enumerate(r.all(t[1], d))).values(),
    "items": lambda r, t, d: dict(r.pairs(t[1], d)).items(),
    "range": _read_range,
    "slice": lambda r, t, d: slice(*r.all(t[1], d)),
    "record": _read_record,
    "n": _read_named,
    "fractions.Fraction": _read_fraction,
    "decimal.Decimal": _read_decimal,
    "datetime.datetime": _read_time,
    "datetime.date": _read_time,
    "datetime.time": _read_time,
    "datetime.timedelta": _read_time,
}
