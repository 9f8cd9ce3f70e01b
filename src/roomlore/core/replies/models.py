"""A reply as it comes about."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from roomlore.core.chat.models import FinishReason, ToolCall, Usage

MAX_TOOL_ITERATIONS = 10


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool the model may call. `parameters`: a JSON schema of its arguments."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gave for a call, as text for the model."""

    tool_call_id: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyStarted:
    """The prompt is ready and the model is asked. `context_id`: for feedback; None where no context was built.

    `messages`: how many of the room's messages the prompt holds. `prompt_tokens`: what it takes, reckoned here.
    `truncated`: something that belongs into it did not fit the model's window. `degraded`: why the context is a simpler
    one than asked for, None if it is not.
    """

    message_id: str
    reply_id: str
    model_id: str
    context_id: str | None
    messages: int
    prompt_tokens: int
    truncated: bool
    degraded: str | None


@dataclass(frozen=True, slots=True)
class ReplyText:
    """The next piece of the reply's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolsWanted:
    """The model wants tools called. Where the caller is to call them, the reply goes on once their results are handed
    in for the same message."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class ToolDone:
    """A tool was called here."""

    call: ToolCall
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The reply, stored: the last event of its stream.

    `text`: all of it, a closing sentence for a broken-off one included. `finish_reason`: 'tool_calls' where the caller
    is to call tools, and nothing is stored as a reply yet. `usage`: of all calls of the model for it, as the provider
    reckons. `repeated`: the message had been replied to before, and this is what was said then.
    """

    message_id: str
    reply_id: str
    text: str
    finish_reason: FinishReason | None
    usage: Usage = field(default_factory=Usage)
    provider: str = ""
    model: str = ""
    context_id: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    repeated: bool = False


ReplyEvent = ReplyStarted | ReplyText | ToolsWanted | ToolDone | Reply
