"""What is sent to have a message replied to."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, model_validator

from roomlore.core.errors import InvalidInput
from roomlore.core.models import Message
from roomlore.core.records import from_record
from roomlore.core.replies.identity import MOST_ROUNDS
from roomlore.core.replies.models import Tool, ToolResult
from roomlore.core.sessions.window import MAX_WINDOW
from roomlore.surfaces.http.bodies import Body, described, one_room

_LONGEST_ID = 512
_MOST_TOOLS = 128
_MOST_TOKENS = 10_000_000

_MESSAGE: Mapping[str, Any] = {
    "type": "object",
    "description": "As for POST /messages. The room may be named here or beside it.",
    "required": ["id", "sender_id"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "string", "minLength": 1, "maxLength": _LONGEST_ID},
        "room_id": {"type": "string", "minLength": 1, "maxLength": _LONGEST_ID},
        "sender_id": {"type": "string", "minLength": 1, "maxLength": _LONGEST_ID},
        "sender_name": {"type": "string"},
        "text": {"type": "string"},
        "sent_at": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "number"}, {"type": "null"}]},
        "reply_to": {"type": ["string", "null"]},
        "root_id": {"type": ["string", "null"]},
        "turn_id": {"type": ["string", "null"]},
        "mentions": {"type": "array", "items": {"type": "string"}},
        "metadata": {"type": "object"},
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
    """What a tool gave."""

    tool_call_id: str = Field(min_length=1, max_length=_LONGEST_ID, description="The `id` of the call.")
    content: str = Field(description="Text for the model.")

    def result(self) -> ToolResult:
        return ToolResult(self.tool_call_id, self.content)


class ReplyRequest(Body):
    """A message to reply to, who replies, and how. What is left out is the service's to choose."""

    room_id: str | None = Field(
        None, min_length=1, description="The room; group_id, chat_id and conversation_id mean the same."
    )
    message: Annotated[dict[str, Any], WithJsonSchema(dict(_MESSAGE))]
    agent_id: str = Field("assistant", min_length=1, max_length=_LONGEST_ID, description="Who replies.")
    agent_name: str = Field("", max_length=_LONGEST_ID, description="By what name.")
    model_id: str | None = Field(None, description="One of GET /models.")
    system_prompt: str | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    max_tokens: int | None = Field(None, ge=1, le=_MOST_TOKENS, description="Most tokens of the reply.")
    model_context_window: int | None = Field(None, ge=1, le=MAX_WINDOW, description="What the model takes, in tokens.")
    tools: list[ToolForm] = Field([], max_length=_MOST_TOOLS, description="Tools that you call.")
    tool_results: list[ToolResultForm] = Field(
        [], max_length=_MOST_TOOLS, description="Of the calls that the reply to this message asked for."
    )
    max_tool_iterations: int | None = Field(
        None, ge=0, le=MOST_ROUNDS, description="How often the model may ask for tools."
    )

    @model_validator(mode="before")
    @classmethod
    def _one_room(cls, value: Any) -> Any:
        return one_room(value) if isinstance(value, dict) else value

    def said(self) -> Message:
        """The message. Raises `InvalidInput`."""
        record = one_room(self.message)
        if self.room_id is not None and record.setdefault("room_id", self.room_id) != self.room_id:
            raise InvalidInput("The body and its message name different rooms; give one of them.")
        try:
            return from_record(record).message
        except InvalidInput as error:
            raise InvalidInput(f"message: {error}") from error


def documented() -> dict[str, Any]:
    """The `openapi_extra` of the route."""
    return described(inlined(ReplyRequest.model_json_schema()))


def inlined(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema without references into itself, which would lead nowhere inside the OpenAPI document."""
    inner = schema.get("$defs", {})

    def whole(part: Any) -> Any:
        if isinstance(part, list):
            return list(map(whole, part))
        if not isinstance(part, Mapping):
            return part
        if "$ref" in part:
            return whole(inner[part["$ref"].rpartition("/")[2]])
        return {name: whole(value) for name, value in part.items() if name != "$defs"}

    found: dict[str, Any] = whole(schema)
    return found
