"""A session, its checkpoints and its state as stored, the answers to the calls on it, and the checks of what callers
hand in."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import StrEnum
from itertools import groupby
from typing import Any, Literal, NamedTuple, TypeVar

from roomlore.core import intake
from roomlore.core.errors import InvalidInput
from roomlore.core.intake import MAX_ID_CHARS, Limits, is_estimated
from roomlore.core.json_values import HIDDEN, IF_KNOWN, IN_JSON, REST
from roomlore.core.models import Message, Role, StoredMessage
from roomlore.core.records import check_metadata

Json = Mapping[str, Any]
_Part = TypeVar("_Part", bound="_Fields")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fields:
    """A JSON object: fields by name, `extra` for the others."""

    extra: Json = field(default_factory=dict, metadata=REST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta(_Fields):
    """`updated_at`: Unix time in seconds."""

    conversation_id: str = ""
    user_id: str = ""
    updated_at: int = 0
    enterprise_id: str | None = field(default=None, metadata=IF_KNOWN)
    patient_id: str | None = field(default=None, metadata=IF_KNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowContext(_Fields):
    """The flow of the conversation. `current_agent_key`: the agent that answers. `last_bot_message`: the last answer.
    `turn_count`: the number of turns since the last reset."""

    current_agent_key: str = ""
    last_bot_message: str = ""
    turn_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageContext(_Fields):
    """The messages of the conversation. `summary`: '' if none. `window_messages`: the last turns as role and content.
    `checkpoint_message_id`: the checkpoint in force, '' if none."""

    summary: str = ""
    window_messages: tuple[Mapping[str, str], ...] = ()
    mode: str = "FULL_HISTORY"
    checkpoint_message_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalState(_Fields):
    """The state that agents share in a conversation; roomlore stores it and never reads it."""

    shared: Json = field(default_factory=dict)
    entities: Json = field(default_factory=dict)
    agent_slots: Json = field(default_factory=dict)
    current_intent: str = ""
    pending_action: Json | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSnapshot(_Fields):
    """The data of the user. `history`: chronic diseases."""

    user_id: str = ""
    name: str = ""
    allergies: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    surgery_history: tuple[str, ...] = ()
    preferences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionValue(_Fields):
    """A session for other programs to read."""

    meta: Meta = field(default_factory=Meta)
    flow_context: FlowContext = field(default_factory=FlowContext)
    message_context: MessageContext = field(default_factory=MessageContext)
    global_state: GlobalState = field(default_factory=GlobalState)
    user_snapshot: UserSnapshot = field(default_factory=UserSnapshot)

    @classmethod
    def from_json(cls, data: Json) -> "SessionValue":
        """Parse the output of `to_json`, of an older or a newer version too; null counts as omitted.

        A session without a checkpoint is FULL_HISTORY whatever its mode says. Raises `InvalidInput` naming the field
        that has the wrong type.
        """
        value = _read(cls, data, "the session")
        if value.message_context.checkpoint_message_id:
            return value
        return _with_mode(value, "FULL_HISTORY")

    def to_json(self) -> dict[str, Any]:
        """Return the session as plain JSON."""
        return _write(self)


DERIVED: Mapping[str, frozenset[str]] = {
    "meta": frozenset({"conversation_id", "user_id", "updated_at", "enterprise_id", "patient_id"}),
    "flow_context": frozenset({"current_agent_key", "last_bot_message", "turn_count"}),
    "message_context": frozenset({"summary", "window_messages", "mode", "checkpoint_message_id"}),
}
"""Fields derived from other stored values, of which no second copy is kept."""

_PARTS = frozenset(f.name for f in fields(SessionValue)) - {"extra"}


def own_state(data: Json) -> dict[str, Any]:
    """Return the part of a session's JSON that is kept with it: everything but the derived fields."""
    kept = {name: _without(value, DERIVED.get(name, frozenset())) for name, value in data.items()}
    return {name: value for name, value in kept.items() if value not in ({}, None) or name not in _PARTS}


def _without(value: Any, names: frozenset[str]) -> Any:
    return {k: v for k, v in value.items() if k not in names} if isinstance(value, Mapping) else value


