"""The app behind a real socket, for what a test client cannot show: hang-ups, busy threads, many at once."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from tests.processes import free_port


@contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """The URL of the app on a free port."""
    port = free_port()
    config = uvicorn.Config(app, "127.0.0.1", port, log_config=None, timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, name="served", daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started:
        assert thread.is_alive(), "the server ended before it began"
        assert time.monotonic() < deadline, "the server did not start"
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(timeout=20)
