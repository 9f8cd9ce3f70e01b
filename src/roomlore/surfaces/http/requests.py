"""One line of log and one id for every request, and a problem for every error that nothing else caught."""

import re
import time
import uuid

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roomlore.surfaces.http import problems
from roomlore.surfaces.logs import where

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

log = structlog.get_logger(__name__)


class RequestLog:
    """Logs method, route, status, time and tenant; never ids, queries, bodies or keys."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(Headers(scope=scope))
        scope["state"] = {**scope.get("state", {}), "request_id": request_id}
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            await self._answer(scope, receive, send, request_id)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, request_id: str) -> None:
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
            log.error("request failed", error=type(error).__name__, where=where(error))
            if not status:
                detail = f"An error nobody foresaw; the log says where, under request {request_id}."
                await problems.respond(scope, 500, detail)(scope, receive, note)
        log.info("request", **_facts(scope), status=status, ms=round((time.perf_counter() - begun) * 1000, 2))


def _request_id(headers: Headers) -> str:
    given = headers.get("x-request-id", "")
    return given if _ID.fullmatch(given) else uuid.uuid4().hex


def _facts(scope: Scope) -> dict[str, str]:
    caller = scope["state"].get("caller")
    route = getattr(scope.get("route"), "path", "unknown")
    return {"method": scope["method"], "route": route, "tenant": caller.lore.tenant if caller else ""}
