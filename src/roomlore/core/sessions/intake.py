"""Checks of what callers hand in about a session, and defaults for what they leave out."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Any

from roomlore.core.errors import InvalidInput
from roomlore.core.intake import MAX_ID_CHARS, Limits
from roomlore.core.models import Message, Role, StoredMessage
from roomlore.core.records import check_metadata
from roomlore.core.sessions.session import Session, SessionValue, check_patch, merge, own_state

_OPENING = (Role.USER, Role.SYSTEM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Messages for one conversation. `turn_id`: the turn in progress until a user speaks, None for none."""

    conversation_id: str
    messages: Sequence[Message]
    user_id: str
    agent_code: str
    turn_id: str | None
    now: datetime
    new_id: Callable[[], str]

    def completed(self) -> list[Message]:
        """Return the messages with id, room, sender, time and turn filled in. Raises `InvalidInput` for a message of
        another conversation."""
        return [self._complete(message) for message in self._in_turns()]

    def _in_turns(self) -> Iterator[Message]:
        """Yield the messages with turns. A user begins a turn, with the adjacent messages of users and the system; the
        following messages belong to it."""
        turn = self.turn_id
        for opening, group in groupby(self.messages, key=_opens):
            said = list(group)
            if opening and any(message.role == Role.USER for message in said):
                turn = self.new_id()
            yield from (message if message.turn_id else replace(message, turn_id=turn) for message in said)

    def _complete(self, message: Message) -> Message:
        if message.room_id not in ("", self.conversation_id):
            raise InvalidInput(f"Message {message.id!r:.60} is of room {message.room_id!r:.60}; give one call a room.")
        return replace(
            message,
            id=message.id or self.new_id(),
            room_id=self.conversation_id,
            sender_id=message.sender_id or self._sender(message.role),
            sent_at=message.sent_at or self.now,
        )

    def _sender(self, role: Role) -> str:
        named = {"user": self.user_id, "assistant": self.agent_code}
        return named.get(str(role)) or str(role)


def joins_a_turn(messages: Sequence[Message]) -> bool:
    """Return True if the first of the messages belongs to a turn that began before. Raises `InvalidInput` if there are
    none."""
    if not messages:
        raise InvalidInput("Give at least one message.")
    for place, message in enumerate(messages):
        if not isinstance(message, Message):
            raise InvalidInput(f"Item {place} of the batch is no roomlore.Message but a {type(message).__name__}.")
    first = next(groupby(messages, key=_opens))
    return not (first[0] and any(message.role == Role.USER for message in first[1]))


def _opens(message: Message) -> bool:
    return message.role in _OPENING


_QUERY, _ANSWER = "-query", "-answer"
MAX_TURN_ID_CHARS = MAX_ID_CHARS - len(_ANSWER)
_AGENT = "assistant"
_IDS = ("user_id", "enterprise_id", "patient_id")


def check_id(name: str, value: object) -> None:
    """Raise `InvalidInput` unless the value is an id: a text of 1 to 512 characters."""
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"{name} is {value!r:.60}; it must be a non-empty text.")
    if len(value) > MAX_ID_CHARS:
        raise InvalidInput(f"{name} has {len(value)} characters; at most {MAX_ID_CHARS}.")


def check_ids(ids: Mapping[str, str | None]) -> dict[str, str]:
    """Return the given ids, checked; empty ones count as omitted."""
    given = {name: value for name, value in ids.items() if value not in (None, "")}
    for name, value in given.items():
        check_id(name, value)
    return {name: str(value) for name, value in given.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A turn as given: the query, the answer, or both. `user_id`, `agent_code`: '' if unknown."""

    conversation_id: str
    turn_id: str
    user_id: str
    agent_code: str
    query: str | None
    answer: str | None
    sent_at: datetime | None

    def ids(self) -> tuple[str, str]:
        """Return the ids of the query and of the answer."""
        return f"{self.turn_id}{_QUERY}", f"{self.turn_id}{_ANSWER}"

    def messages(self, *, now: datetime, user: str, before: Mapping[str, StoredMessage]) -> list[Message]:
        """Return one message or two; the answer replies to the query. `now`, `user`: defaults for missing values.
        `before`: the stored messages of the turn, by id; values filled in then are kept, so that adding a turn is
        idempotent."""
        query_id, answer_id = self.ids()
        asked = self._message(query_id, self.user_id or user, Role.USER, self.query)
        answered = self._message(answer_id, self.agent_code or _AGENT, Role.ASSISTANT, self.answer)
        if answered and (asked or query_id in before):
            answered = replace(answered, reply_to=query_id)
        told = [message for message in (asked, answered) if message]
        return [self._repeated(one, before[one.id]) if one.id in before else self._at(one, now) for one in told]

    def _at(self, message: Message, now: datetime) -> Message:
        return replace(message, sent_at=self.sent_at or now)

    def _repeated(self, message: Message, before: StoredMessage) -> Message:
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
    """Return a session written by another system or version. Raises `InvalidInput` if it is not one."""
    if isinstance(given, SessionValue):
        return given
    return SessionValue.from_json({} if given is None else given)


def begun(stored: Session, brought: SessionValue, limits: Limits) -> Session:
    """Return a new session with the state of an imported one."""
    state = _checked(own_state(brought.to_json()), limits)
    return replace(stored, state=state, agent_key=_agent(brought.flow_context.current_agent_key))


def ids_of(value: SessionValue) -> dict[str, str]:
    """Return the ids named by an imported session, checked."""
    return check_ids({name: getattr(value.meta, name) for name in _IDS})


def filled(session: Session, ids: Mapping[str, str | None]) -> Session:
    """Return the session with its missing ids filled in."""
    missing = {name: value for name, value in ids.items() if value and not getattr(session, name)}
    return replace(session, **missing) if missing else session  # type: ignore[arg-type]


def patched(session: Session, patch: Mapping[str, Any], limits: Limits) -> Session:
    """Return the session with a merge patch applied. Raises `InvalidInput` if the patch or its result cannot be
    stored."""
    rest, agent_key = _without_agent(patch)
    check_patch(rest)
    check_metadata(dict(rest))
    state = _checked(own_state(merge(session.state, rest)), limits)
    return replace(session, state=state, agent_key=session.agent_key if agent_key is None else agent_key)


def _without_agent(patch: Mapping[str, Any]) -> tuple[Mapping[str, Any], str | None]:
    """Separate the current agent, which is kept with the session itself, as turns set it too."""
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
