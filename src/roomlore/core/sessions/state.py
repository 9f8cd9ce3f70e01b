"""From what is stored to what other programs read, and what a cache keeps of it."""

import json
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from roomlore.core.models import Role
from roomlore.core.sessions.models import Session, SessionMessage
from roomlore.core.sessions.turns import as_chat, flat, turns_of
from roomlore.core.sessions.value import FlowContext, MessageContext, Meta, SessionValue
from roomlore.core.sessions.window import Segment, turns_after

_FORM = 1
_OWN = "roomlore"
_Part = TypeVar("_Part", Meta, FlowContext, MessageContext)


def value_of(segment: Segment, *, recent_turns: int) -> SessionValue:
    """The session for other programs, with the last `recent_turns` turns as its window."""
    session = segment.session
    turns = turns_of(segment.messages)
    kept = SessionValue.from_json(session.state)
    window = flat(turns[max(0, len(turns) - recent_turns) :])
    checkpoint = session.checkpoint
    meta = Meta(
        conversation_id=session.conversation_id,
        user_id=session.user_id,
        updated_at=int(session.updated_at.timestamp()),
        enterprise_id=session.enterprise_id,
        patient_id=session.patient_id,
    )
    flow = FlowContext(
        current_agent_key=session.agent_key,
        last_bot_message=_last_answer(segment),
        turn_count=(checkpoint.turns if checkpoint else 0) + turns_after(turns, session.covered),
    )
    context = MessageContext(
        summary=checkpoint.summary if checkpoint else "",
        window_messages=as_chat("", window, segment.language()),
        mode=session.mode.value,
        checkpoint_message_id=session.checkpoint_id,
    )
    snapshot = kept.user_snapshot
    return replace(
        kept,
        meta=_beside(kept.meta, meta),
        flow_context=_beside(kept.flow_context, flow),
        message_context=_beside(kept.message_context, context),
        user_snapshot=snapshot if snapshot.user_id else replace(snapshot, user_id=session.user_id),
    )


def _beside(kept: _Part, derived: _Part) -> _Part:
    """The derived part with the unknown fields that are kept."""
    return replace(derived, extra=kept.extra)


def _last_answer(segment: Segment) -> str:
    answers = (m.text for m in reversed(segment.messages) if m.role is Role.ASSISTANT and m.text)
    return next(answers, "")


@dataclass(frozen=True, slots=True)
class Cached:
    """What a cache remembers of a session's messages: those above `start`, as of the room's `revision`."""

    tenant: str
    conversation_id: str
    revision: int
    start: int
    messages: tuple[SessionMessage, ...]

    def serves(self, session: Session) -> bool:
        """Whether it is of this session, no newer than it (a database may be brought back), and reaches far enough."""
        same = (self.tenant, self.conversation_id) == (session.tenant, session.conversation_id)
        return same and self.revision <= session.revision and self.start <= session.covered


_FIELDS = tuple(f.name for f in fields(SessionMessage))


def to_text(segment: Segment, value: SessionValue) -> str:
    """The session as JSON for other programs, with what `from_text` needs beside it."""
    session = segment.session
    own = {
        "form": _FORM,
        "tenant": session.tenant,
        "conversation_id": session.conversation_id,
        "revision": session.revision,
        "start": segment.start,
        "messages": [[getattr(message, name) for name in _FIELDS] for message in segment.messages],
    }
    return json.dumps({**value.to_json(), _OWN: own})


def from_text(text: str) -> Cached | None:
    """What `to_text` wrote; None for anything else."""
    try:
        own = json.loads(text)[_OWN]
        if own["form"] != _FORM:
            return None
        messages = tuple(_to_message(row) for row in own["messages"])
        return Cached(
            _text(own["tenant"]), _text(own["conversation_id"]), int(own["revision"]), int(own["start"]), messages
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _to_message(row: Any) -> SessionMessage:
    arrival, message_id, role, name, text, turn_id = row
    return SessionMessage(
        arrival=int(arrival),
        id=_text(message_id),
        role=Role(role),
        name=_text(name),
        text=_text(text),
        turn_id=None if turn_id is None else _text(turn_id),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value
