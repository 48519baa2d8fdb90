"""Every exception of a request becomes a problem here, and nowhere else."""

import ast
import traceback

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from sandbox.contract import BadRequest, SandboxUnavailable
from sandbox.contract import UnsupportedLanguage as NoSuchLanguage
from service.errors import (
    BadJson,
    FieldError,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NotFound,
    Problem,
    SandboxDown,
    TooLarge,
    Unauthenticated,
    UnsupportedLanguage,
    WrongMediaType,
)
from service.problem_details import MEDIA_TYPE, encoded, field_errors, headers

log = structlog.get_logger("problems")

_BY_STATUS: dict[int, type[Problem]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    413: TooLarge,
    415: WrongMediaType,
}


def install(app: FastAPI) -> None:
    """Answer every failure of this app as a problem."""
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(SandboxUnavailable, _sandbox)
    app.add_exception_handler(NoSuchLanguage, _language)
    app.add_exception_handler(BadRequest, _bad_request)
    app.add_exception_handler(Exception, _unexpected)


def answer(request: Request, problem: Problem) -> Response:
    """The problem as the response of this request."""
    body = encoded(problem, request.url.path, getattr(request.state, "trace_id", None))
    return Response(body, problem.status, dict(headers(problem)), MEDIA_TYPE)


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return answer(request, error)


async def _validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = list(error.errors())
    if any(item["loc"][0] == "path" for item in found):
        return answer(request, NotFound())  # ids match a strict pattern: what does not is the id of nothing
    if any(item["type"] == "json_invalid" for item in found):
        return answer(request, BadJson(str(found[0].get("ctx", {}).get("error", ""))))
    if any(item["type"] in {"model_attributes_type", "dict_type"} and len(item["loc"]) == 1 for item in found):
        kind = request.headers.get("content-type", "none")
        if not kind.partition(";")[0].strip().endswith("json"):
            return answer(request, WrongMediaType(f"send `Content-Type: application/json`, not {kind}"))
    return answer(
        request,
        Invalid(
            "The request breaks a rule; `errors` names each field.", errors=field_errors(found, request_parts=True)
        ),
    )


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 400:
        return answer(request, BadJson(str(error.detail)))
    kind = _BY_STATUS.get(error.status_code, Problem)
    found = answer(request, kind())
    found.headers.update(dict(error.headers or {}))
    return found


async def _sandbox(request: Request, error: Exception) -> Response:
    return answer(request, SandboxDown(str(error)))


async def _language(request: Request, error: Exception) -> Response:
    return answer(request, UnsupportedLanguage(str(error), errors=[FieldError("/language", "unsupported", str(error))]))


async def _bad_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, BadRequest)
    return answer(request, Invalid(errors=[FieldError(_pointer(error.field), "out_of_range", error.message)]))


def _pointer(field: str) -> str:
    """The JSON pointer of a field as the sandbox names it: `limits.wall_s`, `args[1]`, `files['../a']`."""
    name, bracket, place = field.partition("[")
    pointer = "/" + name.replace(".", "/")
    if not bracket:
        return pointer
    return f"{pointer}/{str(ast.literal_eval(place.removesuffix(']'))).replace('~', '~0').replace('/', '~1')}"


async def _unexpected(request: Request, error: Exception) -> Response:
    trace = "".join(traceback.format_exception(error))  # as text, without the values of locals: they hold secrets
    log.error("unexpected_error", path=request.url.path, traceback=trace)
    return answer(request, Problem("The failure was logged under this trace id."))
