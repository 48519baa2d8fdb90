"""Run one process of the service: the API or a worker."""

from typing import Annotated

import typer

from taskmill.cli.options import Data, settings_from

Lifeline = Annotated[int | None, typer.Option("--lifeline-fd", hidden=True)]


def api(
    data: Data = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on. [default: 127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on. [default: 8700]")] = None,
    lifeline_fd: Lifeline = None,
    listen_fd: Annotated[int | None, typer.Option("--listen-fd", hidden=True)] = None,
) -> None:
    """Run the API in this process. The database must be at the newest revision: `taskmill db upgrade`."""
    settings = settings_from(data, host=host, port=port)
    from taskmill.compose import serve_api
    from taskmill.lifeline import follow

    if lifeline_fd is not None:
        follow(lifeline_fd)
    raise typer.Exit(serve_api(settings, listen_fd))


def worker(data: Data = None, lifeline_fd: Lifeline = None) -> None:
    """Run a worker: it takes jobs from the database, and hints from the broker if one is set."""
    settings = settings_from(data)
    from taskmill.compose import serve_worker
    from taskmill.lifeline import follow

    if lifeline_fd is not None:
        follow(lifeline_fd)
    raise typer.Exit(serve_worker(settings))
