"""The task factory: list its generators, make tasks, gate a task."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from taskmill.cli.options import DEFAULT_URL, Data, Json, Key, Url, key_or_exit

if TYPE_CHECKING:
    from taskmill_client.types import Job

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Wait = Annotated[float, typer.Option(help="Longest wait in seconds; the job goes on when it is over.")]


@app.command(name="list")
def list_generators(as_json: Json = False) -> None:
    """List the generators with their domains and knobs."""
    import json

    from factory.registry import GENERATORS

    rows = [
        {
            "name": name,
            "version": generator.version,
            "domain": generator.domain,
            "needs_sandbox": generator.needs_sandbox,
            "knobs": generator.knobs_schema["properties"],
        }
        for name, generator in GENERATORS.items()
    ]
    if as_json:
        typer.echo(json.dumps(rows))
        return
    for row in rows:
        typer.echo(f"{row['name']:16}{row['domain']:16}{' '.join(_knob(*item) for item in row['knobs'].items())}")


def _knob(name: str, schema: dict[str, Any]) -> str:
    values = "|".join(schema["enum"]) if "enum" in schema else f"{schema['minimum']}..{schema['maximum']}"
    return f"{name}={schema['default']} ({values})"


@app.command()
def run(
    generator: Annotated[str, typer.Argument(help="Its name, as `taskmill factory list` prints it.")],
    accepted: Annotated[int, typer.Option(help="How many tasks are to become active.")] = 100,
    knob: Annotated[list[str] | None, typer.Option("--knob", help="A knob as NAME=VALUE; repeatable.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed, another order of candidates.")] = 0,
    source: Annotated[str | None, typer.Option(help="Package URL, such as pkg:pypi/more-itertools@11.2.1.")] = None,
    budget: Annotated[int | None, typer.Option(help="Most candidates to try. [default: 20 for each accepted]")] = None,
    min_yield: Annotated[float | None, typer.Option(help="Stop when a smaller share is accepted.")] = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
    data: Data = None,
    wait_s: Wait = 3600.0,
    as_json: Json = False,
) -> None:
    """File a generate job and follow it to its end.

    Exit codes: 0 the target was reached · 1 it was not · 2 wrong usage.
    """
    params: dict[str, Any] = {"generator": generator, "knobs": _knobs(knob or []), "seed": seed, "accepted": accepted}
    optional = {"source": source, "candidate_budget": budget, "min_yield": min_yield}
    params |= {name: value for name, value in optional.items() if value is not None}
    job = _followed("factory.generate", params, url, key_or_exit(key, data), wait_s, as_json)
    raise typer.Exit(0 if (job["result"] or {}).get("stop_reason") == "target_reached" else 1)


def gate(
    task: Annotated[str, typer.Argument(help="Id of the task.")],
    url: Url = DEFAULT_URL,
    key: Key = None,
    data: Data = None,
    wait_s: Wait = 600.0,
    as_json: Json = False,
) -> None:
    """Run the gates that a task requires and print its receipts.

    Exit codes: 0 it is active · 1 it is not · 2 wrong usage.
    """
    import json

    from taskmill_client import Client

    secret = key_or_exit(key, data)
    _followed("factory.gate", {"task_ids": [task]}, url, secret, wait_s, as_json=False, quiet=True)
    with Client(url, secret) as client:
        receipts, status = list(client.tasks.receipts(task)), client.tasks.get(task)["status"]
    if as_json:
        typer.echo(json.dumps({"id": task, "status": status, "receipts": receipts}))
    else:
        for row in receipts:
            typer.echo(f"{row['gate']:4}{row['result']:16}{row['code']:22}{row['detail']}")
        typer.echo(f"{task} is {status}")
    raise typer.Exit(0 if status == "active" else 1)


def _knobs(given: list[str]) -> dict[str, Any]:
    import json

    knobs: dict[str, Any] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals:
            typer.echo(f"--knob {item}: write NAME=VALUE", err=True)
            raise typer.Exit(2)
        try:
            knobs[name] = json.loads(value)
        except ValueError:
            knobs[name] = value
    return knobs


def _followed(
    kind: str, params: dict[str, Any], url: str, key: str, wait_s: float, as_json: bool, quiet: bool = False
) -> "Job":
    """File the job and wait for its end; a job that breaks is the command's failure."""
    import json

    from taskmill_client import Client
    from taskmill_client.errors import TaskmillError

    try:
        with Client(url, key) as client:
            job = client.jobs.create(kind, params)
            show = None if as_json or quiet else _show
            job = client.jobs.wait(job["id"], timeout_s=wait_s, on_progress=show)
    except TaskmillError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error
    if as_json:
        typer.echo(json.dumps(job))
    if job["status"] != "done":
        why = job["error"] or {}
        typer.echo(f"job {job['id']} is {job['status']}: {why.get('code', '')} {why.get('detail', '')}", err=True)
        raise typer.Exit(1)
    if not as_json and not quiet:
        typer.echo(f"job {job['id']} is done: {(job['result'] or {}).get('stop_reason', '')}")
    return job


_last: list[str] = []


def _show(job: "Job") -> None:
    """One line for each change of the counts."""
    counts = job["counts"]
    line = ", ".join(f"{counts[name]} {name}" for name in ("candidates", "active", "rejected") if name in counts)
    if line and line not in _last[-1:]:
        _last.append(line)
        typer.echo(line, err=True)
