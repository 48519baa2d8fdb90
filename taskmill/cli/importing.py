"""Send a file of tasks to the service."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from taskmill.cli.options import DEFAULT_URL, Data, Json, Key, Url, service


def import_tasks(
    file: Annotated[Path, typer.Argument(help="JSONL, one task a line as `POST /v1/tasks` takes it; .gz allowed.")],
    url: Url = DEFAULT_URL,
    key: Key = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Import tasks from a JSONL file. Bad lines are listed and lose no other line; exit 1 when there was one."""
    import json

    if not file.is_file():
        typer.echo(f"{file}: no such file", err=True)
        raise typer.Exit(2)
    with service(url, key, data) as client:
        summary: Mapping[str, Any] = {}
        for line in client.tasks.import_jsonl(file):
            if "summary" in line:
                summary = line["summary"]
            elif as_json:
                typer.echo(json.dumps(line))
            elif "problem" in line:
                problem = line["problem"]
                where = ", ".join(f"{e['pointer']}: {e['message']}" for e in problem.get("errors", ()))
                typer.echo(f"line {line['line']}: {where or problem['detail']}", err=True)
    typer.echo(json.dumps({"summary": summary}) if as_json else ", ".join(f"{n} {word}" for word, n in summary.items()))
    if summary.get("failed"):
        raise typer.Exit(1)
