"""Options that several commands share, and how they become settings."""

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.settings import Settings
    from taskmill_client import Client

Data = Annotated[Path | None, typer.Option("--data", help="Folder of all state. [default: .taskmill]")]
Url = Annotated[str, typer.Option("--url", envvar="TASKMILL_URL", help="Where the service listens.")]
Key = Annotated[str | None, typer.Option("--key", envvar="TASKMILL_KEY", help="API key; else `admin.key` of --data.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

DEFAULT_URL = "http://127.0.0.1:8700"


def settings_from(data: Path | None = None, **changes: object) -> "Settings":
    """The settings, with what the command line gave on top; put into the environment too, for child processes."""

    from pydantic import ValidationError

    from service.settings import Settings

    if data is not None:
        changes["data"] = data.resolve()
    for name, value in changes.items():
        if value is not None:
            os.environ[f"TASKMILL_{name.upper()}"] = str(value)
    try:
        return Settings()
    except ValidationError as error:
        for item in error.errors():
            typer.echo(f"setting TASKMILL_{'.'.join(map(str, item['loc'])).upper()}: {item['msg']}", err=True)
        raise typer.Exit(2) from error


def settings_of_a_database(data: Path | None) -> "Settings":
    """The settings, once it is sure that their database is there and at the newest revision."""
    from service.store.migrate import current, head

    settings = settings_from(data)
    if (found := current(settings.sqlalchemy_url)) != head():
        typer.echo(f"the database is at revision {found or 'none'}: run `taskmill db upgrade`", err=True)
        raise typer.Exit(1)
    return settings


@contextmanager
def service(url: str, key: str | None, data: Path | None) -> "Iterator[Client]":
    """A client of the running service; what it refuses is said in one line, with exit code 1."""
    from taskmill_client import Client, Patience
    from taskmill_client.errors import TaskmillError

    try:
        with Client(url, key_or_exit(key, data), patience=Patience(deadline_s=5)) as client:
            yield client
    except TaskmillError as error:
        typer.echo(f"{url}: {error}", err=True)
        raise typer.Exit(1) from error


def key_or_exit(key: str | None, data: Path | None) -> str:
    """The API key: as given, else the admin key that `taskmill up` wrote."""
    if key:
        return key
    path = (data or Path(os.environ.get("TASKMILL_DATA", ".taskmill"))) / "admin.key"
    if path.exists():
        return path.read_text().strip()
    typer.echo(f"no key: give --key, set TASKMILL_KEY, or start `taskmill up`, which writes {path}", err=True)
    raise typer.Exit(2)
