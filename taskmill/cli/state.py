"""How the service and this machine are: statistics, doctor."""

from typing import Annotated

import typer

from taskmill.cli.options import DEFAULT_URL, Data, Json, Key, Url, service, settings_from


def stats(
    facet: Annotated[str | None, typer.Argument(help="One facet of the record. [default: all]")] = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Print the statistics record: every number with its method, time and scope."""
    import json

    with service(url, key, data) as client:
        record = client.stats(facet)
    if as_json:
        typer.echo(json.dumps(record))
        return
    from taskmill.record_text import lines

    for line in lines(record):
        typer.echo(line)


def doctor(data: Data = None, as_json: Json = False) -> None:
    """Check this installation: names, database, isolation, optional parts. Exit 1 when something needed is broken."""
    import json

    from taskmill.health import checks

    found = checks(settings_from(data))
    if as_json:
        typer.echo(json.dumps([check._asdict() for check in found]))
    else:
        for check in found:
            typer.echo(f"{'ok  ' if check.ok else 'FAIL' if check.needed else 'none'}  {check.name}: {check.detail}")
    if any(check.needed and not check.ok for check in found):
        raise typer.Exit(1)