def merge(data: Any, patch: Any) -> Any:
    """Apply the JSON merge patch of RFC 7396: objects are merged, null removes, everything else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(data) if isinstance(data, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def check_patch(patch: Json) -> None:
    """Raise `InvalidInput` if the patch sets a value that is derived from the messages."""
    if not isinstance(patch, Mapping):
        raise InvalidInput("patch_invalid", value=f"{patch!r:.60}")
    for part, names in DERIVED.items():
        given = patch.get(part)
        if part in patch and not isinstance(given, Mapping):
            raise InvalidInput("session_part_fixed", part=part)
        for name in sorted(names & set(given or {})):
            raise InvalidInput("session_field_derived", part=part, name=name)


def _with_mode(value: SessionValue, mode: str) -> SessionValue:
    context = value.message_context
    parts = {f.name: getattr(context, f.name) for f in fields(context)}
    changed = MessageContext(**{**parts, "mode": mode})
    return SessionValue(**{**{f.name: getattr(value, f.name) for f in fields(value)}, "message_context": changed})


def _read(kind: type[_Part], data: Any, place: str) -> _Part:
    if data is None:
        return kind()
    if not isinstance(data, Mapping):
        raise InvalidInput("json_object_needed", name=place, value=f"{data!r:.60}")
    known = {f.name: f for f in fields(kind) if f.name != "extra"}
    values: dict[str, Any] = {"extra": {name: value for name, value in data.items() if name not in known}}
    default = kind()
    for name, value in data.items():
        if name in known and value is not None:
            values[name] = _read_field(name, value, getattr(default, name))
    return kind(**values)


def _read_field(name: str, value: Any, default: Any) -> Any:
    if isinstance(default, _Fields):
        return _read(type(default), value, name)
    if name == "window_messages":
        return tuple(_each(name, value, Mapping, "objects with role and content"))
    if isinstance(default, tuple):
        return tuple(_each(name, value, str, "texts"))
    wanted, words = _expected_type(name, default)
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise InvalidInput("value_not_allowed", name=name, value=f"{value!r:.60}", allowed=words)
    return value


def _expected_type(name: str, default: Any) -> tuple[type[Any], str]:
    if isinstance(default, int):
        return int, "a whole number"
    if isinstance(default, Mapping) or name == "pending_action":
        return Mapping, "a JSON object"
    return str, "a text"


def _each(name: str, value: Any, kind: type[Any], words: str) -> list[Any]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, kind) for item in value):
        raise InvalidInput("list_needed", name=name, value=f"{value!r:.60}", what=words)
    return list(value)


def _write(part: _Fields) -> dict[str, Any]:
    written: dict[str, Any] = dict(part.extra)
    for f in fields(part):
        value, how = getattr(part, f.name), f.metadata.get(IN_JSON)
        if how == REST[IN_JSON] or (value is None and how == IF_KNOWN[IN_JSON]):
            continue
        written[f.name] = _write(value) if isinstance(value, _Fields) else _plain(value)
    return written


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


Language = Literal["zh", "en"]
CheckpointKind = Literal["summary", "reset"]

CALLER = "caller"
EXTRACT = "extract"


class SessionMode(StrEnum):
    """The form in which a conversation is shown: whole, or as a summary and the turns after it."""

    FULL_HISTORY = "FULL_HISTORY"
    SUMMARY_N = "SUMMARY_N"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A summary that stands for everything before a point of a conversation; or a reset, which hides what was before
    it.

    `number`: its place among the checkpoints and resets of the conversation, from 1. `covers_arrival`: arrival of the
    last message it covers, 0 if there was none. `covers_through`: the id of that message. `turns`: the number of turns
    since the last reset that it covers. `tokens`: length of the summary. `recent_turns`: the minimum of verbatim turns
    that its maker asks for. `coverage_assumed`: its maker did not tell what it covers. `made_by`: 'caller', 'extract'
    (sentences chosen without a model) or the name of a model.
    """

    checkpoint_id: str
    conversation_id: str
    number: int
    kind: CheckpointKind = "summary"
    summary: str = ""
    covers_arrival: int = 0
    covers_through: str | None = None
    turns: int = 0
    tokens: int = 0
    recent_turns: int = 0
    language: Language = "en"
    coverage_assumed: bool = False
    made_by: str = CALLER
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DueCheckpoint:
    """A checkpoint that roomlore has to make: not before `at`, after `tries` failed attempts, for a model with a window
    of `window` tokens (0 if unknown)."""

    at: datetime
    tries: int = 0
    window: int = 0


