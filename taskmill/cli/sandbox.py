"""The sandbox: what it can hold on this machine."""

from typing import Annotated

import typer

from taskmill.cli.options import Json

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def root() -> None:
    pass


@app.command()
def doctor(
    backend: Annotated[
        str | None, typer.Option(envvar="TASKMILL_SANDBOX_BACKEND", help="`local` or `unisolated`. [default: local]")
    ] = None,
    as_json: Json = False,
) -> None:
    """Start a real box and say how each limit is held, which languages work, and what would add what is missing."""
    import json

    from sandbox.doctor import examine

    try:
        found = examine(backend or "local")
    except ValueError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from error
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        isolation = "isolated" if found["isolated"] else "NOT isolated"
        typer.echo(f"backend    {found['backend']}, {isolation}")
        typer.echo(f"languages  {', '.join(found['languages']) or 'none'}")
        for name, method in found["limits_enforced"].items():
            typer.echo(f"limit      {name} by {method}")
        for group in ("details", "machine"):
            for name, value in found[group].items():
                typer.echo(f"{group:10} {name}: {value}")
        for name, remedy in found["missing"].items():
            typer.echo(f"missing    {name}: {remedy}")
    if not found["languages"]:
        raise typer.Exit(3)
