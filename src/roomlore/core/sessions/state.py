"""Convert a stored session to the JSON for other programs, and to its cached form."""

import hashlib
import hmac
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

from roomlore.core.models import Role
from roomlore.core.sessions.session import FlowContext, MessageContext, Meta, Session, SessionMessage, SessionValue
from roomlore.core.sessions.window import Segment, as_chat, flat, turns_after

_FORM = 2
_OWN = "roomlore"
_MARK = f', "{_OWN}": '
_SIGNATURE = "roomlore_signature"
_ROLES = {role.value: role for role in Role}
_Part = TypeVar("_Part", Meta, FlowContext, MessageContext)


def value_of(segment: Segment, *, recent_turns: int) -> SessionValue:
    """Return the session for other programs, with the last `recent_turns` turns as its window."""
    session = segment.session
    turns = segment.turns
    kept = SessionValue.from_json(session.state) if session.state else SessionValue()
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
    """Return the derived part with the unknown fields that are kept."""
    return replace(derived, extra=kept.extra)


def _last_answer(segment: Segment) -> str:
    answers = (m.text for m in reversed(segment.messages) if m.role is Role.ASSISTANT and m.text)
    return next(answers, "")


@dataclass(frozen=True, slots=True)
class Cached:
    """The cached messages of a session: those above `start`, as of the room's `revision`, with the session for other
    programs, as of its `version`. `made`: the creation time of the session, since two databases may use one cache."""

    tenant: str
    conversation_id: str
    made: str
    revision: int
    version: int
    start: int
    messages: tuple[SessionMessage, ...]

    def serves(self, session: Session) -> bool:
        """Return True if it belongs to this session, is no newer (a database may be restored), and reaches far enough
        back."""
        named = (session.tenant, session.conversation_id, session.created_at.isoformat())
        same = (self.tenant, self.conversation_id, self.made) == named
        return same and self.revision <= session.revision and self.start <= session.covered

    def equals(self, session: Session) -> bool:
        """Return True if nothing was added or changed since."""
        return (self.revision, self.version) == (session.revision, session.version)


def to_text(segment: Segment, value: SessionValue) -> str:
    """Return the session as JSON for other programs, with the data for `from_text` at its end."""
    session, messages = segment.session, segment.messages
    own = {
        "form": _FORM,
        "tenant": session.tenant,
        "conversation_id": session.conversation_id,
        "made": session.created_at.isoformat(),
        "revision": session.revision,
        "version": session.version,
        "start": segment.start,
        "arrivals": [message.arrival for message in messages],
        "ids": [message.id for message in messages],
        "roles": [message.role.value for message in messages],
        "names": [message.name for message in messages],
        "texts": [message.text for message in messages],
        "turn_ids": [message.turn_id for message in messages],
    }
    data = value.to_json()
    for name in (_OWN, _SIGNATURE):
        data.pop(name, None)
    return json.dumps({**data, _OWN: own})


def signed(text: str, *, key: bytes, tenant: str, conversation_id: str) -> str:
    """Return the JSON object `text` with a signature for this session as its last field."""
    return text[:-1] + _signature(text, key, tenant, conversation_id)


def verified(text: str, *, key: bytes, tenant: str, conversation_id: str) -> str | None:
    """Return the text given to `signed` with the same key and session; None for any other text."""
    end = len(text) - len(_signature("", key, tenant, conversation_id))
    if end < 0:
        return None
    whole = text[:end] + "}"
    expected = _signature(whole, key, tenant, conversation_id)
    return whole if hmac.compare_digest(_bytes(text[end:]), _bytes(expected)) else None


def _signature(text: str, key: bytes, tenant: str, conversation_id: str) -> str:
    """Return the signature. The names form a JSON line of their own, so no other names and text give the same bytes."""
    whose = json.dumps([tenant, conversation_id])
    digest = hmac.digest(key, _bytes(f"{whose}\n{text}"), hashlib.sha256).hex()
    return f', "{_SIGNATURE}": "{digest}"}}'


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def from_text(text: str) -> Cached | None:
    """Parse the output of `to_text`; None for any other text. Only the end is parsed: no bare quote occurs inside a
    string, so the last mark found is the last one written."""
    try:
        own = json.loads(text[text.rindex(_MARK) + len(_MARK) : -1])
        if own["form"] != _FORM:
            return None
        tenant, conversation_id, made = _all_of((own["tenant"], own["conversation_id"], own["made"]), str)
        revision, version, start = _all_of((own["revision"], own["version"], own["start"]), int)
        messages = tuple(_messages(own))
        if revision < 0 or not _ascending([-1, start, *own["arrivals"]]):
            return None
        return Cached(tenant, conversation_id, made, revision, version, start, messages)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _messages(own: Mapping[str, Any]) -> Iterator[SessionMessage]:
    roles = [_ROLES[role] for role in own["roles"]]
    columns = (
        _all_of(own["arrivals"], int),
        _all_of(own["ids"], str),
        roles,
        _all_of(own["names"], str),
        _all_of(own["texts"], str),
        _all_of(own["turn_ids"], str, type(None)),
    )
    return map(SessionMessage._make, zip(*columns, strict=True))


def _ascending(numbers: Sequence[int]) -> bool:
    return all(before < after for before, after in pairwise(numbers))


def _all_of(values: Collection[Any], *kinds: type) -> Collection[Any]:
    if not set(map(type, values)) <= set(kinds):
        raise TypeError("values of another type")
    return values
