"""A small real server on a real socket: it records what it is asked and answers from a script."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.conftest import wait_until

Answer = tuple[int, Any, dict[str, str]]


@dataclass
class Seen:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Stub:
    """`script` answers in order; when it is used up, `answer` decides (200 and an empty object)."""

    url: str = ""
    script: list[Answer] = field(default_factory=list)
    answer: Callable[[Seen], Answer] = lambda seen: (200, {}, {})
    seen: list[Seen] = field(default_factory=list)

    async def serve(self, request: Request) -> Response:
        seen = Seen(
            request.method, request.url.path, dict(request.query_params), dict(request.headers), await request.body()
        )
        self.seen.append(seen)
        status, body, headers = self.script.pop(0) if self.script else self.answer(seen)
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return Response(content, status, headers)


def problem(status: int, code: str, headers: dict[str, str] | None = None, **extra: Any) -> Answer:
    body = {"type": "about:blank", "title": code, "status": status, "code": code, "detail": f"it is {code}", **extra}
    return status, body, {"Content-Type": "application/problem+json"} | (headers or {})


@pytest.fixture
def stub() -> Iterator[Stub]:
    found = Stub()
    app = Starlette(routes=[Route("/{path:path}", found.serve, methods=["GET", "POST", "DELETE"])])
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        found.url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        wait_until(lambda: server.started)
        yield found
        server.should_exit = True
        thread.join(timeout=10)
