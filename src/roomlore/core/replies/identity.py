"""What a reply's messages are called in their room, and what is kept beside them."""

import hashlib
from collections.abc import Mapping
from typing import Any

from roomlore.core.chat.models import ToolCall, Usage
from roomlore.core.models import StoredMessage
from roomlore.core.replies.models import Reply

REPLY = "roomlore_reply"
"""In the metadata of every message that the reply loop writes."""
BROKEN_OFF = "broken_off"
MOST_ROUNDS = 100
_GENERATIONS = 20


def reply_ids(message_id: str, agent_id: str) -> list[str]:
    """The ids the agent's reply to a message may have: the first one, and those for a reply that was deleted."""
    named = f"{message_id}\x00{agent_id}".encode("utf-8", "surrogatepass")
    first = "reply-" + hashlib.sha256(named).hexdigest()[:32]
    return [first, *(f"{first}-{again}" for again in range(2, _GENERATIONS + 1))]


def calls_id(reply_id: str, number: int) -> str:
    """The message that holds the tool calls of a round, counted from 0."""
    return f"{reply_id}.{number}"


def result_id(reply_id: str, number: int, place: int) -> str:
    """The message that holds what the tool at this place of a round gave."""
    return f"{reply_id}.{number}.{place}"


def about(message: StoredMessage) -> Mapping[str, Any]:
    """What the reply loop wrote beside a message, {} where it is none of its own."""
    found = message.metadata.get(REPLY)
    return found if isinstance(found, Mapping) else {}


def calls_as_json(calls: tuple[ToolCall, ...]) -> list[dict[str, str]]:
    return [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls]


def calls_of(message: StoredMessage) -> tuple[ToolCall, ...]:
    """The calls a message holds."""
    return tuple(ToolCall(str(c["id"]), str(c["name"]), str(c["arguments"])) for c in about(message).get("calls", ()))


def usage_of(message: StoredMessage) -> Usage:
    kept = about(message)
    return Usage(int(kept.get("input_tokens", 0)), int(kept.get("output_tokens", 0)))


def said_before(message_id: str, reply: StoredMessage) -> Reply:
    """The stored reply to the message, as it is given when it is asked for again."""
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
