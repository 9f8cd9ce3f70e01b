"""The events of a reply under the names that HTTP and the command line give them."""

from collections.abc import Mapping
from typing import Any, Literal

from roomlore.core.replies.models import Reply, ReplyEvent, ReplyStarted, ReplyText, ToolDone, ToolsWanted
from roomlore.surfaces.plain import plain

EventName = Literal["start", "text", "tool_calls", "tool_result", "done"]

NAMES: Mapping[type[ReplyEvent], EventName] = {
    ReplyStarted: "start",
    ReplyText: "text",
    ToolsWanted: "tool_calls",
    ToolDone: "tool_result",
    Reply: "done",
}


def named(event: ReplyEvent) -> tuple[EventName, dict[str, Any]]:
    """The event's name and its fields as plain JSON."""
    return NAMES[type(event)], plain(event)
