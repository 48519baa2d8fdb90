"""The database: bring it to the newest revision, say where it is."""

import typer

from taskmill.cli.options import Data, Json, settings_from

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.command()
def upgrade(data: Data = None) -> None:
    """Bring the database to the newest revision; makes an SQLite file where there is none."""
    from service.store.migrate import current
    from service.store.migrate import upgrade as run

    settings = settings_from(data)
    run(settings.sqlalchemy_url)
    typer.echo(f"the database is at revision {current(settings.sqlalchemy_url)}")


@app.command()
def status(data: Data = None, as_json: Json = False) -> None:
    """Say which revision the database is at and which one this version needs; exit 1 when they differ."""
    import json

    from service.store.migrate import current, head

    settings = settings_from(data)
    found, needed = current(settings.sqlalchemy_url), head()
    if as_json:
        typer.echo(json.dumps({"current": found, "head": needed}))
    else:
        typer.echo(f"at revision {found or 'none'}, newest is {needed}")
    if found != needed:
        typer.echo("run `taskmill db upgrade`", err=True)
        raise typer.Exit(1)
