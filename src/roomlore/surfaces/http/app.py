"""The HTTP service as an ASGI application."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from roomlore.core.errors import RoomloreError
from roomlore.core.records import ROOM_NAMES
from roomlore.settings import Settings
from roomlore.surfaces.http import problems, routes
from roomlore.surfaces.http.chat_routes import chat
from roomlore.surfaces.http.console_route import console_pages, new_watch
from roomlore.surfaces.http.evolution_routes import evolutions
from roomlore.surfaces.http.fact_routes import facts
from roomlore.surfaces.http.guard import OPEN_PATHS, Guard
from roomlore.surfaces.http.job_routes import jobs
from roomlore.surfaces.http.mcp_route import mcp_if_there, mcp_route
from roomlore.surfaces.http.memory_routes import memories
from roomlore.surfaces.http.model_routes import models
from roomlore.surfaces.http.paths import PAGE_LIMIT, RawPaths
from roomlore.surfaces.http.privacy_routes import privacy
from roomlore.surfaces.http.recall_routes import recall
from roomlore.surfaces.http.requests import RequestLog
from roomlore.surfaces.http.search_routes import search
from roomlore.surfaces.http.service_routes import service
from roomlore.surfaces.http.session_routes import sessions
from roomlore.surfaces.long_work import LongWork
from roomlore.wiring import Lore, open_lore

_ABOUT = "The memory layer for chat agents: messages in, the ones that matter out, each with its reason."
_KEY: Mapping[str, Any] = {
    "type": "http",
    "scheme": "bearer",
    "description": "An API key. While none exists, this machine may ask without one.",
}
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": "A problem (RFC 9457).",
        "content": {problems.MEDIA_TYPE: {"schema": problems.Problem.model_json_schema()}},
    }
    for status in ("4XX", "5XX")
}


def create_app(source: Lore | Settings) -> FastAPI:
    """The application over an open roomlore, or over one that it opens when it starts and closes when it stops."""
    rooms = (search, routes.messages, routes.contexts, routes.rooms, sessions)
    app = _app(source, *rooms, facts, evolutions, memories, privacy, recall, chat, models, jobs, service)
    app.router.routes.append(mcp_if_there(app.state.settings))
    app.router.routes.extend(console_pages())
    return app


def create_mcp_app(source: Lore | Settings, *, scope: str | None = None, read_only: bool = False) -> FastAPI:
    """MCP alone, with the health of the service, behind the same guard. `scope`: whose memories are meant where nobody
    says. `read_only`: without the tools that change memories."""
    app = _app(source, service)
    app.router.routes.append(mcp_route(app.state.settings, scope=scope, read_only=read_only))
    return app


def _app(source: Lore | Settings, *routers: APIRouter) -> FastAPI:
    app = _App(
        title="roomlore",
        version=version("roomlore"),
        description=_ABOUT,
        lifespan=_opening(source) if isinstance(source, Settings) else None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=_name,
    )
    app.state.settings = source if isinstance(source, Settings) else source.settings
    app.state.long_work = LongWork()
    app.state.watch = new_watch()
    app.state.parsing = asyncio.Lock()
    if isinstance(source, Lore):
        app.state.lore = source
    for router in routers:
        app.include_router(router, responses=_PROBLEMS)
    for middleware in (Guard, RawPaths, RequestLog):
        app.add_middleware(middleware)
    _explain_errors(app)
    return app


class _App(FastAPI):
    """The application. Its OpenAPI document also says what the routes check by hand."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            document = super().openapi()
            document["components"]["securitySchemes"] = {"key": _KEY}
            most: int = self.state.settings.max_page
            for path, operations in document["paths"].items():
                for operation in operations.values():
                    operation["security"] = [{}] if path in OPEN_PATHS else [{"key": []}, {}]
                    for parameter in operation.get("parameters", ()):
                        _say_what_is_checked(parameter, most)
        return self.openapi_schema or {}


def _say_what_is_checked(parameter: dict[str, Any], most: int) -> None:
    schema = parameter["schema"]
    # A room may go by any of its names, which OpenAPI cannot say.
    if parameter.get("description", "").endswith("Needed.") and parameter["name"] not in ROOM_NAMES:
        parameter["required"], schema["minLength"] = True, 1
        schema.pop("default", None)
    for kind in schema.get("anyOf", [schema]):
        if kind.get("description", "").startswith(PAGE_LIMIT):
            kind["maximum"] = most


@asynccontextmanager
async def beside(app: FastAPI, lore: Lore) -> AsyncIterator[None]:
    """What goes on beside the requests while the application is served: work that outlives them, and measuring."""
    async with app.state.long_work.ending(), app.state.watch.watching(lore):
        yield


def _opening(settings: Settings) -> Any:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        opened = open_lore(settings=settings, background=settings.work_in_server)
        async with opened as lore, beside(app, lore):
            app.state.lore = lore
            yield

    return lifespan


def _explain_errors(app: FastAPI) -> None:
    app.add_exception_handler(RoomloreError, problems.on_roomlore)
    app.add_exception_handler(HTTPException, problems.on_refusal)
    app.add_exception_handler(RequestValidationError, problems.on_bad_parameters)


def _name(route: APIRoute) -> str:
    return route.name
