"""MCP over streamable HTTP, as an ASGI application."""

from collections.abc import Callable

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

from roomlore.surfaces.mcp.server import make_server
from roomlore.surfaces.mcp.tool import Visitor


class McpEndpoint:
    """Answers each POST by itself, so that none rests on another's key or process.

    `visitor_of`: who sent a request, from its scope; what it raises is the caller's to answer. Whether a request may
    come at all (its key, its Host) is to be checked before.
    """

    def __init__(self, visitor_of: Callable[[Scope], Visitor], *, max_body_bytes: int) -> None:
        self._visitor_of = visitor_of
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        server = make_server(self._visitor_of(scope))
        exchange = StreamableHTTPSessionManager(server, stateless=True, max_request_body_size=self._max_body_bytes)
        async with exchange.run():
            await exchange.handle_request(scope, receive, send)
