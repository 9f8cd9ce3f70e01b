"""Rows of sessions and checkpoints to values and back, by position."""

from dataclasses import replace
from typing import Any

from roomlore.adapters.sql import schema
from roomlore.adapters.sql.drivers import Row
from roomlore.adapters.sql.values import (
    escape,
    escape_or_none,
    from_micros,
    mapping_text,
    read_mapping,
    to_micros,
    unescape,
    unescape_or_none,
)
from roomlore.core.errors import InvalidInput
from roomlore.core.sessions.models import Checkpoint, Due, Session

_r, _s, _c = schema.rooms, schema.sessions, schema.checkpoints

_ROOM_COLUMNS = (_r.c.room_id, _r.c.revision, _r.c.next_arrival, _r.c.created_at)
_OWN_COLUMNS = (
    _s.c.version,
    _s.c.user_id,
    _s.c.enterprise_id,
    _s.c.patient_id,
    _s.c.agent_key,
    _s.c.boundary,
    _s.c.state,
    _s.c.marks,
    _s.c.due_at,
    _s.c.due_tries,
    _s.c.due_window,
    _s.c.created_at,
    _s.c.updated_at,
)
CHECKPOINT_COLUMNS = (
    _c.c.number,
    _c.c.checkpoint_id,
    _c.c.kind,
    _c.c.summary,
    _c.c.covers_arrival,
    _c.c.covers_through,
    _c.c.turns,
    _c.c.tokens,
    _c.c.recent_turns,
    _c.c.language,
    _c.c.made_by,
    _c.c.created_at,
)
SESSION_COLUMNS = (*_ROOM_COLUMNS, *_OWN_COLUMNS, *CHECKPOINT_COLUMNS)
_OWN_AT = len(_ROOM_COLUMNS)
_CHECKPOINT_AT = _OWN_AT + len(_OWN_COLUMNS)


def session_values(session: Session) -> dict[str, Any]:
    """What `save` writes, by column."""
    return {
        "user_id": escape(session.user_id),
        "enterprise_id": escape_or_none(session.enterprise_id),
        "patient_id": escape_or_none(session.patient_id),
        "agent_key": escape(session.agent_key),
        "boundary": session.boundary,
        "state": _state_text(session),
        "checkpoint": session.checkpoint.number if session.checkpoint else None,
        "version": session.version,
        "marks": session.marks,
        "created_at": to_micros(session.created_at),
        "updated_at": to_micros(session.updated_at),
    }


def _state_text(session: Session) -> str:
    try:
        return mapping_text(session.state)
    except (TypeError, ValueError, RecursionError) as exc:
        raise InvalidInput(f"The state of session {session.conversation_id!r} must be JSON: {exc}") from exc


def checkpoint_values(checkpoint: Checkpoint) -> dict[str, Any]:
    return {
        "number": checkpoint.number,
        "checkpoint_id": escape(checkpoint.checkpoint_id),
        "kind": checkpoint.kind,
        "summary": escape(checkpoint.summary),
        "covers_arrival": checkpoint.covers_arrival,
        "covers_through": escape_or_none(checkpoint.covers_through),
        "turns": checkpoint.turns,
        "tokens": checkpoint.tokens,
        "recent_turns": checkpoint.recent_turns,
        "language": checkpoint.language,
        "made_by": escape(checkpoint.made_by),
        "created_at": to_micros(checkpoint.created_at),
    }


def to_session(tenant: str, row: Row) -> Session:
    own, checkpoint = row[_OWN_AT:_CHECKPOINT_AT], row[_CHECKPOINT_AT:]
    conversation_id, made = unescape(row[0]), from_micros(row[3])
    none = Session(
        tenant=tenant,
        conversation_id=conversation_id,
        revision=row[1],
        next_arrival=row[2],
        created_at=made,
        updated_at=made,
    )
    if own[0] is None:
        return none
    return replace(
        none,
        version=own[0],
        user_id=unescape(own[1]),
        enterprise_id=unescape_or_none(own[2]),
        patient_id=unescape_or_none(own[3]),
        agent_key=unescape(own[4]),
        boundary=own[5],
        state=read_mapping(own[6]),
        checkpoint=None if checkpoint[0] is None else to_checkpoint(conversation_id, checkpoint),
        marks=own[7],
        due=None if own[8] is None else Due(at=from_micros(own[8]), tries=own[9], window=own[10]),
        created_at=from_micros(own[11]),
        updated_at=from_micros(own[12]),
    )


def to_checkpoint(conversation_id: str, row: Row) -> Checkpoint:
    return Checkpoint(
        conversation_id=conversation_id,
        number=row[0],
        checkpoint_id=unescape(row[1]),
        kind=row[2],
        summary=unescape(row[3]),
        covers_arrival=row[4],
        covers_through=unescape_or_none(row[5]),
        turns=row[6],
        tokens=row[7],
        recent_turns=row[8],
        language=row[9],
        made_by=unescape(row[10]),
        created_at=from_micros(row[11]),
    )
