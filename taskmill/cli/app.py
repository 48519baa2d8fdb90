"""The command line. Modules imported here import nothing but typer: `--help` answers within 200 ms.

Exit codes, everywhere: 0 done · 1 what was asked did not succeed · 2 wrong usage or input · 3 a needed part is missing
(the message names the command that adds it).
"""

import typer

from taskmill.cli import db, execute, factory, importing, keys, sandbox, serve, state, train, up, verify

# Rich would cost half of the help's time budget, so typer's use of it is off.
app = typer.Typer(
    name="taskmill",
    help="Task factory and verifiable-reward data service for RL post-training of language models.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    epilog="Exit codes: 0 done, 1 did not succeed, 2 wrong usage or input, 3 a needed part is missing.",
)

app.command()(up.up)
app.command()(serve.api)
app.command()(serve.worker)
app.command(name="import")(importing.import_tasks)
app.command()(verify.verify)
app.command()(execute.execute)
app.command()(factory.gate)
app.command()(train.train)
app.command()(train.evaluate)
app.command()(state.stats)
app.command()(state.doctor)

for name, module in (("db", db), ("keys", keys), ("factory", factory), ("sandbox", sandbox)):
    app.add_typer(module.app, name=name, help=(module.__doc__ or "").split("\n")[0])


def _version(value: bool) -> None:
    if value:
        from taskmill import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    pass
