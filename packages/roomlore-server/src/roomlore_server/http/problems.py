"""Problems (RFC 9457) for every error."""

from collections.abc import Mapping
from math import ceil, isfinite
from typing import Any, NamedTuple

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from roomlore.core import errors
from roomlore.surfaces.texts import preferred, text_of
from roomlore_server.http.answers import dump
from roomlore_server.shapes import in_words

MEDIA_TYPE = "application/problem+json"

STATUS: Mapping[type[errors.RoomloreError], int] = {
    errors.RoomloreError: 500,
    errors.NotFound: 404,
    errors.UnknownRoom: 404,
    errors.Deleted: 404,
    errors.InvalidInput: 422,
    errors.NameNotId: 422,
    errors.Conflict: 409,
    errors.BudgetTooSmall: 422,
    errors.BadModelOutput: 502,
    errors.Forbidden: 403,
    errors.QuotaExceeded: 429,
    errors.TokensExceeded: 429,
    errors.Unavailable: 503,
    errors.StorageUnavailable: 503,
    errors.StorageDamaged: 503,
    errors.StorageBusy: 503,
    errors.VectorsUnavailable: 503,
    errors.CacheUnavailable: 503,
    errors.ModelUnavailable: 503,
    errors.TimedOut: 503,
}


class Kind(NamedTuple):
    """A kind of problem: `urn:roomlore:<name>`, and when it is the answer."""

    status: int
    name: str
    title: str
    when: str


KINDS = (
    Kind(400, "unreadable", "The request cannot be read", "The body is not JSON, or not UTF-8."),
    Kind(401, "key-needed", "An API key is needed", "The API key is missing, unknown or revoked."),
    Kind(
        403,
        "forbidden",
        "Not allowed",
        "The key lacks the scope, or the request comes from elsewhere while there is no key.",
    ),
    Kind(404, "not-found", "Not found", "No such room, message, conversation, context, fact, job or path."),
    Kind(405, "method-not-allowed", "Method not allowed", "The path does not take this method."),
    Kind(
        408,
        "too-slow",
        "The request came too slowly",
        "The head or the body of the request does not arrive in time.",
    ),
    Kind(
        409,
        "conflict",
        "Conflict with what is stored",
        "The same id is stored with other content, another checkpoint, reset or change of a fact was faster, or a job "
        "is retried that has not failed.",
    ),
    Kind(
        413,
        "too-large",
        "The request is too large",
        "The body has more bytes (`max_body_bytes`, or 1 MiB) or values than the path takes; said as soon as it is "
        "known.",
    ),
    Kind(
        415,
        "unsupported-content-type",
        "The content type is not supported",
        "The body is not sent as JSON, or is a JSON Patch (RFC 6902) where a merge patch is meant.",
    ),
    Kind(
        422,
        "invalid-input",
        "The input cannot be used as it is",
        "A value cannot be used, or a limit is passed: text, batch, page, depth.",
    ),
    Kind(
        422,
        "budget-too-small",
        "What must be shown does not fit the window",
        "The summary and the query alone do not fit the model's window.",
    ),
    Kind(
        429,
        "too-many",
        "Too much of this is under way",
        "As many checks, or dry runs of forgetting, are under way for the tenant as there may be at a time, or as many "
        "requests wait for their turn; try again after `Retry-After` seconds.",
    ),
    Kind(
        429,
        "quota-exceeded",
        "The tenant's quota is used up",
        "The tenant has used its messages, tokens of models, kept messages or requests; the detail says which, how "
        "much, and what to do. Try again after `Retry-After` seconds; without it waiting does not help.",
    ),
    Kind(
        500,
        "error",
        "Something went wrong in roomlore",
        "Nobody foresaw this; the log says where, under the request's id.",
    ),
    Kind(502, "bad-model-output", "A model's answer cannot be used", "A model's answer cannot be used."),
    Kind(
        503,
        "unavailable",
        "Something roomlore depends on does not answer",
        "The database, or another service, does not answer, or a context took longer than "
        "`context_build_timeout_seconds` while `fallback_on_error` is off; try again after `Retry-After` seconds.",
    ),
)
_OWN_KINDS: Mapping[type[errors.RoomloreError], str] = {
    errors.BudgetTooSmall: "budget-too-small",
    errors.QuotaExceeded: "quota-exceeded",
    errors.TokensExceeded: "quota-exceeded",
}
"""Kinds of errors that share their status with another kind."""
_NAMED: Mapping[str, Kind] = {kind.name: kind for kind in KINDS}
_USUAL: Mapping[int, Kind] = {kind.status: kind for kind in KINDS if kind.name not in _OWN_KINDS.values()}
_HINTS: Mapping[int, str] = {
    404: "There is nothing at this path; /openapi.json lists what there is.",
    405: "This path does not take this method; /openapi.json lists those it takes.",
}
_STRANGE = Kind(0, "error", "The request failed", "")
_RETRY_SECONDS = "2"
_OPENAI_PATHS = ("/v1/chat/completions", "/v1/models")
_MEM0_PATHS = ("/v1/ping/", "/v1/memories/", "/v3/memories/")
"""Their clients read the detail of a problem if it is called plain JSON."""
_OPENAI_TYPES: Mapping[int, str] = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_OPENAI_CODES: Mapping[str, str] = {
    "key-needed": "invalid_api_key",
    "budget-too-small": "context_length_exceeded",
    "quota-exceeded": "rate_limit_exceeded",
}


