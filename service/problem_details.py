"""Problems as they go over the wire: RFC 9457 `application/problem+json`. The only place that renders an error."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from service.errors import FieldError, Problem

MEDIA_TYPE = "application/problem+json"
PAGES = "/problems/"


def details(problem: Problem, instance: str, trace_id: str | None) -> dict[str, Any]:
    """The body of the answer. `type` leads to the page of the code on this service."""
    return {
        "type": f"{PAGES}{problem.code}",
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
        "instance": instance,
        "code": problem.code,
        "errors": [error._asdict() for error in problem.errors],
        "trace_id": trace_id,
        **problem.extra,
    }


def headers(problem: Problem) -> Mapping[str, str]:
    """Headers that belong to the problem, besides the content type."""
    found = {}
    if problem.retry_after_s is not None:
        found["Retry-After"] = str(problem.retry_after_s)
    if problem.status == 401:
        found["WWW-Authenticate"] = 'Bearer realm="taskmill"'
    return found


def encoded(problem: Problem, instance: str, trace_id: str | None) -> bytes:
    return json.dumps(details(problem, instance, trace_id), ensure_ascii=False).encode("utf-8", "replace")


def field_errors(found: Sequence[Any], *, request_parts: bool = False) -> list[FieldError]:
    """Pydantic's errors with JSON pointers. `request_parts`: each place begins with the part of the request it is in;
    the body's pointers go without it, the others are `/query/…`, `/path/…`, `/header/…`.
    """
    errors = []
    for item in found:
        where = list(item["loc"])
        if request_parts and where and where[0] == "body":
            where = where[1:]
        pointer = "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in where)
        errors.append(FieldError(pointer, item["type"], item["msg"]))
    return errors


def every_problem(base: type[Problem] = Problem) -> dict[str, type[Problem]]:
    """All kinds of problem by code."""
    found = {base.code: base}
    for item in base.__subclasses__():
        found |= every_problem(item)
    return found
