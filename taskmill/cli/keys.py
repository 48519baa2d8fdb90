"""API keys: create, list, revoke. Works on the database itself, so it needs no running service."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from taskmill.cli.options import Data, Json, settings_of_a_database

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    scope: Annotated[list[str], typer.Option("--scope", help="A scope, repeatable, such as `verify` or `train`.")],
    days: Annotated[int | None, typer.Option(help="Days until it expires. [default: never]")] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Make a key and print it once: only its hash is kept."""
    import json

    from service.auth.issue import issue_key
    from service.words import Scope
    from taskmill.compose import open_store

    known = {str(item) for item in Scope}
    if unknown := sorted(set(scope) - known):
        typer.echo(f"unknown scope {', '.join(unknown)}; there are {', '.join(sorted(known))}", err=True)
        raise typer.Exit(2)
    settings = settings_of_a_database(data)
    expires = datetime.now(UTC) + timedelta(days=days) if days else None
    with open_store(settings) as store, store.writing() as db:
        key_id, token = issue_key(db, name=name, scopes=scope, secret=settings.secret_bytes, expires_at=expires)
    typer.echo(json.dumps({"id": key_id, "key": token}) if as_json else token)


@app.command(name="list")
def list_keys(data: Data = None, as_json: Json = False) -> None:
    """List the keys, without their secrets."""
    import json

    from service.store import keys
    from taskmill.compose import open_store

    with open_store(settings_of_a_database(data)) as store, store.reading() as db:
        rows = [
            {
                "id": row.id,
                "name": row.name,
                "scopes": row.scopes,
                "created_at": row.created_at.isoformat(),
                "expires_at": row.expires_at.isoformat() if row.expires_at else None,
                "revoked_at": row.revoked_at.isoformat() if row.revoked_at else None,
            }
            for row in keys.every(db)
        ]
    if as_json:
        typer.echo(json.dumps(rows))
        return
    for row in rows:
        state = "revoked" if row["revoked_at"] else "valid"
        typer.echo(f"{row['id']}  {state:8}{row['name']}  {' '.join(row['scopes'] or ())}")


@app.command()
def revoke(key_id: str, data: Data = None) -> None:
    """Revoke a key: from now on it opens nothing."""
    from service.store import keys
    from taskmill.compose import open_store

    with open_store(settings_of_a_database(data)) as store, store.writing() as db:
        if not keys.revoke(db, key_id):
            typer.echo(f"there is no key {key_id}; `taskmill keys list` shows them", err=True)
            raise typer.Exit(1)
    typer.echo(f"{key_id} is revoked")
