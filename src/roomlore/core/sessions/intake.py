"""What callers hand in about a session, checked and made ready to be stored."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from roomlore.core.errors import InvalidInput
from roomlore.core.intake import MAX_ID_CHARS, Limits
from roomlore.core.models import Message, Role, StoredMessage
from roomlore.core.records import check_metadata
from roomlore.core.sessions.models import Session
from roomlore.core.sessions.value import SessionValue, check_patch, merge, own_state

_AGENT = "assistant"
_IDS = ("user_id", "enterprise_id", "patient_id")


def check_id(name: str, value: object) -> None:
    """Raises `InvalidInput` unless the value is an id: a text of 1 to 512 characters."""
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"{name} is {value!r:.60}; it must be a non-empty text.")
    if len(value) > MAX_ID_CHARS:
        raise InvalidInput(f"{name} has {len(value)} characters; at most {MAX_ID_CHARS}.")


def check_ids(ids: Mapping[str, str | None]) -> dict[str, str]:
    """The ids that are given, checked; empty ones count as left out."""
    given = {name: value for name, value in ids.items() if value not in (None, "")}
    for name, value in given.items():
        check_id(name, value)
    return {name: str(value) for name, value in given.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A turn as handed in: the query, the answer, or both. `user_id`, `agent_code`: '' where it does not say."""

    conversation_id: str
    turn_id: str
    user_id: str
    agent_code: str
    query: str | None
    answer: str | None
    sent_at: datetime | None

    def ids(self) -> tuple[str, str]:
        """Of the query and of the answer."""
        return f"{self.turn_id}-query", f"{self.turn_id}-answer"

    def messages(self, *, now: datetime, user: str, before: Mapping[str, StoredMessage]) -> list[Message]:
        """One message or two; the answer replies to the query. `now`, `user`: what holds where the turn says nothing.
        `before`: what is stored of it, by id; what was filled in then stays, so that a turn can be handed in again."""
        query_id, answer_id = self.ids()
        asked = self._message(query_id, self.user_id or user, Role.USER, self.query)
        answered = self._message(answer_id, self.agent_code or _AGENT, Role.ASSISTANT, self.answer)
        if answered and (asked or query_id in before):
            answered = replace(answered, reply_to=query_id)
        told = [message for message in (asked, answered) if message]
        return [self._again(one, before[one.id]) if one.id in before else self._at(one, now) for one in told]

    def _at(self, message: Message, now: datetime) -> Message:
        return replace(message, sent_at=self.sent_at or now)

    def _again(self, message: Message, before: StoredMessage) -> Message:
        sent_at = self.sent_at or (None if before.sent_at_estimated else before.sent_at)
        given = self.agent_code if message.role is Role.ASSISTANT else self.user_id
        return replace(message, sent_at=sent_at, reply_to=before.reply_to, sender_id=given or before.sender_id)

    def _message(self, message_id: str, sender_id: str, role: Role, text: str | None) -> Message | None:
        if text is None or text == "":
            return None
        return Message(
            id=message_id, room_id=self.conversation_id, sender_id=sender_id, role=role, text=text, turn_id=self.turn_id
        )


def as_value(given: SessionValue | Mapping[str, Any] | None) -> SessionValue:
    """A session as another system or version wrote it; `InvalidInput` where it is none."""
    if isinstance(given, SessionValue):
        return given
    return SessionValue.from_json({} if given is None else given)


def begun(stored: Session, brought: SessionValue, limits: Limits) -> Session:
    """A session that has nothing of its own yet, with the state of one that is brought along."""
    state = _checked(own_state(brought.to_json()), limits)
    return replace(stored, state=state, agent_key=_agent(brought.flow_context.current_agent_key))


def ids_of(value: SessionValue) -> dict[str, str]:
    """The ids a session that is brought along names, checked."""
    return check_ids({name: getattr(value.meta, name) for name in _IDS})


def filled(session: Session, ids: Mapping[str, str | None]) -> Session:
    """The session with the ids it lacks."""
    missing = {name: value for name, value in ids.items() if value and not getattr(session, name)}
    return replace(session, **missing) if missing else session  # type: ignore[arg-type]


def patched(session: Session, patch: Mapping[str, Any], limits: Limits) -> Session:
    """The session with a merge patch applied; `InvalidInput` where the patch or what comes of it cannot be kept."""
    rest, agent_key = _without_agent(patch)
    check_patch(rest)
    check_metadata(dict(rest))
    state = _checked(own_state(merge(session.state, rest)), limits)
    return replace(session, state=state, agent_key=session.agent_key if agent_key is None else agent_key)


def _without_agent(patch: Mapping[str, Any]) -> tuple[Mapping[str, Any], str | None]:
    """The current agent is kept with the session itself, as turns set it too."""
    flow = patch.get("flow_context") if isinstance(patch, Mapping) else None
    if not isinstance(flow, Mapping) or "current_agent_key" not in flow:
        return patch, None
    rest = {name: value for name, value in flow.items() if name != "current_agent_key"}
    return {**patch, "flow_context": rest}, _agent(flow["current_agent_key"])


def _agent(key: object) -> str:
    if not isinstance(key, str | None) or len(key or "") > MAX_ID_CHARS:
        raise InvalidInput(f"current_agent_key is {key!r:.60}; it must be a text of at most {MAX_ID_CHARS}.")
    return key or ""


def _checked(state: dict[str, Any], limits: Limits) -> dict[str, Any]:
    SessionValue.from_json(state)
    try:
        size = len(json.dumps(check_metadata(state), ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"The state of a session must be plain JSON: {error}.") from error
    if size > limits.metadata_chars:
        raise InvalidInput(f"The state of the session is {size} characters of JSON; at most {limits.metadata_chars}.")
    return state
