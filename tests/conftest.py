"""What every test may use: stores on both databases, settings in a fresh folder, waiting with a condition."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from service.settings import Settings
from service.store.engine import make_engine
from service.store.migrate import upgrade
from service.store.session import Store

REQUIRED = frozenset(filter(None, os.environ.get("TASKMILL_TEST_REQUIRE", "").split(",")))
SERVICES = {
    "pg": ("TASKMILL_TEST_PG", "a PostgreSQL URL; `.ci/services start` starts one"),
    "redis": ("TASKMILL_TEST_REDIS", "a Redis URL; `.ci/services start` starts one"),
    "amqp": ("TASKMILL_TEST_AMQP", "a RabbitMQ URL; `.ci/services start` starts one"),
}


def service_url(name: str) -> str:
    """The URL of a service that tests need; skips with the command that adds it, fails where it is required."""
    variable, remedy = SERVICES[name]
    if url := os.environ.get(variable):
        return url
    if name in REQUIRED:
        pytest.fail(f"{variable} is required here and not set")
    pytest.skip(f"{variable} is not set: it needs {remedy}")


@pytest.fixture(autouse=True)
def _marked_services(request: pytest.FixtureRequest) -> None:
    """A test marked `pg`, `redis` or `amqp` is skipped without that service, or fails where it is required."""
    for name in SERVICES:
        if request.node.get_closest_marker(name):
            service_url(name)


@pytest.fixture(scope="session")
def template_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated, empty SQLite file; a copy takes about a millisecond."""
    path = tmp_path_factory.mktemp("template") / "taskmill.db"
    upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture
def settings(tmp_path: Path, template_database: Path) -> Settings:
    """Settings of an embedded service whose data folder holds a migrated database."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "taskmill.db").write_bytes(template_database.read_bytes())
    return Settings(data=data, verify_workers=1)


@pytest.fixture
def sqlite_store(settings: Settings) -> Iterator[Store]:
    store = Store(make_engine(settings.sqlalchemy_url, pool_size=settings.api_threads + 4))
    yield store
    store.close()


@pytest.fixture(scope="session")
def postgresql_url() -> str:
    """A migrated database of this test process alone, made anew."""
    import psycopg

    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    admin = service_url("pg")
    name = f"taskmill_test_{worker}"
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name}")
    url = admin.rsplit("/", 1)[0].replace("postgresql://", "postgresql+psycopg://") + f"/{name}"
    upgrade(url)
    return url


@pytest.fixture
def postgresql_store(postgresql_url: str) -> Iterator[Store]:
    store = Store(make_engine(postgresql_url, pool_size=28))
    yield store
    store.close()
    _empty(postgresql_url)


def _empty(url: str) -> None:
    """DELETE children first: a hundred times faster than TRUNCATE on small tables."""
    from service.store.tables import Base

    engine = make_engine(url, pool_size=1)
    with engine.begin() as connection:
        for table in reversed(Base.metadata.sorted_tables):
            connection.execute(table.delete())
    engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest) -> Store:
    """The same test on both databases."""
    found: Store = request.getfixturevalue(f"{request.param}_store")
    return found


def wait_until(condition: Callable[[], object], within_s: float = 10.0, every_s: float = 0.02) -> None:
    """Wait for a condition instead of sleeping; fails when it does not come true in time."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"not within {within_s} s: {condition}")
        time.sleep(every_s)
