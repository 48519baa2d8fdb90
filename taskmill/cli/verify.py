"""Judge responses from a file, without a service."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

if TYPE_CHECKING:
    from contextlib import ExitStack

    from verifiers.contract import Case, Verdict
    from verifiers.engine import Engine

CHUNK = 256
_FIELDS = ("outcome", "reward", "process", "code", "extracted", "detail", "tier", "trust")


class _Line(NamedTuple):
    """One line of the input: its id and case, or what is wrong with it."""

    id: Any
    case: "Case | None"
    error: str


def verify(
    verifier: Annotated[str, typer.Option(help="Name of the verifier.")],
    source: Annotated[
        Path, typer.Option("--input", help="JSON lines of id, response, reference, params; `-` is standard input.")
    ],
    output: Annotated[Path | None, typer.Option(help="File to write to. [default: standard output]")] = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Worker processes, and boxes in use at once.")] = 2,
    backend: Annotated[
        str | None, typer.Option(envvar="TASKMILL_SANDBOX_BACKEND", help="`local` or `unisolated`. [default: local]")
    ] = None,
) -> None:
    """Judge each line and write one line for it, in order.

    A line may also have limits and files. A line that cannot be read is answered with its id and an error; the other
    lines are not touched.

    Exit codes: 0 every line has a verdict · 1 some line could not be read · 2 wrong usage · 3 no sandbox here.
    """
    import contextlib
    import sys

    from verifiers.registry import VERIFIERS

    if verifier not in VERIFIERS:
        typer.echo(f"no verifier {verifier!r}: one of {', '.join(sorted(VERIFIERS))}", err=True)
        raise typer.Exit(2)
    with contextlib.ExitStack() as stack:
        engine = _engine(verifier, workers, backend or "local", stack)
        try:
            lines = sys.stdin.buffer if str(source) == "-" else stack.enter_context(source.open("rb"))
            sink = sys.stdout if output is None else stack.enter_context(output.open("w", encoding="utf-8"))
        except OSError as error:
            typer.echo(f"{error.filename}: {error.strerror}", err=True)
            raise typer.Exit(2) from error
        bad = _judged(engine, verifier, _counted(lines, stack), sink)
    raise typer.Exit(1 if bad else 0)


def _engine(verifier: str, workers: int, backend: str, stack: "ExitStack") -> "Engine":
    """An engine, with a sandbox only where the verifier may need one."""
    from sandbox.contract import SandboxError
    from verifiers.engine import Engine
    from verifiers.registry import VERIFIERS

    cost = VERIFIERS[verifier].cost
    sandbox = None
    if cost == "box":
        from sandbox.backends import make_backend

        try:
            sandbox = make_backend(backend, workers)
            stack.callback(sandbox.close)
        except (SandboxError, ValueError) as error:
            if verifier != "composite":
                typer.echo(f"{error}\n`taskmill sandbox doctor` shows what is missing", err=True)
                raise typer.Exit(3) from error
    engine = Engine(sandbox, workers)
    stack.callback(engine.close)
    if cost == "ms":
        engine.warm()
    return engine


def _counted(lines: IO[bytes], stack: "ExitStack") -> Iterator[bytes]:
    """The lines, with a progress bar where a person watches."""
    import sys

    if not sys.stderr.isatty():
        return iter(lines)
    from rich.console import Console
    from rich.progress import Progress

    progress = stack.enter_context(Progress(console=Console(stderr=True), transient=True))
    return iter(progress.track(lines, total=None, description="judging"))


def _judged(engine: "Engine", verifier: str, lines: Iterator[bytes], sink: IO[str]) -> int:
    """Judge all lines, chunk by chunk; how many of them could not be read."""
    import itertools
    import json

    bad = 0
    numbers = itertools.count(1)
    while chunk := list(itertools.islice(lines, CHUNK)):
        read = [line for text in chunk if (line := _read(verifier, text, next(numbers))) is not None]
        verdicts = iter(engine.verify_many([line.case for line in read if line.case is not None]))
        for line in read:
            answer = {"error": line.error} if line.case is None else _shown(next(verdicts))
            bad += line.case is None
            sink.write(json.dumps({"id": line.id, **answer}) + "\n")
        sink.flush()
    return bad


def _shown(verdict: "Verdict") -> dict[str, Any]:
    return {name: getattr(verdict, name) for name in _FIELDS}


def _read(verifier: str, line: bytes, number: int) -> _Line | None:
    """One line as a case; None for a blank one."""
    import json

    from sandbox.contract import Limits
    from verifiers.contract import Case

    if not line.strip():
        return None
    name: Any = None
    try:
        data = json.loads(line)
        if not isinstance(data, dict):
            raise ValueError("must be an object")
        name = data.get("id")
        return _Line(
            name,
            Case(
                verifier,
                _mapping(data, "params"),
                _mapping(data, "reference"),
                _response(data),
                limits=Limits(**_mapping(data, "limits")),
                files=_mapping(data, "files"),
            ),
            "",
        )
    except (ValueError, TypeError, RecursionError) as error:
        return _Line(name or _id_in(line), None, f"line {number}: {error}")


def _id_in(line: bytes) -> str | None:
    """The id of a line that is no JSON, as far as one can be seen."""
    import re

    found = re.search(rb'"id"\s*:\s*"([^"\\]{1,200})"', line)
    return found[1].decode(errors="replace") if found else None


def _mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"{key} must be an object")
    return value


def _response(data: Mapping[str, Any]) -> Any:
    if "response" not in data and "trajectory" not in data:
        raise ValueError("response is missing")
    value = data.get("response", data.get("trajectory"))
    if value is not None and not isinstance(value, str | dict):
        raise ValueError("response must be text, an object or null")
    return value
