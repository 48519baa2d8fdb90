"""Pure ASGI layers around the app: request ids, logs and metrics, and limits of bodies.

No BaseHTTPMiddleware: it breaks streams and disconnects (D8). The body of a JSON route is read here, whole and bounded,
so that a body over its limit is refused before anything is parsed.
"""

import json
import re
import secrets
import time
from collections.abc import Mapping
from urllib.parse import parse_qsl

import structlog
from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import FieldError, Invalid, Problem, TooLarge
from service.problem_details import MEDIA_TYPE, encoded, headers

log = structlog.get_logger("access")

MIB = 2**20
DEFAULT_LIMIT = MIB
LIMITS: Mapping[str, int] = {
    "/v1/tasks": 16 * MIB,
    "/v1/verify": 16 * MIB,
    "/v1/execute": 16 * MIB,
    "/v1/verify:batch": 64 * MIB,
}
UNBUFFERED = frozenset({"/v1/tasks:import"})
_COMPLETE = re.compile(r"/v1/leases/[^/]+:complete")
_REQUEST_ID = re.compile(r"[\w.-]{1,64}")
_DECODER = json.JSONDecoder()
_BETWEEN = re.compile(r"[\s,:]*")
NAME_FIELD_UP_TO = 32 * MIB
"""A task that is too large is read up to here all the same, to name the field that makes it so."""


def route_template(scope: Scope) -> str:
    """The template of the matched route: a label per path would never end.

    A route of an included router knows its own path only, so the prefix of the version is put back.
    """
    template: str = getattr(scope.get("route"), "path", "unmatched")
    versioned = scope["path"].startswith("/v1/") and template.startswith("/") and not template.startswith("/v1/")
    return f"/v1{template}" if versioned else template


def body_limit(path: str) -> int | None:
    """The most bytes a body of this route may have; None for streamed ones, which check each line."""
    if path in UNBUFFERED:
        return None
    return 64 * MIB if _COMPLETE.fullmatch(path) else LIMITS.get(path, DEFAULT_LIMIT)


class RequestContext:
    """Gives each request an id, logs it without its query string, counts and times it by route template."""

    def __init__(self, app: ASGIApp, registry: CollectorRegistry) -> None:
        self.app = app
        labels = ("method", "route", "status")
        self.requests = Counter("taskmill_http_requests", "Answered requests.", labels, registry=registry)
        self.seconds = Histogram("taskmill_http_seconds", "Time to the last byte.", labels[:2], registry=registry)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
        trace_id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        scope.setdefault("state", {})["trace_id"] = trace_id
        private = any(name == b"authorization" for name, _ in scope["headers"])
        start, status = time.perf_counter(), 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", trace_id.encode())]
                if private and not any(name.lower() == b"cache-control" for name, _ in message["headers"]):
                    message["headers"].append((b"cache-control", b"no-store"))
            await send(message)

        with structlog.contextvars.bound_contextvars(trace_id=trace_id):
            try:
                await self.app(scope, receive, sending)
            finally:
                self._note(scope, status, time.perf_counter() - start)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = route_template(scope)
        self.requests.labels(scope["method"], route, status).inc()
        self.seconds.labels(scope["method"], route).observe(seconds)
        if route not in {"/livez", "/readyz", "/metrics"}:
            log.info("request", method=scope["method"], route=route, status=status, ms=round(seconds * 1000, 1))


class HeadAsGet:
    """HEAD is GET without its body: every GET route answers it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return

        async def bare(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        await self.app({**scope, "method": "GET"}, receive, bare)


class PlainQuery:
    """Refuses NUL in a query string by its parameter's name: no text column of PostgreSQL can be compared with it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and b"%00" in scope["query_string"]:
            pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
            names = sorted({name for name, value in pairs if "\0" in name + value})
            if names:
                rule = "text must not contain NUL"
                await _refuse(
                    scope, send, Invalid(errors=[FieldError(f"/query/{name}", "bad_text", rule) for name in names])
                )
                return
        await self.app(scope, receive, send)


class BodyLimit:
    """Reads the body of a request, up to its route's limit, and hands it on in one piece."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit = body_limit(scope["path"]) if scope["type"] == "http" else None
        if limit is None or scope["method"] in {"GET", "HEAD", "OPTIONS", "DELETE"}:
            await self.app(scope, receive, send)
            return
        read_up_to = NAME_FIELD_UP_TO if scope["path"] == "/v1/tasks" else limit
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        body = bytearray()
        more = read_up_to > limit or not declared.isdigit() or int(declared) <= read_up_to
        too_large = not more
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return  # the client hung up before its body was whole: nothing has happened
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > read_up_to:
                too_large = True
                break
        if too_large or len(body) > limit:
            await _refuse(
                scope, send, TooLarge(f"this route takes at most {limit} bytes", errors=_culprit(body, limit))
            )
            return
        sent = False

        async def replay() -> Message:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": bytes(body), "more_body": False}

        await self.app(scope, replay, send)


def _culprit(body: bytearray, limit: int) -> list[FieldError]:
    """The largest field of a body that is too large, or the one that was being read when its reading was given up."""
    text = body.decode("utf-8", "replace")
    fields: dict[str, int] = {}
    place = text.find("{") + 1
    try:
        while text[(place := _past(text, place)) : place + 1] == '"':
            name, place = _DECODER.raw_decode(text, place)
            start = _past(text, place)
            fields[name] = len(text) - start  # as far as it was read, unless its end is found
            _, place = _DECODER.raw_decode(text, start)
            fields[name] = place - start
    except (ValueError, RecursionError):
        pass  # cut in the middle, or no JSON: what was found so far names the field
    if not fields:
        return [FieldError("", "too_large", f"the body is larger than {limit} bytes")]
    largest = max(fields, key=lambda name: fields[name])
    rule = f"the body has at most {limit} bytes; this field alone has at least {fields[largest]} characters"
    return [FieldError("/" + largest.replace("~", "~0").replace("/", "~1"), "too_large", rule)]


def _past(text: str, place: int) -> int:
    """The place of what comes after blanks, commas and colons."""
    found = _BETWEEN.match(text, place)
    return found.end() if found else place


async def _refuse(scope: Scope, send: Send, problem: Problem) -> None:
    body = encoded(problem, scope["path"], scope.get("state", {}).get("trace_id"))
    found = {"Content-Type": MEDIA_TYPE, "Content-Length": str(len(body)), "Connection": "close", **headers(problem)}
    raw = [(name.lower().encode(), value.encode()) for name, value in found.items()]
    await send({"type": "http.response.start", "status": problem.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
