"""What the events of a reply look like, for OpenAPI."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field

from roomlore.surfaces.http.chat_bodies import inlined
from roomlore.surfaces.http.problems import Problem


class StartView(BaseModel):
    """The prompt is ready and the model is asked."""

    message_id: str
    reply_id: str = Field(description="The id that the reply is stored under.")
    model_id: str
    context_id: str | None = Field(description="For POST /context/{context_id}/feedback; null where none was built.")
    messages: int = Field(description="Messages of the room in the prompt.")
    prompt_tokens: int
    truncated: bool = Field(description="Something that belongs into the prompt did not fit the model's window.")
    degraded: str | None = Field(description="Why the context is simpler than asked for, if it is.")


class TextView(BaseModel):
    """The next piece of the reply."""

    text: str


class CallView(BaseModel):
    id: str
    name: str
    arguments: str = Field(description="JSON as the model wrote it, sound or not.")


class CallsView(BaseModel):
    """The model wants tools called. Send the same message again with tool_results, and the reply goes on."""

    calls: list[CallView]


class ResultView(BaseModel):
    """A tool was called by the service."""

    call: CallView
    content: str


class TokensView(BaseModel):
    input_tokens: int
    output_tokens: int


class DoneView(BaseModel):
    """The reply, stored; the last event."""

    message_id: str
    reply_id: str
    text: str = Field(description="All of it.")
    finish_reason: Literal["stop", "length", "content_filter", "tool_calls"] | None
    usage: TokensView = Field(description="Of all calls of the model for it.")
    provider: str
    model: str
    context_id: str | None
    tool_calls: list[CallView]
    repeated: bool = Field(description="The message had been replied to before; this is what was said then.")


EVENTS: Mapping[str, type[BaseModel]] = {
    "start": StartView,
    "text": TextView,
    "tool_calls": CallsView,
    "tool_result": ResultView,
    "done": DoneView,
    "error": Problem,
}


def documented() -> dict[int | str, dict[str, Any]]:
    """The `responses` of the route."""
    content = {"schema": {"type": "string"}, "itemSchema": {"oneOf": [_event(*one) for one in EVENTS.items()]}}
    return {200: {"description": "The reply as it is written.", "content": {"text/event-stream": content}}}


def _event(name: str, view: type[BaseModel]) -> dict[str, Any]:
    data = {
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": inlined(view.model_json_schema()),
    }
    return {
        "type": "object",
        "required": ["event", "data"],
        "properties": {"event": {"const": name}, "data": data},
    }
