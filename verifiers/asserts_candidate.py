"""Runs in the candidate's box: loads the candidate's file and calls into it for the assertions, which are elsewhere.

Nothing here is a secret and nothing here is trusted: the candidate's code shares this process and may do with it what
it likes. All it can reach by that is to send other values than it computed, which it could have returned anyway.

The file is imported as the module `main`, so a main part does not run and own classes can be pickled. The standard
library only.
"""

import functools
import os
import sys
import types
from collections.abc import Callable
from typing import Any

from verifiers.asserts_codec import NotPlain, Token
from verifiers.asserts_wire import Closed, Link, Peer, Use, dumps, loads

_FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.MethodWrapperType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    functools.partial,
)
_ROOM = 2_000
"""Frames for the codec on top of what the candidate's own depth of recursion has left."""


class Candidate(Peer):
    """Answers calls to the candidate's functions; asks when it uses what came with their arguments."""

    def __init__(self, link: Link, path: str) -> None:
        super().__init__()
        self._link = link
        self._path = path
        self._module = types.ModuleType("main")
        self._entries: dict[str, Any] = {}

    def send(self, message: list[Any]) -> None:
        self._link.write(dumps(message))

    def receive(self) -> list[Any]:
        found: list[Any] = loads(self._link.read())
        return found

    def serve(self) -> None:
        while True:
            with self.lock:
                frame = self.receive()
            self.answer(frame)

    def offer(self, value: Any) -> frozenset[str] | None:
        kind = type(value)
        if kind is types.GeneratorType:
            return frozenset(("__next__", "send", "close"))
        if hasattr(kind, "__next__") and hasattr(kind, "__iter__"):
            return frozenset(("__next__",))
        if isinstance(value, _FUNCTIONS):
            return frozenset(("__call__",))
        return None

    def adopt(self, token: list[Any]) -> Any:
        if token[0] == "entry":
            return self._entries[token[1]]
        return super().adopt(token)

    def answer(self, frame: list[Any]) -> None:
        turn = frame[1]
        try:
            reply = self._reply(frame)
        except Closed:
            raise
        except NotPlain as error:
            reply = ["fatal", turn, "not_plain_data", str(error)]
        except Exception as error:  # noqa: BLE001 whatever the candidate raises is its answer
            reply = self.error_frame(turn, error)
        except BaseException as error:  # noqa: BLE001 SystemExit and its like must not end this process as a success
            reply = ["fatal", turn, "exception", type(error).__name__]
        with self.lock:
            self.send(reply)

    def _reply(self, frame: list[Any]) -> list[Any]:
        if frame[0] == "load":
            return ["ok", frame[1], self._load(frame[2])]
        run = self._roomy(lambda: self._bound(frame))
        try:
            result = run()
        except StopIteration as error:
            if frame[0] == "use" and frame[3] in ("__next__", "send"):
                return ["stop", frame[1], self.encoded(error.value)]
            raise
        return ["ok", frame[1], self._roomy(lambda: self.encoded(result))]

    def _bound(self, frame: list[Any]) -> Callable[[], Any]:
        if frame[0] == "use":
            return self.question(frame).run
        found = self.given_arguments(frame[3], frame[4])
        return Use(self._entries[frame[2]], "__call__", found.args, found.kwargs).run

    def _roomy(self, work: Callable[[], Any]) -> Any:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(limit + _ROOM)
        try:
            return work()
        except RecursionError as error:
            raise NotPlain("nested too deep") from error
        finally:
            sys.setrecursionlimit(limit)

    def _load(self, names: list[str]) -> Token:
        """Import the file; say for each entry whether it can be called, is plain data, or is missing."""
        module = self._module
        module.__file__ = self._path
        sys.modules["main"] = module
        with open(self._path, "rb") as file:
            source = file.read()
        try:
            code = compile(source, self._path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return self.encoded(("compile", type(error).__name__))
        exec(code, module.__dict__)  # noqa: S102 this process exists to run the candidate's code
        return self.encoded([self._entry(name) for name in names])

    def _entry(self, name: str) -> tuple[str, Any]:
        found = getattr(self._module, name, self)
        if found is self and isinstance(solution := getattr(self._module, "Solution", None), type):
            found = getattr(solution(), name, self)
        if found is self:
            return "missing", None
        self._entries[name] = found
        return ("call", None) if callable(found) else ("value", found)


def main() -> None:
    link = Link(3)
    path = sys.argv[1]
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(path)
    sys.setrecursionlimit(sys.getrecursionlimit() + 20)  # the frames of this file below the candidate's own
    try:
        Candidate(link, path).serve()
    except Closed:
        os._exit(0)


if __name__ == "__main__":
    main()
