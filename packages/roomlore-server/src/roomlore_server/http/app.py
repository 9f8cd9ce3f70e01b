"""The FastAPI application: its routes, the log of requests, and its OpenAPI document."""

import asyncio
import re
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from importlib.metadata import version
from typing import Any, NamedTuple

import structlog
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roomlore.core.errors import RoomloreError, UnknownRoom
from roomlore.core.texts import sentences
from roomlore.ports.coordination import Span
from roomlore.settings import Settings
from roomlore.surfaces.logs import where
from roomlore.surfaces.long_work import LongWork
from roomlore.wiring import Lore, open_lore
from roomlore_server.http import message_routes, problems
from roomlore_server.http.console_route import console_pages, new_live, new_watch, prepare_pages
from roomlore_server.http.fact_routes import facts, recall
from roomlore_server.http.guard import OPEN_PATHS, Guard, caller_of, needed_viewer, protected_resource
from roomlore_server.http.mcp_route import mcp_if_there, mcp_route
from roomlore_server.http.mem0_routes import mem0_api
from roomlore_server.http.memory_routes import evolutions, memory_router
from roomlore_server.http.openai_routes import openai_protocol
from roomlore_server.http.paths import RawPaths
from roomlore_server.http.planned import PlannedRoutes
from roomlore_server.http.privacy_routes import audience, privacy
from roomlore_server.http.reply_routes import chat
from roomlore_server.http.room_routes import rooms
from roomlore_server.http.routers import Router
from roomlore_server.http.service_routes import jobs, models, service, usage
from roomlore_server.http.session_routes import sessions

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_QUIET = frozenset({"/health/live", "/health/ready"})
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

log = structlog.get_logger(__name__)


class RequestLog:
    """Logs method, route, status, time and tenant of each request, and makes a span of it; never ids, queries, bodies
    or keys. A health check that succeeds is logged at level debug."""

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
        """Handle the request and return the status that was sent; 0 if the client disconnected before."""
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
        # Health checks every few seconds would fill the log.
        write = log.debug if scope["path"] in _QUIET and status < 400 else log.info
        write("request", **_facts(scope), status=status, ms=round(seconds * 1000, 2))
        _measure(scope, status, seconds)
        return status


def _tell(scope: Scope, error: Exception) -> None:
    """Report an unexpected error, if the application is open."""
    lore = getattr(scope["app"].state, "lore", None)
    if isinstance(lore, Lore):
        facts = _facts(scope)
        lore.telemetry.unforeseen(error, attributes={"method": facts["method"], "route": facts["route"]})


def _measure(scope: Scope, status: int, seconds: float) -> None:
    """Record the time, if the application is open. Labels have a fixed number of values."""
    lore = getattr(scope["app"].state, "lore", None)
    if isinstance(lore, Lore):
        facts = _facts(scope)
        method = facts["method"] if facts["method"] in _METHODS else "other"
        labels = {"method": method, "route": facts["route"], "status": f"{status // 100}xx" if status else "left"}
        lore.telemetry.observe("roomlore_http_request_seconds", seconds, labels=labels)


def _span(scope: Scope, headers: Headers) -> AbstractContextManager[Span]:
    """Return a span of the request, if the application is open."""
    lore = getattr(scope["app"].state, "lore", None)
    if not isinstance(lore, Lore):
        return nullcontext(_NoSpan())
    method = scope["method"]
    return lore.telemetry.span(method, attributes={"http.request.method": method}, headers=headers)


class _NoSpan:
    """The port `Span` while the application is not open."""

    def note(self, name: str, value: str | float) -> None:
        """Do nothing."""


def _request_id(headers: Headers) -> str:
    given = headers.get("x-request-id", "")
    return given if _ID.fullmatch(given) else uuid.uuid4().hex


def _facts(scope: Scope) -> dict[str, str]:
    caller = scope["state"].get("caller")
    route = getattr(scope.get("route"), "path", "unknown")
    return {"method": scope["method"], "route": route, "tenant": caller.lore.tenant if caller else ""}


_ABOUT = "The memory layer for chat agents: messages in, the ones that matter out, each with its reason."
_LIMITS = ("maxLength", "maxItems", "maximum")
_KEY: Mapping[str, Any] = {
    "type": "http",
    "scheme": "bearer",
    "description": "An API key. While none exists, this machine may ask without one.",
}


class _Served(NamedTuple):
    """The routers of an application, and their routes, which all applications of the process share."""

    routers: tuple[Router, ...]
    routes: tuple[BaseRoute, ...]

    @classmethod
    def of(cls, *routers: Router) -> "_Served":
        routes = [route for router in routers for route in router.routes]
        return cls(routers, (PlannedRoutes(route for route in routes if isinstance(route, APIRoute)), *routes))

    def documented(self) -> list[BaseRoute]:
        """Return the routes with the schemas of what they take and answer."""
        return [route for router in self.routers for route in router.documented(_problems()).routes]


_OF_MCP = _Served.of(service)
_OF_ALL = _Served.of(
    message_routes.messages,
    message_routes.contexts,
    usage,
    rooms,
    sessions,
    facts,
    evolutions,
    memory_router,
    audience,
    privacy,
    recall,
    chat,
    openai_protocol,
    mem0_api,
    models,
    jobs,
    service,
)


def create_app(source: Lore | Settings) -> FastAPI:
    """Return the application over an open roomlore, or over one that it opens at start and closes at the end."""
    app = _app(source, _OF_ALL)
    app.router.routes.append(mcp_if_there(app.state.settings))
    app.state.live = new_live()
    app.router.routes.extend(console_pages())
    return app


