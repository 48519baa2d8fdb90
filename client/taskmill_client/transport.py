"""One request as data, and when to send it again: what the sync and the async client share.

A call is sent again, after a pause with jitter and until a total deadline, on 429, 502–504, loss of the connection and
a 409 that says Retry-After (the first try of the same key still runs). Each try of one POST carries the same
Idempotency-Key, so an effect happens once however often it is asked for.
"""

import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import httpx

from taskmill_client.errors import ConnectionLost, TaskmillError, from_response

T = TypeVar("T")
Body = Callable[[], Iterator[bytes]]
AGAIN = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request; `body` opens the bytes anew for each try. `T` is the type of the decoded answer."""

    method: str
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    json: Any = None
    body: Body | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    decode: Callable[[httpx.Response], Any] = httpx.Response.json

    def page(self, cursor: str) -> "Call[T]":
        """The same list from `cursor` on."""
        return Call(self.method, self.path, {**self.params, "cursor": cursor}, headers=self.headers)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to go on trying: pauses double from `first_s` to `longest_s`, all tries together end at `deadline_s`."""

    deadline_s: float = 60.0
    first_s: float = 0.2
    longest_s: float = 5.0


def get(path: str, **params: Any) -> Call[Any]:
    """A read; parameters that are None are not sent."""
    return Call("GET", path, {key: value for key, value in params.items() if value is not None})


def post(path: str, json: Any, key: str | None = None, **params: Any) -> Call[Any]:
    """A write, with the caller's Idempotency-Key or a fresh one."""
    return Call("POST", path, params, json, headers={"Idempotency-Key": key or uuid.uuid4().hex})


def given(**fields: Any) -> dict[str, Any]:
    """The fields that are not None."""
    return {key: value for key, value in fields.items() if value is not None}


class Tries:
    """The tries of one call: each failure either names the pause before the next try or raises."""

    def __init__(self, patience: Patience, timeout_s: float) -> None:
        self._patience, self._timeout_s = patience, timeout_s
        self._end = time.monotonic() + patience.deadline_s
        self._pause_s = patience.first_s

    @property
    def timeout_s(self) -> float:
        """For the next try: the client's timeout, but never beyond the deadline."""
        return max(0.1, min(self._timeout_s, self._end - time.monotonic()))

    def after_loss(self, error: httpx.TransportError) -> float:
        pause = self._next(0.0)
        if pause is None:
            raise ConnectionLost(f"no answer within {self._patience.deadline_s:g} s: {error!r}") from error
        return pause

    def after(self, response: httpx.Response) -> float | None:
        """None for an answer that counts; else the pause before the next try."""
        if response.is_success:
            return None
        asked = _retry_after(response)
        if response.status_code in AGAIN or (response.status_code == 409 and asked is not None):
            pause = self._next(asked or 0.0)
            if pause is not None:
                return pause
        raise from_response(response)

    def _next(self, at_least_s: float) -> float | None:
        pause = at_least_s + random.uniform(0.5, 1.0) * self._pause_s
        self._pause_s = min(2 * self._pause_s, self._patience.longest_s)
        return pause if time.monotonic() + pause < self._end else None


def _retry_after(response: httpx.Response) -> float | None:
    try:
        return max(0.0, float(response.headers["Retry-After"]))
    except (KeyError, ValueError):
        return None


def headers(key: str) -> dict[str, str]:
    """What every request carries."""
    if not key.isascii() or key != key.strip():
        raise TaskmillError("the key must be plain ASCII without spaces around it")
    return {"Accept": "application/json", "User-Agent": "taskmill-client"} | (
        {"Authorization": f"Bearer {key}"} if key else {}
    )


def request(call: Call[Any], timeout_s: float) -> dict[str, Any]:
    """The keyword arguments of one try, for either kind of httpx client."""
    arguments: dict[str, Any] = {
        "method": call.method,
        "url": call.path,
        "headers": dict(call.headers),
        "timeout": timeout_s,
    }
    if call.params:
        arguments["params"] = dict(call.params)
    if call.json is not None:
        arguments["json"] = call.json
    return arguments
