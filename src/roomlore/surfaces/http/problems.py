"""Errors as RFC 9457 problem details: every one says what happened and what to do."""

from collections.abc import Mapping
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from roomlore.core import errors
from roomlore.surfaces.findings import in_words
from roomlore.surfaces.http.replies import dump

MEDIA_TYPE = "application/problem+json"

STATUS: Mapping[type[errors.RoomloreError], int] = {
    errors.RoomloreError: 500,
    errors.NotFound: 404,
    errors.InvalidInput: 422,
    errors.Conflict: 409,
    errors.BudgetTooSmall: 422,
    errors.BadModelOutput: 502,
    errors.Forbidden: 403,
    errors.Unavailable: 503,
    errors.StorageUnavailable: 503,
    errors.VectorsUnavailable: 503,
    errors.CacheUnavailable: 503,
    errors.ModelUnavailable: 503,
}

_KINDS: Mapping[int, tuple[str, str]] = {
    400: ("unreadable", "The request cannot be read"),
    401: ("key-needed", "An API key is needed"),
    403: ("forbidden", "Not allowed"),
    404: ("not-found", "Not found"),
    405: ("method-not-allowed", "Method not allowed"),
    409: ("conflict", "Conflict with what is stored"),
    413: ("too-large", "The request is too large"),
    415: ("unsupported-content-type", "The content type is not supported"),
    422: ("invalid-input", "The input cannot be used as it is"),
    500: ("error", "Something went wrong in roomlore"),
    502: ("bad-model-output", "A model's answer cannot be used"),
    503: ("unavailable", "Something roomlore depends on does not answer"),
}
_OWN_KINDS: Mapping[type[errors.RoomloreError], tuple[str, str]] = {
    errors.BudgetTooSmall: ("budget-too-small", "What must be shown does not fit the window"),
}
"""Of errors that share their status with another kind."""
_HINTS: Mapping[int, str] = {
    404: "There is nothing at this path; /openapi.json lists what there is.",
    405: "This path does not take this method; /openapi.json lists those it takes.",
}
_RETRY_SECONDS = "2"


class Problem(BaseModel):
    """An RFC 9457 problem."""

    type: str = Field(description="A URN naming the kind of problem.", examples=["urn:roomlore:not-found"])
    title: str
    status: int
    detail: str = Field(description="What happened and what to do.")
    instance: str = Field(description="The path that was asked for.")
    request_id: str = Field(description="The id under which the log knows this request.")


class Refused(HTTPException):
    """A request turned away before any service saw it."""


def respond(
    scope: Mapping[str, Any],
    status: int,
    detail: str,
    headers: Mapping[str, str] | None = None,
    *,
    kind: tuple[str, str] | None = None,
) -> Response:
    """The problem as a response. `kind`: its name and title, by default those of the status."""
    name, title = kind or _KINDS.get(status, ("error", "The request failed"))
    raw_path = scope.get("raw_path")
    problem = {
        "type": f"urn:roomlore:{name}",
        "title": title,
        "status": status,
        "detail": detail,
        "instance": raw_path.decode("ascii", "replace") if raw_path else scope["path"],
        "request_id": scope.get("state", {}).get("request_id", ""),
    }
    return Response(dump(problem), status, dict(headers or {}), MEDIA_TYPE)


def status_of(error: errors.RoomloreError) -> int:
    """The HTTP status of an error: its own, or that of the nearest class above it."""
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def of_roomlore(scope: Mapping[str, Any], error: errors.RoomloreError) -> Response:
    status = status_of(error)
    headers = {"Retry-After": _RETRY_SECONDS} if status == 503 else None
    return respond(scope, status, str(error), headers, kind=_OWN_KINDS.get(type(error)))


async def on_roomlore(request: Request, error: Exception) -> Response:
    assert isinstance(error, errors.RoomloreError)
    return of_roomlore(request.scope, error)


async def on_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = error.detail if isinstance(error, Refused) else _HINTS.get(error.status_code, str(error.detail))
    return respond(request.scope, error.status_code, detail, error.headers)


async def on_bad_parameters(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return respond(request.scope, 422, in_words(error.errors()))