def create_mcp_app(
    source: Lore | Settings, *, scope: str | None = None, viewer: str | None = None, read_only: bool = False
) -> FastAPI:
    """Return an application with MCP and the health of the service only, behind the same guard. `scope`: the default
    scope of memories. `viewer`: to whom all answers are shown. `read_only`: without the tools that change memories."""
    app = _app(source, _OF_MCP, read_only=read_only)
    app.router.routes.append(mcp_route(app.state.settings, scope=scope, viewer=viewer, read_only=read_only))
    return app


def _app(source: Lore | Settings, served: _Served, *, read_only: bool = False) -> FastAPI:
    app = _App(
        title="roomlore",
        version=version("roomlore"),
        description=_ABOUT,
        lifespan=_opening(source) if isinstance(source, Settings) else None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.settings = source if isinstance(source, Settings) else source.settings
    app.state.protected = protected_resource(app.state.settings, read_only=read_only)
    app.state.process_metrics = None
    app.state.long_work = LongWork()
    app.state.watch = new_watch()
    app.state.live = None
    app.state.parsing = asyncio.Lock()
    app.state.measuring = asyncio.Lock()
    if isinstance(source, Lore):
        app.state.lore = source
    app.state.served = served
    app.router.routes.extend(served.routes)
    if app.state.protected is not None:
        app.router.routes.extend(app.state.protected.routes())
    for middleware in (Guard, RawPaths, RequestLog):
        app.add_middleware(middleware)
    _explain_errors(app)
    return app


class _App(FastAPI):
    """The application. Its OpenAPI document includes what routes check in code."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            own = self.state.served.routes
            document = get_openapi(
                title=self.title,
                version=self.version,
                openapi_version=self.openapi_version,
                description=self.description,
                tags=self.openapi_tags,
                servers=self.servers,
                routes=[*self.state.served.documented(), *(route for route in self.routes if route not in own)],
            )
            document["components"]["securitySchemes"] = {"key": _KEY}
            for path, operations in document["paths"].items():
                for operation in operations.values():
                    _say_what_streams(operation)
                    operation["security"] = [{}] if path in OPEN_PATHS else [{"key": []}, {}]
                    for parameter in operation.get("parameters", ()):
                        _say_what_is_needed(parameter)
            _fill_in(document["paths"], self.state.settings)
            self.openapi_schema = document
        return self.openapi_schema or {}


def _problems() -> dict[str, Any]:
    content = {problems.MEDIA_TYPE: {"schema": problems.Problem.model_json_schema()}}
    return {status: {"description": "A problem (RFC 9457).", "content": content} for status in ("4XX", "5XX")}


def _say_what_streams(operation: dict[str, Any]) -> None:
    """Describe event streams, which FastAPI describes as one text."""
    for answer in operation["responses"].values():
        for content in answer.get("content", {}).values():
            if "itemSchema" in content:
                content.pop("schema", None)


def _say_what_is_needed(parameter: dict[str, Any]) -> None:
    if parameter.get("description", "").endswith("Needed."):
        schema = parameter["schema"]
        schema.pop("default", None)
        if "null" in [choice.get("type") for choice in schema.get("anyOf", ())]:
            (form,) = (choice for choice in schema.pop("anyOf") if choice.get("type") != "null")
            schema |= form
        parameter["required"], schema["minLength"] = True, 1


def _fill_in(part: Any, settings: Settings) -> None:
    """Replace names of settings that stand as limits by their values."""
    if isinstance(part, list):
        for inner in part:
            _fill_in(inner, settings)
    elif isinstance(part, dict):
        for name, inner in part.items():
            if name in _LIMITS and isinstance(inner, str):
                part[name] = getattr(settings, inner)
            else:
                _fill_in(inner, settings)


@asynccontextmanager
async def beside(app: FastAPI, lore: Lore) -> AsyncIterator[None]:
    """Run background work and measuring while the application is served, and make ready what a first visit needs."""
    async with app.state.long_work.ending(), app.state.watch.watching(lore):
        ready = asyncio.create_task(_prepare(app, lore))
        try:
            yield
        finally:
            await asyncio.wait([ready])


async def _prepare(app: FastAPI, lore: Lore) -> None:
    if app.state.live is not None:
        await prepare_pages(lore)


def _opening(settings: Settings) -> Any:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        opened = open_lore(settings=settings, background=settings.work.work_in_server)
        async with opened as lore, beside(app, lore):
            app.state.lore = lore
            yield

    return lifespan


async def _on_unknown_room(request: Request, error: Exception) -> Response:
    """Return the problem, with the rooms that were meant perhaps, of those that the answer may be about."""
    assert isinstance(error, UnknownRoom)
    caller = await caller_of(request)
    try:
        viewer = needed_viewer(caller, request.query_params.get("viewer"))
        meant = await caller.need("read").rooms.meant(error.room_id, viewer=viewer)
    except RoomloreError:
        meant = ""
    return problems.of_roomlore(request.scope, UnknownRoom(sentences(str(error), meant)))


def _explain_errors(app: FastAPI) -> None:
    app.add_exception_handler(RoomloreError, problems.on_roomlore)
    app.add_exception_handler(UnknownRoom, _on_unknown_room)
    app.add_exception_handler(HTTPException, problems.on_refusal)
    app.add_exception_handler(RequestValidationError, problems.on_bad_parameters)
