"""What `taskmill doctor` checks. A check names what it found, and the remedy when something is missing."""

import importlib.metadata
import importlib.util
from collections.abc import Callable
from typing import NamedTuple

from service.settings import Settings

OUR_NAMES = ("taskmill", "service", "factory", "verifiers", "sandbox", "trainer", "taskmill_client")


class Check(NamedTuple):
    name: str
    ok: bool
    needed: bool
    detail: str


def checks(settings: Settings) -> list[Check]:
    """Every check, in the order a new user would want to read them."""
    found = [_names(), _guarded("database", lambda: _database(settings)), _guarded("isolation", _isolation)]
    found += [
        _module("torch", "trainer", "pip install 'taskmill[trainer]'"),
        _module("pyarrow", "parquet files", "pip install 'taskmill[parquet]'"),
        _module("duckdb", "ad-hoc analytics", "pip install 'taskmill[analytics]'"),
        _module("more_itertools", "the demo's source package", "pip install 'taskmill[demo]'"),
    ]
    return found


def _names() -> Check:
    """`factory` and `verifiers` are names of other distributions too (D35): an environment of our own is needed."""
    owners = importlib.metadata.packages_distributions()
    foreign = [
        f"{name} also by {', '.join(sorted(others))}"
        for name in OUR_NAMES
        if (others := set(owners.get(name, ())) - {"taskmill", "taskmill-client"})
    ]
    if foreign:
        return Check(
            "import names", False, True, f"{'; '.join(foreign)}: install Taskmill into an environment of its own"
        )
    return Check("import names", True, True, "each has one owner")


def _database(settings: Settings) -> Check:
    from service.store.migrate import current, head

    found = current(settings.sqlalchemy_url)
    kind = "SQLite" if settings.database_url is None else "PostgreSQL"
    if found == head():
        return Check("database", True, True, f"{kind}, at revision {found}")
    return Check("database", False, False, f"{kind}, at revision {found or 'none'}: run `taskmill db upgrade`")


def _isolation() -> Check:
    from sandbox.backends import make_backend

    backend = make_backend("local", 1)
    try:
        found = backend.capabilities()
    finally:
        backend.close()
    ways = ", ".join(f"{name} by {way}" for name, way in found.limits_enforced.items())
    return Check("isolation", found.isolated, True, ways or "; ".join(found.missing.values()))


def _guarded(name: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - the doctor reports what is broken instead of breaking too
        return Check(name, False, True, f"{type(error).__name__}: {error}")


def _module(name: str, use: str, remedy: str) -> Check:
    if importlib.util.find_spec(name):
        return Check(name, True, False, f"{importlib.metadata.version(name.replace('_', '-'))}, for {use}")
    return Check(name, False, False, f"not installed, only needed for {use}: {remedy}")
