"""Run one program in the sandbox, without a service."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taskmill.cli.options import Json

if TYPE_CHECKING:
    from sandbox.contract import ExecRequest, ExecResult


def execute(
    file: Annotated[Path, typer.Argument(help="The program; `-` reads it from standard input.")],
    args: Annotated[list[str] | None, typer.Argument(help="Arguments of the program, after `--`.")] = None,
    language: Annotated[str, typer.Option(help="python, bash, c, cpp or javascript.")] = "python",
    stdin: Annotated[Path | None, typer.Option(help="File that the program reads as its input.")] = None,
    wall: Annotated[float, typer.Option(help="Seconds it may take.")] = 10.0,
    cpu: Annotated[float | None, typer.Option(help="CPU seconds. [default: twice --wall]")] = None,
    memory: Annotated[int, typer.Option(help="Megabytes of memory.")] = 512,
    output: Annotated[int, typer.Option(help="Kilobytes of each output stream.")] = 1024,
    processes: Annotated[int, typer.Option(help="Processes and threads.")] = 32,
    disk: Annotated[int, typer.Option(help="Megabytes of each writable folder.")] = 64,
    fetch: Annotated[list[str] | None, typer.Option(help="File of the work directory to return with --json.")] = None,
    backend: Annotated[
        str | None, typer.Option(envvar="TASKMILL_SANDBOX_BACKEND", help="`local` or `unisolated`. [default: local]")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a program in the sandbox and print its output and status.

    Exit codes: 0 it ended with 0 · 1 any other status · 2 wrong usage · 3 no sandbox here.
    """
    from sandbox.contract import BadRequest, ExecRequest, Limits, SandboxError, UnsupportedLanguage

    try:
        limits = Limits(wall_s=wall, cpu_s=cpu, memory_mb=memory, output_kb=output, processes=processes, disk_mb=disk)
        request = ExecRequest(
            language,
            _text(file),
            stdin=_text(stdin) if stdin else "",
            args=args or (),
            limits=limits,
            fetch=fetch or (),
        )
        result = _run(request, backend or "local")
    except (BadRequest, UnsupportedLanguage, ValueError, OSError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from error
    except SandboxError as error:
        typer.echo(f"{error}\n`taskmill sandbox doctor` shows what is missing", err=True)
        raise typer.Exit(3) from error
    _print(result, as_json)
    raise typer.Exit(0 if result.status == "ok" else 1)


def _text(path: Path) -> str:
    """A file byte for byte, as text; line ends are kept."""
    import sys

    data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    return data.decode()


def _run(request: "ExecRequest", kind: str) -> "ExecResult":
    from sandbox.backends import make_backend

    sandbox = make_backend(kind, 1)
    try:
        return sandbox.run(request)
    finally:
        sandbox.close()


def _print(result: "ExecResult", as_json: bool) -> None:
    import dataclasses
    import json

    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(result)))
        return
    typer.echo(result.stdout, nl=False)
    typer.echo(result.stderr, nl=False, err=True)
    ending = "" if result.exit_code is None else f", exit code {result.exit_code}"
    ending = ending if result.signal is None else f", signal {result.signal}"
    facts = f"{result.wall_s:.2f} s, {result.cpu_s:.2f} s CPU, {result.memory_mb:.0f} MB"
    typer.echo(f"{result.status} ({result.stage}{ending}) in {facts}; backend {result.backend}", err=True)
