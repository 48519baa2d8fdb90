"""Calls between two processes, each of which may hand the other things to call or to iterate.

One frame is 4 bytes of length and JSON. One side asks, the other answers; before it answers it may ask back, and so
on, like calls on one stack. A *handle* stands for an object that stays where it is: the other side gets a proxy whose
every use is a question. A side may use exactly the handles it was given, with exactly the operations they were given
with. Iterators are asked for one item at a time, so endless ones work and effects keep their order.
"""

import _thread
import json
import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from verifiers.asserts_codec import NAMED, BadData, Decoder, Encoder, Token

FRAME = 16 << 20
NESTED = 60
"""Most questions inside one another; each costs both sides some of their stacks."""
ERRORS = 1000
"""Most exceptions that are remembered, to be raised again as themselves when they come back."""


class Closed(Exception):
    """The other end of the channel is gone."""


class Link:
    """Frames over a descriptor."""

    def __init__(self, fd: int) -> None:
        self._fd = os.dup(fd)
        os.set_inheritable(self._fd, False)
        os.close(fd)

    def read(self) -> bytes:
        length = int.from_bytes(self._exactly(4), "big")
        if length > FRAME:
            raise BadData("a frame over its size")
        return self._exactly(length)

    def _exactly(self, count: int) -> bytes:
        parts = []
        while count:
            data = os.read(self._fd, min(count, 1 << 20))
            if not data:
                raise Closed
            parts.append(data)
            count -= len(data)
        return b"".join(parts)

    def write(self, data: bytes) -> None:
        view = memoryview(len(data).to_bytes(4, "big") + data)
        while view:
            view = view[os.write(self._fd, view) :]


_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False, allow_nan=False).encode


def dumps(message: Any) -> bytes:
    return _encode(message).encode()


def loads(data: bytes) -> Any:
    """The JSON of a frame.

    Raises:
        BadData: it is none, or over what the reader can hold.
    """
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadData("no JSON") from error


