"""The route of replies, with its request and its events."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial
from typing import Annotated, Any, Literal

import structlog
from fastapi import Depends, Request
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from starlette.responses import Response
from starlette.types import Scope

from roomlore.core.errors import InvalidInput
from roomlore.core.intake import MAX_ID_CHARS
from roomlore.core.models import Message, Role
from roomlore.core.replies.reply import MAX_ROUNDS, ReplyEvent, Tool, ToolResult
from roomlore.core.sessions.window import MAX_WINDOW
from roomlore.surfaces.jsonable import NAMES, named
from roomlore_server.http import bodies
from roomlore_server.http.bodies import MESSAGE_FIELDS, Bounds, OfRoom, described, needs_any, one_room
from roomlore_server.http.event_stream import EventStream, event, failure, written
from roomlore_server.http.guard import Writer
from roomlore_server.http.problems import Problem
from roomlore_server.http.routers import Router
from roomlore_server.shapes import model_of

log = structlog.get_logger(__name__)

_MAX_TOOLS = 128
_MAX_TOKENS = 10_000_000

_OF_A_MESSAGE = (
    "id", "room_id", "sender_id", "sender_name", "text", "sent_at", "reply_to", "root_id", "topic_id", "turn_id",
    "mentions", "metadata",
)  # fmt: skip
_ROOM: Mapping[str, Any] = {"required": ["room_id"], "properties": {"room_id": {"type": "string"}}}
_MESSAGE: Mapping[str, Any] = {
    "type": "object",
    "description": "As for POST /messages. The room may also be named here, instead of beside it.",
    "required": ["id", "sender_id"],
    "additionalProperties": False,
    "properties": {name: MESSAGE_FIELDS[name] for name in _OF_A_MESSAGE}
    | {
        "room_id": {**MESSAGE_FIELDS["room_id"], "type": ["string", "null"]},
        "role": {"anyOf": [{"enum": [Role.USER]}, {"type": "null"}]},
        "sent_at": {**MESSAGE_FIELDS["sent_at"], "description": "ISO 8601 or a Unix time; by default now."},
    },
}


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class FunctionForm(_Part):
    name: str = Field(pattern="^[A-Za-z0-9_-]{1,64}$")
    description: str | None = Field(None, max_length=65_536)
    parameters: dict[str, Any] | None = Field(None, description="A JSON schema of its arguments.")


class ToolForm(_Part):
    """A tool in OpenAI's form."""

    type: Literal["function"]
    function: FunctionForm

    def tool(self) -> Tool:
        form = self.function
        return Tool(form.name, form.description or "", form.parameters or {})


class ToolResultForm(_Part):
    """The result of a tool call."""

    tool_call_id: str = Field(min_length=1, max_length=MAX_ID_CHARS, description="The `id` of the call.")
    content: str = Field(description="Text for the model.")

    def result(self) -> ToolResult:
        return ToolResult(self.tool_call_id, self.content)


class ReplyBody(OfRoom):
    """A message to reply to, who replies, and options. The service chooses what is left out."""

    model_config = ConfigDict(json_schema_extra=needs_any(_ROOM, {"properties": {"message": _ROOM}}))

    room_id: str | None = Field(
        None,
        min_length=1,
        max_length=MAX_ID_CHARS,
        description="The room, unless the message names it; group_id, chat_id and conversation_id mean the same.",
    )
    message: Annotated[dict[str, Any], WithJsonSchema(dict(_MESSAGE))]
    agent_id: str = Field("assistant", min_length=1, max_length=MAX_ID_CHARS, description="Who replies.")
    agent_name: str = Field("", max_length=MAX_ID_CHARS, description="By what name.")
    model_id: str | None = Field(None, description="One of GET /models.")
    system_prompt: str | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    max_tokens: int | None = Field(
        None,
        ge=1,
        le=_MAX_TOKENS,
        description="Maximum number of tokens of the reply; fewer than the window has.",
    )
    model_context_window: int | None = Field(None, ge=1, le=MAX_WINDOW, description="What the model takes, in tokens.")
    tools: list[ToolForm] = Field([], max_length=_MAX_TOOLS, description="Tools that you call.")
    tool_results: list[ToolResultForm] = Field(
        [], max_length=_MAX_TOOLS, description="Of the calls that the reply to this message asked for."
    )
    max_tool_iterations: int | None = Field(
        None, ge=0, le=MAX_ROUNDS, description="How often the model may ask for tools."
    )

    def to_message(self) -> Message:
        """Return the message. Raises `InvalidInput`."""
        record = one_room(self.message)
        if self.room_id is not None and record.setdefault("room_id", self.room_id) != self.room_id:
            raise InvalidInput("message_room_differs")
        try:
            return bodies.read_message(record)
        except InvalidInput as error:
            raise InvalidInput("message_invalid", error=error) from error

    def arguments(self) -> dict[str, Any]:
        """Return the other fields, as `lore.replies.stream` takes them."""
        given = {name: value for name, value in self if name not in ("room_id", "message")}
        tools, results = [tool.tool() for tool in given["tools"]], [result.result() for result in given["tool_results"]]
        return {**given, "tools": tools, "tool_results": results}


def _event_schema() -> dict[str, Any]:
    """Return the schema of the events of a reply."""
    kinds: Mapping[str, type] = {name: kind for kind, name in NAMES.items()}
    models: dict[str, type[BaseModel]] = {name: model_of(kind) for name, kind in kinds.items()}
    models["error"] = Problem
    return {"oneOf": [_event(*model) for model in models.items()]}


_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"description": "The reply as it is written.", "content": {"text/event-stream": {"itemSchema": _event_schema}}}
}


def _event(name: str, view: type[BaseModel]) -> dict[str, Any]:
    data = {
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": view,
    }
    return {
        "type": "object",
        "required": ["event", "data"],
        "properties": {"event": {"const": name}, "data": data},
    }


chat = Router(tags=["chat"])


@chat.post(
    "/chat/sse",
    status_code=200,
    response_class=EventStream,
    responses=_EVENTS,
    openapi_extra=described(ReplyBody),
)
async def stream_reply(
    request: Request,
    lore: Writer,
    body: Annotated[ReplyBody, Depends(bodies.body_of(ReplyBody, within=Bounds.bulk))],
) -> Response:
    """Store the message and stream the reply to it: `start`, `text` as it is written, `tool_calls`, then `done`, or
    `error` with a problem. If the client disconnects the reply ends, and the text so far is stored."""
    replies = lore.replies.stream(body.to_message(), **body.arguments())
    return EventStream(_events(replies), last=partial(_problem, request.scope))


async def _events(replies: AsyncGenerator[ReplyEvent, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(replies):
        async for reply in replies:
            yield event(*named(reply))


def _problem(scope: Scope, error: Exception) -> bytes:
    """Return the last event of a reply that failed."""
    return written("error", failure(scope, error, message="reply failed", route="/chat/sse"))
