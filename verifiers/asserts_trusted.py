"""Runs in the trusted box: executes the setup and the assertions, and asks the candidate's process for results.

The names in `entries` are proxies. Every value that they give is plain data built here, so `==`, `len`, `sorted` and
whatever else an assertion does is decided by this process. Each assertion is reported by its number; what is not
reported does not hold. The standard library only.
"""

import json
import os
import sys
from typing import Any

from verifiers.asserts_codec import BadData, Encoder, NotPlain, Token
from verifiers.asserts_pytest import install
from verifiers.asserts_wire import OPERATIONS, Closed, Link, Peer, dumps, loads

CALLS = 100_000
"""Most frames from the candidate for one submission: an endless iterator ends here."""
RECURSION = 20_000


class Failure(BaseException):
    """The candidate has failed for good. No `except Exception` of an assertion may swallow it."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(code)
        self.code = code
        self.text = text


class Entry:
    """A function of the candidate."""

    def __init__(self, trusted: "Trusted", name: str) -> None:
        self._trusted = trusted
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._trusted.ask("call", self.__name__, *self._trusted.arguments(args, kwargs))


class Trusted(Peer):
    """Asks the candidate; answers when its code uses what came with the arguments."""

    accepted = frozenset(("__call__", "__next__", "send", "close"))
    # No comparison, no length, no truth: those would let the candidate decide an assertion.

    def __init__(self, link: Link) -> None:
        super().__init__()
        self._link = link
        self._frames = 0
        self.touched = False
        """Whether the candidate has had a part in the namespace: then nothing that goes wrong is the author's alone."""
        self.failure: Failure | None = None
        self.raised: list[BaseException] = []

    def send(self, message: list[Any]) -> None:
        self._link.write(b"C" + dumps(message))

    def receive(self) -> list[Any]:
        self._frames += 1
        self.touched = self.touched or self._frames > 1  # the first one answers `load`
        if self._frames > CALLS:
            raise self._failed("calls", f"more than {CALLS} calls")
        found: list[Any] = loads(self._link.read())
        return found

    def _failed(self, code: str, text: str) -> Failure:
        self.failure = self.failure or Failure(code, text)
        return self.failure

    def ask(self, question: str, *rest: Any) -> Any:
        if self.failure is not None:
            raise self.failure
        try:
            return super().ask(question, *rest)
        except BadData as error:
            raise self._failed("bad_frame", str(error)) from error

    def error(self, frame: list[Any]) -> BaseException:
        found = super().error(frame)
        self.raised.append(found)
        return found

    def fatal(self, frame: list[Any]) -> BaseException:
        code = frame[2] if frame[2] in ("not_plain_data", "exception") else "bad_frame"
        return self._failed(code, str(frame[3])[:200] if len(frame) > 3 else "")

    def offer(self, value: Any) -> frozenset[str] | None:
        kind = type(value)
        if hasattr(kind, "__next__") and hasattr(kind, "__iter__"):
            return frozenset(("__next__", *(name for name in ("send", "close") if hasattr(kind, name))))
        found = {name: getattr(kind, name, None) for name in OPERATIONS if name.startswith("__")}
        return frozenset(name for name, use in found.items() if use and use is not getattr(object, name, None))

    def token(self, value: Any) -> list[Any] | None:
        return ["entry", value.__name__] if type(value) is Entry else super().token(value)

    def answer(self, frame: list[Any]) -> None:
        if frame[0] != "use":
            raise BadData("a question that is not asked here")
        turn, use = frame[1], self.question(frame)
        if type(turn) is not int:
            raise BadData("no turn")
        try:
            result = use.run()
        except StopIteration as error:
            ended = use.operation in ("__next__", "send")
            self.send(["stop", turn, self.encoded(error.value)] if ended else self.error_frame(turn, error))
        except Exception as error:  # noqa: BLE001 a callback's exception belongs to who called it
            self.send(self.error_frame(turn, error))
        else:
            self._answer(turn, result)

    def _answer(self, turn: int, result: Any) -> None:
        try:
            token: Token = Encoder(self.token).encode(result)
        except NotPlain as error:
            self.send(self.error_frame(turn, TypeError(f"a callback's result cannot be sent: {error}")))
        else:
            self.send(["ok", turn, token])

    # ── what this process is for ──

    def report(self, **facts: Any) -> None:
        self._link.write(b"R" + json.dumps(facts).encode())

    def load(self, entries: list[str]) -> dict[str, Any] | None:
        """The names that the assertions may use; None when the candidate could not be loaded."""
        try:
            found = self.ask("load", entries)
        except Exception as error:  # noqa: BLE001 the candidate's import raised it
            self.report(at="load", code="exception", error=type(error).__name__, text=str(error)[:500])
            return None
        if type(found) is tuple and len(found) == 2 and found[0] == "compile":
            self.report(at="load", code="compile", error=str(found[1])[:100], text="")
            return None
        if type(found) is not list or len(found) != len(entries):
            raise self._failed("bad_frame", "no entries")
        space: dict[str, Any] = {"__name__": "asserts"}
        for name, item in zip(entries, found, strict=True):
            if type(item) is not tuple or len(item) != 2 or item[0] == "missing":
                self.report(at="load", code="no_entry", error="", text=name)
                return None
            space[name] = Entry(self, name) if item[0] == "call" else item[1]
            self.touched = self.touched or item[0] != "call"
        return space

    def run(self, at: str, number: int, source: str, space: dict[str, Any]) -> bool:
        """Execute one statement of the author and report it."""
        code, error, text = "ok", "", ""
        try:
            exec(compile(source, f"<{at} {number}>", "exec", dont_inherit=True), space)  # noqa: S102 the author's text
        except Failure:
            pass
        except BaseException as found:  # noqa: BLE001 the boundary: whatever ends an assertion is reported
            code, error, text = self._blame(at, found), type(found).__name__, str(found)[:500]
        if self.failure is not None:  # also when a bare `except` of the author has swallowed it
            code, error, text = self.failure.code, "", self.failure.text
        self.report(at=at, id=number, code=code, error=error, text=text)
        return code == "ok"

    def _blame(self, at: str, found: BaseException) -> str:
        """`exception` when it came from the candidate, `setup` when only the author can be the cause, else `wrong`."""
        seen: BaseException | None = found
        while seen is not None:
            if any(seen is raised for raised in self.raised):
                return "exception"
            seen = seen.__cause__
        return "setup" if at == "setup" and not self.touched else "wrong"


def main() -> None:
    link = Link(3)
    sys.setrecursionlimit(RECURSION)
    sys.path[0] = os.path.dirname(sys.argv[1])
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 what assertions print is nobody's business
    install()
    task = json.loads(link.read())
    trusted = Trusted(link)
    try:
        _judge(trusted, task)
    except Failure as failure:
        trusted.report(at="load", code=failure.code, error="", text=failure.text)
    except Closed:
        os._exit(1)
    os._exit(0)


def _judge(trusted: Trusted, task: dict[str, Any]) -> None:
    space = trusted.load(task["entries"])
    if space is None or not trusted.run("setup", 0, task["setup"], space):
        return
    for number, source in enumerate(task["asserts"]):
        if not trusted.run("assert", number, source, space):
            return
    trusted.report(at="end", count=len(task["asserts"]))


if __name__ == "__main__":
    main()
