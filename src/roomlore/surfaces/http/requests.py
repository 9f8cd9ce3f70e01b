"""One line of log and one id for every request, and a problem for every error that nothing else caught."""

import re
import time
import uuid
from contextlib import AbstractContextManager, nullcontext

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roomlore.ports.coordination import Span
from roomlore.surfaces.http import problems
from roomlore.surfaces.logs import where
from roomlore.wiring import Lore

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_QUIET = frozenset({"/health/live", "/health/ready"})
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

log = structlog.get_logger(__name__)


class RequestLog:
    """Logs method, route, status, time and tenant, and spans them; never ids, queries, bodies or keys. A health check
    that goes well is logged at level debug."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = _request_id(headers)
        scope["state"] = {**scope.get("state", {}), "request_id": request_id}
        with structlog.contextvars.bound_contextvars(request_id=request_id), _span(scope, headers) as span:
            span.note("request_id", request_id)
            status = await self._answer(scope, receive, send, request_id)
            span.note("http.route", _facts(scope)["route"])
            span.note("http.response.status_code", status)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, request_id: str) -> int:
        """The status that was sent; 0 where the caller left before."""
        begun, status = time.perf_counter(), 0

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-Id"] = request_id
            await send(message)

        try:
            await self._app(scope, receive, note)
        except Exception as error:  # noqa: BLE001 - the surface's boundary: the caller gets a problem, the log the place
            _tell(scope, error)
            log.error("request failed", error=type(error).__name__, where=where(error))
            if not status:
                detail = f"An error nobody foresaw; the log says where, under request {request_id}."
                await problems.respond(scope, 500, detail)(scope, receive, note)
        seconds = time.perf_counter() - begun
        # Whoever asks every few seconds whether the service is well would fill the log with the answer.
        write = log.debug if scope["path"] in _QUIET and status < 400 else log.info
        write("request", **_facts(scope), status=status, ms=round(seconds * 1000, 2))
        _measure(scope, status, seconds)
        return status


def _tell(scope: Scope, error: Exception) -> None:
    """Whoever wants to know of errors that nobody foresaw, where the application is open."""
    lore = getattr(scope["app"].state, "lore", None)
    if isinstance(lore, Lore):
        facts = _facts(scope)
        lore.telemetry.unforeseen(error, attributes={"method": facts["method"], "route": facts["route"]})


def _measure(scope: Scope, status: int, seconds: float) -> None:
    """Where the application is open. Only what there is a fixed number of becomes a label."""
    lore = getattr(scope["app"].state, "lore", None)
    if isinstance(lore, Lore):
        facts = _facts(scope)
        method = facts["method"] if facts["method"] in _METHODS else "other"
        labels = {"method": method, "route": facts["route"], "status": f"{status // 100}xx" if status else "left"}
        lore.telemetry.observe("roomlore_http_request_seconds", seconds, labels=labels)


def _span(scope: Scope, headers: Headers) -> AbstractContextManager[Span]:
    """Of the request, where the application is open."""
    lore = getattr(scope["app"].state, "lore", None)
    if not isinstance(lore, Lore):
        return nullcontext(_Unseen())
    method = scope["method"]
    return lore.telemetry.span(method, attributes={"http.request.method": method}, headers=dict(headers))


class _Unseen:
    """The port `Span` while nothing is open."""

    def note(self, name: str, value: str | float) -> None:
        """Goes nowhere."""


def _request_id(headers: Headers) -> str:
    given = headers.get("x-request-id", "")
    return given if _ID.fullmatch(given) else uuid.uuid4().hex


def _facts(scope: Scope) -> dict[str, str]:
    caller = scope["state"].get("caller")
    route = getattr(scope.get("route"), "path", "unknown")
    return {"method": scope["method"], "route": route, "tenant": caller.lore.tenant if caller else ""}
