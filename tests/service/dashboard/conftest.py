"""A dashboard over a filled mill: a client for pages, a served one for the browser."""

import os
import shutil
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.testclient import TestClient

from sandbox.contract import Backend
from service.app import create_app
from service.auth.issue import issue_key
from service.dashboard import session
from service.settings import Settings
from service.store.session import Store
from service.words import Scope
from verifiers.engine import Engine

sys.path.insert(0, str(Path(__file__).parent))
import mill

BASE = "http://127.0.0.1:8700"
OWN = {"Sec-Fetch-Site": "same-origin"}
READER = (Scope.TASKS_READ,)
CURATOR = (Scope.TASKS_READ, Scope.CURATE)
KEEPER = (Scope.TASKS_READ, Scope.CURATE, Scope.HOLDOUT_READ)

SignIn = Callable[..., TestClient]


class Filled(NamedTuple):
    """What the mill holds: task ids in order, job ids by status, run ids."""

    tasks: list[str]
    jobs: dict[str, str]
    runs: list[str]


@pytest.fixture
def app(settings: Settings, sqlite_store: Store, engine: Engine, backend: Backend) -> FastAPI:
    return create_app(settings, sqlite_store, engine, backend)


@pytest.fixture
def filled(sqlite_store: Store) -> Filled:
    tasks = mill.fill(sqlite_store)
    return Filled(tasks, mill.work(sqlite_store), mill.train(sqlite_store, tasks))


@pytest.fixture
def anonymous(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, base_url=BASE, follow_redirects=False) as client:
        yield client


@pytest.fixture
def sign_in(app: FastAPI, settings: Settings, sqlite_store: Store) -> Iterator[SignIn]:
    """Open a session with a fresh key of these scopes."""
    opened: list[TestClient] = []

    def open_session(*scopes: Scope) -> TestClient:
        with sqlite_store.writing() as db:
            made = issue_key(db, name="tester", scopes=scopes, secret=settings.secret_bytes)
        client = TestClient(app, base_url=BASE, follow_redirects=False)
        answer = client.post("/login", data={"key": made.token}, headers=OWN)
        assert answer.status_code == 303, answer.text
        opened.append(client)
        return client

    yield open_session
    for client in opened:
        client.close()


def chromium() -> str:
    """The browser, or a skip that names the command that adds it."""
    path = os.environ.get("TASKMILL_CHROMIUM", "/usr/bin/chromium")
    if os.access(path, os.X_OK) and shutil.which("chromedriver"):
        return path
    remedy = "Chromium with its driver is not installed; `.ci/services install` adds both (Debian, as root)"
    if "browser" in os.environ.get("TASKMILL_TEST_REQUIRE", "").split(","):
        pytest.fail(remedy)
    pytest.skip(remedy)


class Served(NamedTuple):
    """A running server, and a link that signs the browser in."""

    url: str
    link: str


@pytest.fixture
def served(app: FastAPI, settings: Settings, sqlite_store: Store) -> Iterator[Served]:
    with sqlite_store.writing() as db:
        made = issue_key(db, name="admin", scopes=list(Scope), secret=settings.secret_bytes)
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=2))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    yield Served(url, session.one_time_link(settings.secret_bytes, made.key_id, url))
    server.should_exit = True
    thread.join(timeout=10)
    listener.close()
