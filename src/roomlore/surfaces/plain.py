"""Models as plain JSON values, the same on every surface: field names stay, times are ISO 8601 in UTC."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

from roomlore.core.mates import Mates
from roomlore.core.sessions.models import Session
from roomlore.core.sessions.value import SessionValue

_INTERNAL = frozenset({"mates", "tenant", "next_arrival", "linked"})


def plain(value: Any) -> Any:
    """Dataclasses become objects without what is internal (`_INTERNAL`); tuples become lists. A session value is the
    JSON that other programs know."""
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
    assert not isinstance(value, Mates)
    return [plain(inner) for inner in value] if isinstance(value, Iterable) else value


def session_line(session: Session) -> dict[str, Any]:
    """A session in a list. `updated_at` is Unix time in seconds, as in the session's own JSON."""
    return {
        "conversation_id": session.conversation_id,
        "mode": session.mode.value,
        "user_id": session.user_id,
        "enterprise_id": session.enterprise_id,
        "patient_id": session.patient_id,
        "checkpoint_id": session.checkpoint_id,
        "updated_at": int(session.updated_at.timestamp()),
    }
