"""Problems: every error the API can answer, as RFC 9457 `application/problem+json`.

A class is one kind of failure. Its status and code never change; its docstring is what the reader of the docs sees.
Code below HTTP may raise them too: they carry no HTTP machinery.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple


class FieldError(NamedTuple):
    """One thing wrong with the request: a JSON pointer, a stable code, the rule in words."""

    pointer: str
    code: str
    message: str


class Problem(Exception):
    """The failure is ours. It was logged under the trace id of the answer; sending the same again may meet it again."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal"
    title: ClassVar[str] = "Something broke on our side"
    retry_after_s: ClassVar[int | None] = None

    def __init__(self, detail: str = "", *, errors: Sequence[FieldError] = (), **extra: Any) -> None:
        super().__init__(detail or self.title)
        self.detail = detail or (self.__doc__ or self.title).split("\n")[0]
        self.errors = tuple(errors)
        self.extra = extra


class Invalid(Problem):
    """The request breaks a rule; `errors` names each field and its rule."""

    status, code, title = 422, "invalid", "The request is not valid"


class BadCursor(Problem):
    """The cursor was not made by this list with these filters. Start again without it."""

    status, code, title = 400, "bad_cursor", "The cursor does not fit"


class BadJson(Problem):
    """The body is not strict JSON in UTF-8."""

    status, code, title = 400, "bad_json", "The body is not JSON"


class Unauthenticated(Problem):
    """No valid key came with the request. Send `Authorization: Bearer tm_…`."""

    status, code, title = 401, "unauthenticated", "A key is needed"


class Forbidden(Problem):
    """The key lacks a scope that this request needs."""

    status, code, title = 403, "forbidden", "The key may not do this"


class NotFound(Problem):
    """There is no such resource, or this key may not know of it."""

    status, code, title = 404, "not_found", "Not found"


class MethodNotAllowed(Problem):
    """The resource exists; it does not take this method."""

    status, code, title = 405, "method_not_allowed", "Method not allowed"


class Conflict(Problem):
    """The request does not fit the state of the resource; the detail says which state it is in."""

    status, code, title = 409, "conflict", "Conflict"


class GatesMissing(Conflict):
    """The task lacks a pass of a gate that its type requires; `missing` and `failed` name them."""

    code, title = "gates_missing", "Required gates have not passed"


class SplitConflict(Conflict):
    """The parents lie in different splits, so the task can lie in none."""

    code, title = "split_conflict", "Parents lie in different splits"


class LeaseExpired(Conflict):
    """The lease ran out; its tasks are served again. Results are kept as observations only."""

    code, title = "lease_expired", "The lease has expired"


class LeaseSuperseded(Conflict):
    """The stream was restored after this lease was given; it acknowledges nothing any more."""

    code, title = "lease_superseded", "The lease is superseded"


class StaleConsumer(Conflict):
    """Another consumer has restored this stream. Stop: two trainers must not share one order."""

    code, title = "stale_consumer", "Another consumer owns the stream"


class SnapshotMismatch(Conflict):
    """The token belongs to another dataset snapshot than the stream."""

    code, title = "snapshot_mismatch", "The snapshot differs"


class CompletionConflict(Conflict):
    """This ordinal of this lease was completed before with another body."""

    code, title = "completion_conflict", "Completed before with other content"


class InFlight(Conflict):
    """The first request with this Idempotency-Key is still running. Send the same request again."""

    code, title, retry_after_s = "idempotency_in_flight", "Still running", 1


class PreconditionFailed(Problem):
    """What was read has changed since. Read it again, and send the change with its new ETag."""

    status, code, title = 412, "precondition_failed", "It has changed since it was read"


class PreconditionRequired(Problem):
    """This change needs `If-Match` with the ETag of what was read, so that no other edit is lost."""

    status, code, title = 428, "precondition_required", "If-Match is missing"


class KeyReused(Problem):
    """This Idempotency-Key was used with another body. Use a fresh key for another request."""

    status, code, title = 422, "idempotency_key_reused", "The Idempotency-Key was used before"


class TooLarge(Problem):
    """The body is larger than this route takes; the detail gives the limit."""

    status, code, title = 413, "too_large", "The body is too large"


class WrongMediaType(Problem):
    """The body's Content-Type is not one that this route reads."""

    status, code, title = 415, "wrong_media_type", "Unsupported Content-Type"


class UnsupportedLanguage(Problem):
    """The sandbox here does not offer this language; the detail lists what it offers."""

    status, code, title = 422, "unsupported_language", "The language is not offered"


class StoreBusy(Problem):
    """Another writer holds the store. Nothing was changed; send the request again."""

    status, code, title, retry_after_s = 503, "store_busy", "The store is busy", 1


class SandboxDown(Problem):
    """No sandbox could be had. Nothing ran; the detail says what is missing."""

    status, code, title, retry_after_s = 503, "sandbox_unavailable", "The sandbox is not available", 5


class NotReady(Problem):
    """A part of the service is not ready; `checks` says which."""

    status, code, title, retry_after_s = 503, "not_ready", "Not ready", 1
