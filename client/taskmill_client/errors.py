"""What can go wrong, as one small tree.

TaskmillError
├── ConnectionLost          no answer within the deadline: what was asked may or may not have happened
├── WaitTimeout             a job did not end in the time given to `wait`
└── ApiError                the service answered with a problem (RFC 9457)
    ├── Unauthenticated     401
    ├── Forbidden           403
    ├── NotFound            404
    ├── Conflict            409
    │   ├── LeaseExpired · LeaseSuperseded · StaleConsumer · SnapshotMismatch
    ├── TooLarge            413
    ├── Invalid             400, 415, 422: `errors` names each field and its rule
    ├── RateLimited         429
    └── Unavailable         500 and above
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing wrong with a request: a JSON pointer, a stable code, the rule in words."""

    pointer: str
    code: str
    message: str


class TaskmillError(Exception):
    """The base of every error of this client."""


class ConnectionLost(TaskmillError):
    """No answer came within the deadline."""


class WaitTimeout(TaskmillError):
    """The job goes on; only the waiting ended."""


class ApiError(TaskmillError):
    """The service refused or failed: `code` is stable, `detail` is for people, `errors` names fields."""

    def __init__(
        self, status: int, code: str, detail: str, errors: tuple[FieldError, ...] = (), extra: Any = None
    ) -> None:
        fields = "".join(f"; {error.pointer}: {error.message}" for error in errors)
        super().__init__(f"{status} {code}: {detail}{fields}")
        self.status, self.code, self.detail, self.errors = status, code, detail, errors
        self.extra: Mapping[str, Any] = extra or {}


class Unauthenticated(ApiError): ...


class Forbidden(ApiError): ...


class NotFound(ApiError): ...


class Conflict(ApiError): ...


class LeaseExpired(Conflict): ...


class LeaseSuperseded(Conflict): ...


class StaleConsumer(Conflict): ...


class SnapshotMismatch(Conflict): ...


class TooLarge(ApiError): ...


class Invalid(ApiError): ...


class RateLimited(ApiError): ...


class Unavailable(ApiError): ...


_BY_CODE: Mapping[str, type[ApiError]] = {
    "lease_expired": LeaseExpired,
    "lease_superseded": LeaseSuperseded,
    "stale_consumer": StaleConsumer,
    "snapshot_mismatch": SnapshotMismatch,
}
_BY_STATUS: Mapping[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
    415: Invalid,
    422: Invalid,
    429: RateLimited,
}


def from_problem(status: int, problem: Mapping[str, Any]) -> ApiError:
    """The error of one problem document; a document that lacks a part still makes an error."""
    code = str(problem.get("code") or f"http_{status}")
    cls = _BY_CODE.get(code) or _BY_STATUS.get(status) or (Unavailable if status >= 500 else ApiError)
    errors = tuple(
        FieldError(str(e.get("pointer", "")), str(e.get("code", "")), str(e.get("message", "")))
        for e in problem.get("errors") or ()
        if isinstance(e, Mapping)
    )
    return cls(status, code, str(problem.get("detail") or problem.get("title") or "no detail"), errors, problem)


def from_response(response: httpx.Response) -> ApiError:
    """The error of an answer outside 2xx; a proxy's page of HTML is an error like any other."""
    try:
        body = response.json()
    except ValueError:
        body = None
    return from_problem(response.status_code, body if isinstance(body, Mapping) else {"detail": response.text[:500]})
