"""The messages that `add` is given, and the note with which they are stored."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from typing import Any

from roomlore import InvalidInput, Message, Role
from roomlore.core.memory.reading import INJECTED
from roomlore.surfaces.mem0.owners import KEYS, Owners

_NOTE = "mem0"
_NOT_OURS = (*KEYS, "actor_id")
_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "tool": Role.TOOL}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Said:
    """A message as it was given. `name`: of the one who speaks."""

    role: str
    text: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """What mem0 keeps beside a memory. It lies with the message that the memory rests on. `until`: the last day on
    which it is shown, as in '2027-01-31'."""

    metadata: Mapping[str, Any] = field(default_factory=dict)
    until: str | None = None
    role: str | None = None
    actor_id: str | None = None


def said_in(messages: Any) -> list[Said]:
    """A text is the user's message. What system messages say, and messages without content, is left out. Raises
    `InvalidInput`."""
    if isinstance(messages, str):
        return [Said("user", messages)]
    given = [messages] if isinstance(messages, Mapping) else messages
    if not isinstance(given, list | tuple):
        raise InvalidInput(f"messages is {messages!r:.60}; give a text, a message or a list of messages.")
    return [_said(one) for one in given if not _is_silent(one)]


def _is_silent(message: Any) -> bool:
    return isinstance(message, Mapping) and (message.get("role") == "system" or message.get("content") is None)


def _said(message: Any) -> Said:
    if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
        raise InvalidInput(f"A message is {message!r:.80}; give {{'role': 'user', 'content': '...'}}.")
    name = message.get("name")
    return Said(message["role"], _text(message["content"]), str(name) if name else None)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts: Sequence[Any] = content if isinstance(content, list | tuple) else [None]
    if not all(isinstance(part, Mapping) and isinstance(part.get("text"), str) for part in parts):
        raise InvalidInput("A message's content is a text or a list of parts of text; describe pictures in words.")
    return "\n".join(part["text"] for part in parts)


def own(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """The caller's metadata without what names owners: those are arguments. Raises `InvalidInput`."""
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InvalidInput(f"metadata is {metadata!r:.60}; give a mapping.")
    given = dict(metadata or {})
    if named := sorted(given.keys() & set(_NOT_OURS)):
        log.warning("metadata cannot say whose a memory is; left out", extra={"fields": named})
    return {key: value for key, value in given.items() if key not in _NOT_OURS}


def last_day(given: Any) -> str | None:
    """The day of an expiration date as a text; None stays None. Raises `InvalidInput`."""
    if isinstance(given, datetime):
        return given.date().isoformat()
    try:
        return None if given is None else date.fromisoformat(str(given)).isoformat()
    except ValueError as error:
        raise InvalidInput(f"expiration_date is {given!r:.60}; give a day such as '2027-01-31'.") from error


def as_message(said: Said, note: Note, owners: Owners, *, message_id: str, at: datetime, kept: bool) -> Message:
    """`kept`: it is a memory as it stands, so no model needs to read it any more. It is the user's then, whoever said
    it: forgetting the user takes it along."""
    owner = owners.user_id if kept else None
    return Message(
        id=message_id,
        room_id=owners.room_id,
        sender_id=owner or owners.sender_id(said.role),
        sender_name=said.name or "",
        role=_ROLES.get(said.role, Role.ASSISTANT),
        text=said.text,
        sent_at=at,
        metadata=stored_note(note) if kept else {_NOTE: asdict(note)},
    )


def stored_note(note: Note | None) -> dict[str, Any]:
    """Return the metadata of a message that no model reads, with a note or without one."""
    return {INJECTED: True} | ({_NOTE: asdict(note)} if note else {})


def as_note_alone(note: Note, owners: Owners, *, message_id: str, at: datetime) -> Message:
    """A message that says nothing: what is kept beside a memory was changed."""
    return as_message(Said("user", ""), note, owners, message_id=message_id, at=at, kept=True)


def note_of(message: Message) -> Note | None:
    """None where this client did not write the message."""
    stored = message.metadata.get(_NOTE)
    if not isinstance(stored, Mapping) or not isinstance(stored.get("metadata"), Mapping):
        return None
    role, actor = stored.get("role"), stored.get("actor_id")
    try:
        until = last_day(stored.get("until"))
    except InvalidInput:
        return None
    return Note(stored["metadata"], until, None if role is None else str(role), None if actor is None else str(actor))
