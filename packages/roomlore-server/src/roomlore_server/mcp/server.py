"""The MCP server over one visitor's roomlore, its endpoint for HTTP, and serving on standard input and output."""

import asyncio
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from typing import Any

import structlog
from mcp import MCPError, stdio_server, types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic import ValidationError
from starlette.types import Receive, Scope, Send

from roomlore.core import DEFAULT_TENANT, errors
from roomlore.core.audience import check_viewer
from roomlore.core.memory.memory import check_scope
from roomlore.settings import Settings
from roomlore.surfaces.logs import where
from roomlore.wiring import open_lore
from roomlore_server.mcp.answers import NOTICE
from roomlore_server.mcp.tools import TOOLS, Tool, Visitor
from roomlore_server.shapes import in_words

INSTRUCTIONS = (
    "roomlore remembers what was said in chats. Call memory_prompt or search_memories before you answer about a "
    "person or a group, add_memory when somebody tells something worth keeping, and room_context before you answer a "
    f"message of a room. {NOTICE}"
)
_READ_ONLY = "This server only reads for you; memories cannot be changed here. Tell the user what you would change."
_UNFORESEEN = "An error nobody foresaw; the log of the server says where. Go on without this tool."
_AGAIN: Mapping[type[errors.RoomloreError], str] = {
    errors.Conflict: "Read it again with get_memory, then repeat the change on what is there now.",
    errors.Unavailable: "Try again in a moment.",
}

log = structlog.get_logger(__name__)


def make_server(visitor: Visitor) -> Server[Any]:
    """Return a server of the tools that the visitor may use."""
    tools = {tool.name: tool for tool in TOOLS if visitor.may_write or not tool.writes}

    async def list_tools(_: Any, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool.declared() for tool in tools.values()])

    async def call_tool(_: Any, wanted: types.CallToolRequestParams) -> types.CallToolResult:
        tool = tools.get(wanted.name)
        if tool is None:
            return _no_such(wanted.name, tools)
        return await _called(tool, visitor, wanted.arguments or {})

    return Server(
        "roomlore",
        version=version("roomlore"),
        title="roomlore",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _called(tool: Tool, visitor: Visitor, given: Mapping[str, Any]) -> types.CallToolResult:
    begun, became = time.perf_counter(), "broken off"
    try:
        answer = await tool.run(visitor, tool.takes.model_validate(given))
        became = "answered"
        return _result_of(answer.to_json())
    except ValidationError as error:
        became = "refused"
        return _failed(in_words(error.errors(), tool.takes.model_fields))
    except errors.RoomloreError as error:
        became = "refused"
        return _failed(_in_words(error, tool, await _meant(error, visitor)))
    except Exception as error:  # noqa: BLE001 - the surface's boundary: the model gets a sentence, the log the place
        became = "failed"
        visitor.lore.telemetry.unforeseen(error, attributes={"tool": tool.name})
        log.error("tool failed", tool=tool.name, error=type(error).__name__, where=where(error))
        return _failed(_UNFORESEEN)
    finally:
        log.info("tool", tool=tool.name, became=became, ms=round((time.perf_counter() - begun) * 1000, 2))


def _result_of(answer: dict[str, Any]) -> types.CallToolResult:
    """Return the answer as data, and as text for hosts that do not show data to a model."""
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], structured_content=answer)


def _failed(sentence: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=sentence)], is_error=True)


async def _meant(error: errors.RoomloreError, visitor: Visitor) -> str:
    """Return which rooms an unknown one may mean, of those that the visitor may see; '' if there are none."""
    if not isinstance(error, errors.UnknownRoom):
        return ""
    with suppress(errors.RoomloreError):
        return await visitor.lore.rooms.meant(error.room_id, viewer=visitor.viewer)
    return ""


def _in_words(error: errors.RoomloreError, tool: Tool, meant: str) -> str:
    more = meant or (tool.if_lost if isinstance(error, errors.NotFound) else "")
    more = more or next((_AGAIN[kind] for kind in type(error).__mro__ if kind in _AGAIN), "")
    return f"{error} {more}".rstrip()


def _no_such(name: str, tools: Mapping[str, Tool]) -> types.CallToolResult:
    if any(tool.name == name for tool in TOOLS):
        return _failed(_READ_ONLY)
    raise MCPError(types.INVALID_PARAMS, f"There is no tool {name!r:.80}; there are {', '.join(tools)}.")


class McpEndpoint:
    """Handles each POST by itself, so that requests share no key and no process state.

    `visitor_of`: the sender of a request, from its scope; the caller handles its errors. The caller also checks first
    that the request is allowed (its key, its Host).
    """

    def __init__(self, visitor_of: Callable[[Scope], Visitor], *, max_body_bytes: int) -> None:
        self._visitor_of = visitor_of
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        server = make_server(self._visitor_of(scope))
        exchange = StreamableHTTPSessionManager(server, stateless=True, max_request_body_size=self._max_body_bytes)
        async with exchange.run():
            await exchange.handle_request(scope, receive, send)


_STANDARD_INPUT = 0
_WAITING_LINES = 16


async def serve_stdio(
    settings: Settings,
    *,
    tenant: str = DEFAULT_TENANT,
    scope: str | None = None,
    viewer: str | None = None,
    read_only: bool = False,
) -> None:
    """Serve until standard input ends or the process is told to stop. Meanwhile other output to standard output goes to
    standard error.

    `scope`: the default scope of a call. `viewer`: to whom the answers are shown, None for everything. `read_only`:
    without the tools that change memories. Raises `InvalidInput` and `StorageUnavailable`.
    """
    whose = None if scope is None else check_scope(scope)
    whom = None if viewer is None else str(check_viewer(viewer))
    with _ending_when_told():
        async with open_lore(settings=settings, tenant=tenant, background=settings.work.work_in_server) as lore:
            server = make_server(Visitor(lore=lore, may_write=not read_only, scope=whose, viewer=whom))
            lines: Any = _Lines()
            async with stdio_server(stdin=lines) as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())


@contextmanager
def _ending_when_told() -> Iterator[None]:
    """End the block in good order at the first SIGINT or SIGTERM; the second one ends the process at once."""
    loop, task, stopped = asyncio.get_running_loop(), asyncio.current_task(), threading.Event()
    assert task is not None

    def hear(*_: object) -> None:
        stopped.set()
        for number, handler in before.items():
            signal.signal(number, handler)
        loop.call_soon_threadsafe(task.cancel)

    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except asyncio.CancelledError:
        if not stopped.is_set():
            raise
        task.uncancel()


class _Lines:
    """The lines of standard input, read by a daemon thread: a read cannot be cancelled."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._read: asyncio.Queue[str] = asyncio.Queue(_WAITING_LINES)
        threading.Thread(target=self._follow, name="standard input", daemon=True).start()

    def __aiter__(self) -> "_Lines":
        return self

    async def __anext__(self) -> str:
        line = await self._read.get()
        if not line:
            raise StopAsyncIteration
        return line

    def _follow(self) -> None:
        with open(_STANDARD_INPUT, encoding="utf-8", errors="replace", closefd=False) as lines:
            while self._hand_over(line := lines.readline()) and line:
                pass

    def _hand_over(self, line: str) -> bool:
        """Pass on a line. Return False if nobody reads any more."""
        put = self._read.put(line)
        try:
            asyncio.run_coroutine_threadsafe(put, self._loop).result()
        except RuntimeError:
            put.close()
            return False
        return True
