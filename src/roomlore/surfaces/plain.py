"""Models as plain JSON values, the same on every surface: field names stay, times are ISO 8601 in UTC."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, Literal

from roomlore.core.linking.candidates import ThreadCandidates
from roomlore.core.replies.reply import Reply, ReplyEvent, ReplyStarted, ReplyText, ToolDone, ToolsWanted
from roomlore.core.sessions.session import Session, SessionValue

_INTERNAL = frozenset({"thread_candidates", "tenant", "next_arrival", "linked"})


def plain(value: Any) -> Any:
    """Return the value as JSON values. Dataclasses become objects without internal fields (`_INTERNAL`); tuples become
    lists. A session value becomes the JSON that other programs know."""
    if isinstance(value, SessionValue):
        return value.to_json()
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value) if f.name not in _INTERNAL}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, str):
        return str(value)
    assert not isinstance(value, ThreadCandidates)
    return [plain(inner) for inner in value] if isinstance(value, Iterable) else value


def session_line(session: Session) -> dict[str, Any]:
    """Return a session for a list. `updated_at` is Unix time in seconds, as in the session's own JSON."""
    return {
        "conversation_id": session.conversation_id,
        "mode": session.mode.value,
        "user_id": session.user_id,
        "enterprise_id": session.enterprise_id,
        "patient_id": session.patient_id,
        "checkpoint_id": session.checkpoint_id,
        "updated_at": int(session.updated_at.timestamp()),
    }


EventName = Literal["start", "text", "tool_calls", "tool_result", "done"]

NAMES: Mapping[type[ReplyEvent], EventName] = {
    ReplyStarted: "start",
    ReplyText: "text",
    ToolsWanted: "tool_calls",
    ToolDone: "tool_result",
    Reply: "done",
}


def named(event: ReplyEvent) -> tuple[EventName, dict[str, Any]]:
    """Return the event's name and its fields as plain JSON."""
    return NAMES[type(event)], plain(event)