class Problem(BaseModel):
    """An RFC 9457 problem."""

    type: str = Field(description="A URN naming the kind of problem.", examples=["urn:roomlore:not-found"])
    title: str
    status: int
    detail: str = Field(description="What happened and what to do.")
    instance: str = Field(description="The path that was asked for.")
    request_id: str = Field(description="The id under which the log knows this request.")


class Refused(HTTPException):
    """A request refused before it reached a service."""


def respond(
    scope: Mapping[str, Any],
    status: int,
    detail: str,
    headers: Mapping[str, str] | None = None,
    *,
    kind: str | None = None,
) -> Response:
    """Return the problem as a response, in Chinese if the request prefers it and the detail has a Chinese text. `kind`:
    its name, by default that of the status."""
    known_kind = _NAMED[kind] if kind else _USUAL.get(status, _STRANGE)
    if scope["path"].startswith(_OPENAI_PATHS):
        return _in_openai_form(status, detail, headers, known_kind)
    media_type = "application/json" if scope["path"].startswith(_MEM0_PATHS) else MEDIA_TYPE
    raw_path = scope.get("raw_path")
    title, detail, language = _in_language(scope, known_kind.title, detail)
    problem = {
        "type": f"urn:roomlore:{known_kind.name}",
        "title": title,
        "status": status,
        "detail": detail,
        "instance": raw_path.decode("ascii", "replace") if raw_path else scope["path"],
        "request_id": scope.get("state", {}).get("request_id", ""),
    }
    spoken = {"Content-Language": language, "Vary": "Accept-Language"}
    return Response(dump(problem), status, {**spoken, **(headers or {})}, media_type)


def _in_language(scope: Mapping[str, Any], title: str, detail: str) -> tuple[str, str, str]:
    """Return the texts in the language of the request, and the language. They are English if a part has no Chinese."""
    language = _wanted(scope)
    text = text_of(detail, language)
    return (title, text, "en") if text == detail else (text_of(title, language), text, language)


def in_language(scope: Mapping[str, Any], sentence: str) -> str:
    """Return what an answer says to people, in Chinese if the request prefers it and there is a Chinese text."""
    return text_of(sentence, _wanted(scope))


def _wanted(scope: Mapping[str, Any]) -> str:
    return preferred(Headers(raw=scope.get("headers", [])).get("accept-language", ""))


def _in_openai_form(status: int, detail: str, headers: Mapping[str, str] | None, problem_kind: Kind) -> Response:
    """Return the error as clients of OpenAI's protocol read it. Its status for bad input is 400."""
    shown = 400 if status == 422 else status
    error = {
        "message": detail,
        "type": _OPENAI_TYPES.get(shown, "server_error" if shown >= 500 else "invalid_request_error"),
        "param": None,
        "code": _OPENAI_CODES.get(problem_kind.name, problem_kind.name.replace("-", "_")),
    }
    return Response(dump({"error": error}), shown, dict(headers or {}), "application/json")


def status_of(error: errors.RoomloreError) -> int:
    """Return the HTTP status of an error: its own, or that of its nearest base class."""
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def of_roomlore(scope: Mapping[str, Any], error: errors.RoomloreError) -> Response:
    status = status_of(error)
    headers = {"Retry-After": _RETRY_SECONDS} if status == 503 else None
    if isinstance(error, errors.QuotaExceeded | errors.ModelUnavailable) and error.wait_seconds is not None:
        seconds = error.wait_seconds
        headers = {"Retry-After": str(max(ceil(seconds), 1))} if isfinite(seconds) else None
    return respond(scope, status, str(error), headers, kind=_OWN_KINDS.get(type(error)))


async def on_roomlore(request: Request, error: Exception) -> Response:
    assert isinstance(error, errors.RoomloreError)
    return of_roomlore(request.scope, error)


async def on_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = error.detail if isinstance(error, Refused) else _HINTS.get(error.status_code, str(error.detail))
    headers = error.headers
    if error.status_code == 405:
        headers = {**(headers or {}), "Allow": ", ".join(_methods(request))}
    return respond(request.scope, error.status_code, detail, headers)


def _methods(request: Request) -> list[str]:
    """Return the methods of the path. Starlette returns those of its first route only."""
    path = getattr(request.scope.get("route"), "path", None)
    routes = [route for route in request.app.routes if isinstance(route, Route | APIRoute) and route.path == path]
    return sorted({method for route in routes for method in route.methods or ()})


async def on_bad_parameters(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return respond(request.scope, 422, in_words(error.errors()))
