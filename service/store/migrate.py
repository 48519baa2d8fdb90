"""Bring a database to the newest revision. Finds the revisions in the wheel, else in the repository beside us."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from service.store.engine import make_engine


def scripts_folder() -> Path:
    """An editable install ignores the package mapping, so the wheel's place is tried first, then the sibling folder."""
    installed = find_spec("taskmill._migrations")
    if installed is not None and installed.origin is not None:
        return Path(installed.origin).parent
    return Path(__file__).parents[2] / "migrations"


def head() -> str:
    """The newest revision that this code knows."""
    return ScriptDirectory(str(scripts_folder())).get_current_head() or ""


@contextmanager
def configured(url: str) -> Iterator[Config]:
    """An Alembic configuration on one open connection to `url`, in a transaction that ends with the block."""
    config = Config()
    config.set_main_option("script_location", str(scripts_folder()))
    engine = make_engine(url, pool_size=1, foreign_keys=False)
    try:
        with engine.execution_options(tm_write=True).begin() as connection:
            config.attributes["connection"] = connection
            yield config
            if engine.dialect.name == "sqlite" and (
                broken := connection.execute(text("PRAGMA foreign_key_check")).all()
            ):
                raise RuntimeError(
                    f"the migration leaves {len(broken)} rows whose parents are missing; nothing was changed"
                )
    finally:
        engine.dispose()


def upgrade(url: str) -> None:
    """Bring the database at `url` to the newest revision; making an SQLite file where there is none."""
    if url.startswith("sqlite:///"):
        Path(url.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
    with configured(url) as config:
        command.upgrade(config, "head")


def current(url: str) -> str | None:
    """The revision the database is at, or None for an empty one."""
    if url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).exists():
        return None
    engine = make_engine(url, pool_size=1)
    try:
        with engine.connect() as connection:
            return MigrationContext.configure(connection).get_current_revision()
    finally:
        engine.dispose()