@dataclass(frozen=True, slots=True)
class CheckpointRequest:
    """The first context under the checkpoint in force that asked for one: its `checkpoint_token`, and the time."""

    token: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A conversation's session as stored, with the position of its room.

    `revision`, `next_arrival`: the room's. `version` grows with every change of the session itself; 0 if the room has
    none of its own yet. `boundary`: arrival of the last message before the last reset. `state`: the callers' JSON, in
    the form of `SessionValue` without derived fields. `checkpoint`: the one in force.
    """

    tenant: str = field(metadata=HIDDEN)
    conversation_id: str
    revision: int
    next_arrival: int = field(metadata=HIDDEN)
    version: int = 0
    user_id: str = ""
    enterprise_id: str | None = None
    patient_id: str | None = None
    agent_key: str = ""
    boundary: int = 0
    asked: CheckpointRequest | None = None
    state: Mapping[str, Any] = field(default_factory=dict)
    checkpoint: Checkpoint | None = None
    due: DueCheckpoint | None = None
    marks: int = 0
    created_at: datetime
    updated_at: datetime

    @property
    def mode(self) -> SessionMode:
        return SessionMode.SUMMARY_N if self.checkpoint else SessionMode.FULL_HISTORY

    @property
    def covered(self) -> int:
        """The arrival of the last message that need not be shown."""
        return self.checkpoint.covers_arrival if self.checkpoint else self.boundary

    @property
    def summary(self) -> str:
        """The summary in force, '' if there is none."""
        return self.checkpoint.summary if self.checkpoint else ""

    @property
    def coverage_assumed(self) -> bool:
        """True if the maker of the summary in force did not tell what it covers."""
        return self.checkpoint is not None and self.checkpoint.coverage_assumed

    @property
    def checkpoint_id(self) -> str:
        """The id of the checkpoint in force, '' if none."""
        return self.checkpoint.checkpoint_id if self.checkpoint else ""


class SessionMessage(NamedTuple):
    """A message as a session shows it. `name`: the sender's, if the platform gave one. A named tuple, since every read
    makes many, and a frozen dataclass takes five times as long."""

    arrival: int
    id: str
    role: Role
    name: str
    text: str
    turn_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContext:
    """A conversation inside the model's window.

    `history`: for the prompt: the summary, if any, and the turns after it. `messages`: the same as role and content,
    for a chat model. `full_history`: the earlier summary and every turn after it, without the limit of the window, the
    input of the next summary; while coverage is assumed, the covered turns that stay too. `covers_through`: the id of
    its last message. `checkpoint_token`: stands for this context where its summary is handed in. `estimated_tokens`: of
    `history` and the query, counted exactly in the configured encoding; `token_ratio`: their share of the window.
    `should_checkpoint_summary`: a checkpoint is due. `truncated`: the window was too small for every message that no
    summary covers, or for as many turns as asked for; or such messages are archived. `coverage_assumed`: whoever handed
    in the summary in force did not tell what it covers, so it may lack turns; the newest it should cover are shown too.
    `turns`: the number of verbatim turns; `message_ids`: their messages, including those without a text.
    `checkpoint_id`: the checkpoint in force, '' if none.
    """

    conversation_id: str
    mode: SessionMode
    session: SessionValue
    history: str
    messages: Sequence[Mapping[str, str]]
    full_history: str
    covers_through: str | None
    checkpoint_id: str
    checkpoint_token: str
    estimated_tokens: int
    token_ratio: float
    should_checkpoint_summary: bool
    truncated: bool
    coverage_assumed: bool
    turns: int
    message_ids: tuple[str, ...]
    language: Language


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionWindow:
    """The messages of a conversation that fit into the model's window. `message_ids`: in order of arrival. `summary`:
    of what came before, '' if there is none. `truncated`: as in `SessionContext`."""

    message_ids: tuple[str, ...]
    summary: str
    truncated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """A stored turn. `updated_at`: Unix time in seconds. `message_ids`: of the query, the answer, or both."""

    conversation_id: str
    mode: SessionMode
    updated_at: int
    turn_id: str
    message_ids: tuple[str, ...]


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
            messages = list(group)
            if opening and any(message.role == Role.USER for message in messages):
                turn = self.new_id()
            yield from (message if message.turn_id else replace(message, turn_id=turn) for message in messages)

    def _complete(self, message: Message) -> Message:
        if message.room_id not in ("", self.conversation_id):
            raise InvalidInput("message_room_foreign", message=f"{message.id!r:.60}", room=f"{message.room_id!r:.60}")
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
        raise InvalidInput("message_missing")
    for place, message in enumerate(messages):
        if not isinstance(message, Message):
            raise InvalidInput("batch_item_invalid", place=place, kind=type(message).__name__)
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
        raise InvalidInput("text_blank", name=name, value=f"{value!r:.60}")
    if len(value) > MAX_ID_CHARS:
        raise InvalidInput("id_too_long", name=name, count=len(value), most=MAX_ID_CHARS)


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
        question = self._message(query_id, self.user_id or user, Role.USER, self.query)
        answered = self._message(answer_id, self.agent_code or _AGENT, Role.ASSISTANT, self.answer)
        if answered and (question or query_id in before):
            answered = replace(answered, reply_to=query_id)
        pair = [message for message in (question, answered) if message]
        return [
            self._repeated(message, before[message.id]) if message.id in before else self._at(message, now)
            for message in pair
        ]

    def _at(self, message: Message, now: datetime) -> Message:
        return replace(message, sent_at=self.sent_at or now)

    def _repeated(self, message: Message, before: StoredMessage) -> Message:
        sent_at = self.sent_at or (None if is_estimated(before) else before.sent_at)
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
        raise InvalidInput("agent_key_invalid", value=f"{key!r:.60}", most=MAX_ID_CHARS)
    return key or ""


def _checked(state: dict[str, Any], limits: Limits) -> dict[str, Any]:
    SessionValue.from_json(state)
    try:
        size = len(json.dumps(check_metadata(state), ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidInput("session_state_not_json", why=error) from error
    if size > intake.METADATA_CHARS:
        raise InvalidInput("session_state_too_large", size=size, most=intake.METADATA_CHARS)
    return state
