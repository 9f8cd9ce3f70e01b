"""The MCP server over one visitor's roomlore."""

import json
import time
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import structlog
from mcp import MCPError, types
from mcp.server.lowlevel import Server
from pydantic import ValidationError

from roomlore.core import errors
from roomlore.surfaces.findings import in_words
from roomlore.surfaces.logs import where
from roomlore.surfaces.mcp.answers import NOTICE
from roomlore.surfaces.mcp.tool import Tool, Visitor
from roomlore.surfaces.mcp.tools import TOOLS

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
    """A server of the tools that the visitor may use."""
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
        return _said(answer.plain())
    except ValidationError as error:
        became = "refused"
        return _failed(in_words(error.errors(), tool.takes.model_fields))
    except errors.RoomloreError as error:
        became = "refused"
        return _failed(_in_words(error, tool))
    except Exception as error:  # noqa: BLE001 - the surface's boundary: the model gets a sentence, the log the place
        became = "failed"
        visitor.lore.telemetry.unforeseen(error, attributes={"tool": tool.name})
        log.error("tool failed", tool=tool.name, error=type(error).__name__, where=where(error))
        return _failed(_UNFORESEEN)
    finally:
        log.info("tool", tool=tool.name, became=became, ms=round((time.perf_counter() - begun) * 1000, 2))


def _said(answer: dict[str, Any]) -> types.CallToolResult:
    """The answer as data, and as text for hosts that show a model no data."""
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], structured_content=answer)


def _failed(sentence: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=sentence)], is_error=True)


def _in_words(error: errors.RoomloreError, tool: Tool) -> str:
    more = tool.if_lost if isinstance(error, errors.NotFound) else ""
    more = more or next((_AGAIN[kind] for kind in type(error).__mro__ if kind in _AGAIN), "")
    return f"{error} {more}".rstrip()


def _no_such(name: str, tools: Mapping[str, Tool]) -> types.CallToolResult:
    if any(tool.name == name for tool in TOOLS):
        return _failed(_READ_ONLY)
    raise MCPError(types.INVALID_PARAMS, f"There is no tool {name!r:.80}; there are {', '.join(tools)}.")
