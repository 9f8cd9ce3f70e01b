"""MCP beside the HTTP API, behind the same guard, or as a service of its own."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roomlore.core.audience import check_viewer
from roomlore.core.errors import InvalidInput
from roomlore.core.memory.memory import check_scope
from roomlore.settings import Settings
from roomlore_server.http.bodies import Bounds, read_body
from roomlore_server.http.guard import MCP_PATH, Caller, needed_viewer
from roomlore_server.http.problems import Refused

if TYPE_CHECKING:
    from roomlore_server.mcp import Visitor

_NEEDED = "MCP needs the extra `mcp` where roomlore runs: pip install 'roomlore[mcp]'."


def mcp_route(
    settings: Settings, *, scope: str | None = None, viewer: str | None = None, read_only: bool = False
) -> Route:
    """Return the route POST /mcp. `scope`: the default if neither a call nor the address names one. `viewer`: to whom
    the answers are shown, whatever the address says. `read_only`: memories cannot be changed, whatever the key allows.
    Raises `ModuleNotFoundError` without the extra `mcp`."""
    return _Known(_endpoint(settings, scope=scope, viewer=viewer, read_only=read_only))


def mcp_if_there(settings: Settings) -> Route:
    """Return the route POST /mcp. Without the extra `mcp` it answers what to install."""
    return _Known(_Later(settings))


def _endpoint(
    settings: Settings, *, scope: str | None = None, viewer: str | None = None, read_only: bool = False
) -> ASGIApp:
    from roomlore_server.mcp import McpEndpoint, Visitor

    def visitor_of(request: Scope) -> Visitor:
        return _visitor(Visitor, request, scope, viewer, read_only=read_only)

    bounds = Bounds.small(settings)
    return _Bounded(McpEndpoint(visitor_of, max_body_bytes=bounds.size), bounds)


def _visitor(
    make: Callable[..., "Visitor"], request: Scope, scope: str | None, viewer: str | None, *, read_only: bool
) -> "Visitor":
    caller: Any = request["state"]["caller"]
    assert isinstance(caller, Caller)
    request_names = _names_in(request)
    writes = bool({"write", "admin"} & caller.scopes) and not read_only
    lore = caller.need("read")
    scope = check_scope(request_names["scope"]) if "scope" in request_names else scope or caller.viewer
    shown_to = str(check_viewer(viewer)) if viewer else needed_viewer(caller, request_names.get("viewer"))
    return make(lore=lore, may_write=writes, scope=scope, viewer=shown_to)


def _names_in(request: Scope) -> dict[str, str]:
    """Return the parameters of the address, as in /mcp?scope=user:anna&viewer=room:team."""
    given = parse_qs(request.get("query_string", b"").decode("utf-8", "replace"))
    strange = sorted(set(given) - {"scope", "viewer"})
    if strange:
        raise InvalidInput("mcp_parameter_unknown", name=f"{strange[0]!r:.80}", path=MCP_PATH)
    return {name: values[-1] for name, values in given.items()}


class _Known(Route):
    """Writes its name into the log of requests."""

    def __init__(self, endpoint: ASGIApp) -> None:
        super().__init__(MCP_PATH, endpoint, methods=["POST"], include_in_schema=False)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = self
        await super().handle(scope, receive, send)


class _Bounded:
    """Reads the body within its limits and passes it on as a whole."""

    def __init__(self, endpoint: ASGIApp, bounds: Bounds) -> None:
        self._endpoint = endpoint
        self._bounds = bounds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        pieces = [await read_body(Request(scope, receive), self._bounds)]

        async def whole() -> Message:
            return {"type": "http.request", "body": pieces.pop()} if pieces else await receive()

        await self._endpoint(scope, whole, send)


class _Later:
    """Loads MCP at the first request, on a thread: it takes 0.4 s and 25 MB, and most servers get none."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._loading = asyncio.Lock()
        self._loaded: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._loading:
            if self._loaded is None:
                self._loaded = await asyncio.to_thread(self._load)
        await self._loaded(scope, receive, send)

    def _load(self) -> ASGIApp:
        try:
            return _endpoint(self._settings)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "mcp":
                raise
            raise Refused(501, _NEEDED) from error
