"""The whole app on a fresh store, with the real engine and sandbox, and clients with keys of chosen scopes."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from sandbox.backends import make_backend
from sandbox.contract import Backend
from service.app import create_app
from service.auth.issue import issue_key
from service.settings import Settings
from service.store.session import Store
from service.words import Scope
from verifiers.engine import Engine

MakeClient = Callable[..., TestClient]


@pytest.fixture(scope="session")
def backend() -> Iterator[Backend]:
    made = make_backend("local", 2)
    yield made
    made.close()


@pytest.fixture(scope="session")
def engine(backend: Backend) -> Iterator[Engine]:
    made = Engine(backend, 1)
    yield made
    made.close()


@pytest.fixture
def app(settings: Settings, store: Store, engine: Engine, backend: Backend) -> FastAPI:
    return create_app(settings, store, engine, backend)


@pytest.fixture
def client_of(app: FastAPI, settings: Settings, store: Store) -> Iterator[MakeClient]:
    """`client_of(Scope.X, …)` is a client whose key has these scopes; without any, one with all."""
    with TestClient(app, raise_server_exceptions=False) as opened:

        def make(*scopes: Scope, name: str = "test") -> TestClient:
            with store.writing() as db:
                given = [str(scope) for scope in scopes or tuple(Scope)]
                token = issue_key(db, name=name, scopes=given, secret=settings.secret_bytes).token
            found = TestClient(app, raise_server_exceptions=False, headers={"Authorization": f"Bearer {token}"})
            found.portal = opened.portal
            return found

        yield make


@pytest.fixture
def client(client_of: MakeClient) -> TestClient:
    """A client that may do everything."""
    return client_of()


def a_task(**changes: Any) -> dict[str, Any]:
    """The body of a small valid task; keyword arguments replace fields."""
    body = {
        "domain": "math.arithmetic",
        "prompt": [{"role": "user", "content": "What is 6*7?"}],
        "verifier": {"name": "exact", "params": {}},
        "reference": {"answer": "42"},
        "gold": ["42"],
        "source": {"uri": "https://example.org/six", "licence": "MIT"},
    }
    return body | changes
