"""Start the whole service on this machine."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from taskmill.cli.options import Data, settings_from

if TYPE_CHECKING:
    from service.settings import Settings


# Whole generators go to holdout by chance, which would leave a small demo without one of its families; and its pass
# rates want more held-out tasks than a large data set needs.
DEMO_SETTINGS = {"TASKMILL_SPLIT_HOLDOUT_SHARE": "0", "TASKMILL_SPLIT_EVAL_SHARE": "0.12"}


def up(
    data: Data = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on. [default: 127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 picks a free one. [default: 8700]")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Make tasks and train a tiny policy on them.")] = False,
    once: Annotated[bool, typer.Option("--once", help="With --demo: end when the demo has ended.")] = False,
    seed: Annotated[int, typer.Option(help="With --demo: seed of the training run.")] = 0,
) -> None:
    """Start the service: API, worker, dashboard. The admin key is written to `admin.key` in the data folder."""
    if once and not demo:
        typer.echo("--once only means something with --demo", err=True)
        raise typer.Exit(2)
    if demo:
        for name, value in DEMO_SETTINGS.items():
            os.environ.setdefault(name, value)
    settings = settings_from(data, host=host, port=port)
    import signal

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a polite kill ends the children too
    from taskmill.supervisor import StartFailed

    try:
        raise typer.Exit(_run(settings, demo, once, seed))
    except StartFailed as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _run(settings: "Settings", demo: bool, once: bool, seed: int) -> int:
    from service.store.migrate import upgrade
    from taskmill.admin_key import ensure_admin_key, sign_in_link
    from taskmill.supervisor import Supervisor

    upgrade(settings.sqlalchemy_url)
    key_file = ensure_admin_key(settings)
    with Supervisor(settings) as service:
        service.wait_ready()
        typer.echo(f"Taskmill is up at {service.url}  (key in {key_file}, logs in {settings.data / 'logs'})")
        code = 0
        if demo:
            from taskmill.demo import run_demo

            code = run_demo(service.url, key_file.read_text().strip(), settings.data, seed)
        if not once:
            typer.echo(f"Dashboard: {sign_in_link(settings, service.url)}  (opens once; Ctrl-C ends the service)")
            service.wait()
        if service.failure:
            typer.echo(service.failure, err=True)
            return 1
        return code