def _use(name: str) -> Callable[..., Any]:
    def use(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._peer.use(self._handle, name, args, kwargs)

    use.__name__ = name
    return use


OPERATIONS = frozenset(
    (
        *("__call__", "__iter__", "__next__", "__len__", "__getitem__", "__contains__", "__reversed__", "__bool__"),
        *("__hash__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "send", "close"),
    )
)


class Remote:
    """Stands for an object of the other side."""

    __slots__ = ("_handle", "_peer")

    def __init__(self, peer: "Peer", handle: int) -> None:
        self._peer = peer
        self._handle = handle


class Arguments(NamedTuple):
    args: list[Any]
    kwargs: dict[str, Any]


class Use(NamedTuple):
    """One use of something that was handed out."""

    thing: Any
    operation: str
    args: list[Any]
    kwargs: dict[str, Any]

    def run(self) -> Any:
        if self.operation == "__call__":
            return self.thing(*self.args, **self.kwargs)
        if self.operation.startswith("__"):  # on the type, as the interpreter does
            return getattr(type(self.thing), self.operation)(self.thing, *self.args)
        return getattr(self.thing, self.operation)(*self.args)


_kinds: dict[frozenset[str], type[Remote]] = {}


def _kind(operations: frozenset[str]) -> type[Remote]:
    """A proxy class with these methods and no others, so that a missing one is missed as in one process."""
    if operations not in _kinds:
        members: dict[str, Any] = {name: _use(name) for name in operations}
        members["__slots__"] = ()
        if "__next__" in operations:
            members["__iter__"] = lambda self: self
        _kinds[operations] = type("remote", (Remote,), members)
    return _kinds[operations]


class Peer:
    """One end: asks, answers, keeps what it has handed out. Subclasses say what is shared and what is accepted."""

    accepted: frozenset[str] = OPERATIONS
    """The operations with which the other side may hand something out."""

    def __init__(self) -> None:
        self.lock = _thread.RLock()
        self._turn = 0
        self._depth = 0
        self._given: dict[int, tuple[Any, frozenset[str]]] = {}
        self._numbers: dict[int, int] = {}
        self._proxies: dict[int, Remote] = {}
        self._errors: dict[int, BaseException] = {}

    # ── for subclasses ──

    def send(self, message: list[Any]) -> None:
        raise Closed

    def receive(self) -> list[Any]:
        raise Closed

    def offer(self, value: Any) -> frozenset[str] | None:
        """The operations with which a value may be handed out; None when it may not."""
        return None

    def answer(self, frame: list[Any]) -> None:
        """Answer a question; everything is sent from here."""
        raise Closed

    def fatal(self, frame: list[Any]) -> BaseException:
        """What to raise when the other side says that it cannot go on."""
        return Closed()

    # ── asking ──

    def use(self, handle: int, operation: str, args: Iterable[Any], kwargs: dict[str, Any]) -> Any:
        return self.ask("use", handle, operation, *self.arguments(args, kwargs))

    def arguments(self, args: Iterable[Any], kwargs: dict[str, Any]) -> list[Token]:
        encoder = Encoder(self.token)
        return [encoder.all(args, 0), [[key, encoder.encode(value)] for key, value in kwargs.items()]]

    def ask(self, question: str, *rest: Any) -> Any:
        with self.lock:
            if self._depth >= NESTED:
                raise RecursionError(f"more than {NESTED} calls between the two sides inside one another")
            self._depth += 1
            self._turn += 1
            turn = self._turn
            try:
                self.send([question, turn, *rest])
                return self._settled(turn)
            finally:
                self._depth -= 1

    def _settled(self, turn: int) -> Any:
        while True:
            frame = self.receive()
            if type(frame) is not list or len(frame) < 3 or type(frame[0]) is not str:
                raise BadData("no frame")
            if frame[0] in ("use", "call", "load"):
                self.answer(frame)
                continue
            if frame[1] != turn:
                raise BadData("an answer to another question")
            if frame[0] == "ok":
                return self.value(frame[2])
            if frame[0] == "stop":
                raise StopIteration(self.value(frame[2]))
            raise self.error(frame) if frame[0] == "error" else self.fatal(frame)

    # ── answering ──

    def question(self, frame: list[Any]) -> "Use":
        """What a `use` question asks.

        Raises:
            BadData: the other side may not ask it.
        """
        if len(frame) != 6 or type(frame[2]) is not int or frame[2] not in self._given:
            raise BadData("a handle that was not given")
        thing, operations = self._given[frame[2]]
        if type(frame[3]) is not str or frame[3] not in operations:
            raise BadData("a use that was not given")
        return Use(thing, frame[3], *self.given_arguments(frame[4], frame[5]))

    def given_arguments(self, args: Token, kwargs: Token) -> "Arguments":
        decoder = Decoder(self.adopt)
        named = dict(decoder.decode(["items", kwargs]))
        if any(type(key) is not str for key in named):
            raise BadData("no name of an argument")
        return Arguments(decoder.decode(["l", args]), named)

    # ── values ──

    def token(self, value: Any) -> list[Any] | None:
        """Share what is no plain data: as the other side's own, or as a handle."""
        if isinstance(value, Remote):
            return ["own", value._handle]
        operations = self.offer(value)
        if operations is None:
            return None
        number = self._numbers.setdefault(id(value), len(self._numbers) + 1)
        self._given[number] = (value, operations)
        return ["h", number, sorted(operations)]

    def encoded(self, value: Any) -> Token:
        return Encoder(self.token).encode(value)

    def value(self, token: Token) -> Any:
        return Decoder(self.adopt).decode(token)

    def adopt(self, token: list[Any]) -> Any:
        if token[0] == "own" and len(token) == 2 and type(token[1]) is int:
            return self._given[token[1]][0]
        if token[0] != "h" or len(token) != 3 or type(token[1]) is not int or type(token[2]) is not list:
            raise BadData("no token")
        if token[1] not in self._proxies:
            operations = frozenset(token[2])
            if not operations <= self.accepted:
                raise BadData("an operation that is not accepted")
            self._proxies[token[1]] = _kind(operations)(self, token[1])
        return self._proxies[token[1]]

    # ── exceptions: class names, most derived first, and arguments or text ──

    def error_frame(self, turn: int, error: BaseException) -> list[Any]:
        names = [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"]
        try:
            args = self.encoded(tuple(error.args))
        except Exception:  # noqa: BLE001 arguments that cannot be sent are left out, whatever is wrong with them
            args = None
        try:
            text = str(error)[:2000]
        except Exception:  # noqa: BLE001 a class of the other side may have any `__str__`
            text = ""
        number = len(self._errors) + 1
        if number <= ERRORS:
            self._errors[number] = error
        origin = getattr(error, "_remote_error", None)
        return ["error", turn, names, text, args, number, origin if type(origin) is int else None]

    def error(self, frame: list[Any]) -> BaseException:
        """The exception to raise: our own that has come back, else the first built-in one of the names."""
        if len(frame) != 7 or type(frame[2]) is not list or type(frame[3]) is not str or type(frame[5]) is not int:
            raise BadData("no exception")
        _, _, names, text, args, number, origin = frame
        if type(origin) is int and origin in self._errors:
            return self._errors[origin]
        values = self.value(args)
        made = _exception(names, text, values if type(values) is tuple else (text,))
        made._remote_error = number  # type: ignore[attr-defined]
        return made


def _exception(names: list[Any], text: str, args: tuple[Any, ...]) -> Exception:
    for name in names:
        kind = NAMED.get(f"builtins.{name}") if type(name) is str else None
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            continue
        for values in (args, (text,)):
            try:
                return kind(*values)
            except (TypeError, ValueError):
                continue
    return Exception(text)
