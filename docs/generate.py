"""Write the reference pages that code defines: settings, errors, commands, gates, verifiers, OpenAPI.

python docs/generate.py          write them
python docs/generate.py --check  exit 1 when a committed page differs
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

FOLDER = Path(__file__).parent


COMPUTED = {
    "verify_workers": "number of cores",
    "worker_processes": "number of cores",
    "sandbox_boxes": "twice the number of cores",
}


def settings_page() -> str:
    from service.settings import Settings

    rows = ["| setting | default | meaning |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        default = COMPUTED[name] if field.default_factory else "unset" if field.default in (None, "") else field.default
        rows.append(f"| `TASKMILL_{name.upper()}` | {default} | {field.description} |")
    head = (
        "# Settings\n\nFrom the environment, else `taskmill.toml` in the working directory (lower case, no prefix).\n\n"
    )
    return head + "\n".join(rows) + "\n"


def errors_page() -> str:
    import service.app  # noqa: F401 - every part that defines problems is imported with it
    from service.problem_details import every_problem

    lines = ["# Errors", "", "Every error is `application/problem+json` (RFC 9457) with one of these codes.", ""]
    for code, item in sorted(every_problem().items()):
        lines += [f"## {code}", "", f"{item.status} · {item.title}. {item.__doc__}", ""]
        if item.retry_after_s is not None:
            lines += [f"May be tried again after {item.retry_after_s} s (`Retry-After`).", ""]
    return "\n".join(lines)


def commands_page() -> str:
    from typer.main import get_command

    from taskmill.cli.app import app

    def walk(command: object, path: str) -> Iterator[str]:
        import click

        children = getattr(command, "commands", {})
        if path.count(" ") == 0 or not children:
            context = click.Context(command, info_name=path, terminal_width=100)  # type: ignore[arg-type]
            yield f"## {path}\n\n```text\n{command.get_help(context)}\n```\n"  # type: ignore[attr-defined]
        for name, child in children.items():
            yield from walk(child, f"{path} {name}")

    return "# Commands\n\n" + "\n".join(walk(get_command(app), "taskmill"))


def openapi_document() -> str:
    from service.settings import Settings
    from service.store.migrate import upgrade
    from taskmill.compose import build_api

    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(data=Path(folder), database_url=None, broker_url=None)
        upgrade(settings.sqlalchemy_url)
        with build_api(settings) as app:
            return json.dumps(app.openapi(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "errors.md": errors_page,
    "commands.md": commands_page,
    "openapi.json": openapi_document,
}


def main() -> int:
    differ = []
    for name, make in PAGES.items():
        path, text = FOLDER / name, make()
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            differ.append(name)
    if differ:
        sys.stderr.write(f"{', '.join(differ)}: run `python docs/generate.py`\n")
    return bool(differ)


if __name__ == "__main__":
    sys.exit(main())
