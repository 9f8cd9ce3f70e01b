"""The events of a reply, the ids of its messages, and what is stored beside them."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from roomlore.core.chat import FinishReason, ToolCall, Usage
from roomlore.core.intake import content_hash, normalised
from roomlore.core.models import Message, StoredMessage


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool the model may call. `parameters`: a JSON schema of its arguments."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call, as text for the model."""

    tool_call_id: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyStarted:
    """The event before the model is called: the prompt is ready. `context_id`: for feedback; None if no context was
    built.

    `messages`: how many of the room's messages the prompt contains. `prompt_tokens`: its size as counted locally.
    `truncated`: a part did not fit the model's window. `degraded`: the reason for a simpler context than asked for,
    None if there is none.
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
    """The event for requested tool calls. If the caller runs them, the reply continues when their results are given for
    the same message."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class ToolDone:
    """The event for a tool that was called here."""

    call: ToolCall
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The reply, the last event of its stream; stored, unless `degraded` says otherwise.

    `text`: all of it, including the closing sentence of an interrupted one. `finish_reason`: 'tool_calls' if the caller
    has to call tools, and nothing is stored as a reply yet. `usage`: of all model calls for it, as the provider counts.
    `repeated`: the message was replied to before, and this is the earlier reply. `degraded`: the reason why the reply
    was made from less than asked for, or is not stored yet; None if there is none.
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
    degraded: str | None = None


ReplyEvent = ReplyStarted | ReplyText | ToolsWanted | ToolDone | Reply


REPLY = "roomlore_reply"
"""The metadata key of every message that the reply loop writes."""
BROKEN_OFF = "broken_off"
MAX_ROUNDS = 100
_GENERATIONS = 20


def reply_ids(message_id: str, agent_id: str) -> list[str]:
    """Return the ids that the agent's reply to a message may have: the first one, and those after a reply was
    deleted."""
    named = f"{message_id}\x00{agent_id}".encode("utf-8", "surrogatepass")
    first = "reply-" + hashlib.sha256(named).hexdigest()[:32]
    return [first, *(f"{first}-{again}" for again in range(2, _GENERATIONS + 1))]


def calls_id(reply_id: str, number: int) -> str:
    """Return the id of the message with the tool calls of a round, counted from 0."""
    return f"{reply_id}.{number}"


def result_id(reply_id: str, number: int, place: int) -> str:
    """Return the id of the message with the result of the tool at this index of a round."""
    return f"{reply_id}.{number}.{place}"


def about(message: StoredMessage) -> Mapping[str, Any]:
    """Return the reply loop's metadata of a message, {} if it wrote none."""
    found = message.metadata.get(REPLY)
    return found if isinstance(found, Mapping) else {}


def calls_as_json(calls: tuple[ToolCall, ...]) -> list[dict[str, str]]:
    return [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls]


def calls_of(message: StoredMessage) -> tuple[ToolCall, ...]:
    """Return the tool calls of a message."""
    return tuple(ToolCall(str(c["id"]), str(c["name"]), str(c["arguments"])) for c in about(message).get("calls", ()))


def usage_of(message: StoredMessage) -> Usage:
    kept = about(message)
    return Usage(int(kept.get("input_tokens", 0)), int(kept.get("output_tokens", 0)))


def said_before(message_id: str, reply: StoredMessage) -> Reply:
    """Return the stored reply to the message, for a repeated request."""
    kept = about(reply)
    return Reply(
        message_id=message_id,
        reply_id=reply.id,
        text=reply.text,
        finish_reason=kept.get("finish_reason"),
        usage=usage_of(reply),
        provider=str(kept.get("provider", "")),
        model=str(kept.get("model", "")),
        context_id=kept.get("context_id"),
        repeated=True,
    )


def is_same(stored: StoredMessage, given: Message) -> bool:
    """Return True if both are the same message. A turn or a time that one of them lacks is ignored: a bot may have
    stored the message before it asks for a reply, or its session added the missing values."""
    turn = given.turn_id if stored.turn_id and given.turn_id else stored.turn_id
    timeless = given.sent_at is None or stored.sent_at_estimated
    sent_at = stored.sent_at if timeless else given.sent_at
    completed = replace(given, turn_id=turn, sent_at=sent_at)
    if isinstance(completed, StoredMessage):
        completed = replace(completed, sent_at_estimated=False)
    return content_hash(normalised(completed)) == content_hash(replace(stored, sent_at_estimated=False))
