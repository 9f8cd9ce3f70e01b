"""mem0's owners, messages and notes, and the scopes and rooms that they are stored in.

A memory is in the scope of its user, else of its agent, else of its run. Its evidence is in a room for that set of
owners, so that the room's id names all of them.
"""

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date, datetime
from typing import Any

from roomlore import InvalidInput, Lore, Memory, Message, Role, Source
from roomlore.core.memory.reading import INJECTED

log = logging.getLogger("roomlore.mem0")

KEYS = ("user_id", "agent_id", "run_id")
ROOMS = "mem0:"
"""The prefix of the rooms' ids."""
_SCOPES = {"user_id": "user", "agent_id": "agent", "run_id": "group"}


@dataclass(frozen=True, slots=True)
class Owners:
    """The owners of a memory, at least one."""

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any], example: str) -> "Owners":
        """Return the given owners; numbers become texts. `example`: how to give one, for the error. Raises
        `InvalidInput`."""
        owners = cls(**{key: _name(key, given.get(key)) for key in KEYS})
        if not owners.named():
            raise InvalidInput("mem0_owner_missing", example=example)
        return owners

    @classmethod
    def of_room(cls, room_id: str) -> "Owners | None":
        """Return the owners of a room of this client; None for any other room."""
        if not room_id.startswith(ROOMS):
            return None
        try:
            named = json.loads(room_id.removeprefix(ROOMS))
        except (ValueError, RecursionError):
            return None
        sound = isinstance(named, dict) and named and named.keys() <= set(KEYS)
        return cls(**named) if sound and all(isinstance(name, str) and name for name in named.values()) else None

    @classmethod
    def of_scope(cls, scope: str) -> "Owners":
        kind, _, name = scope.partition(":")
        return cls(**{key: name for key, its in _SCOPES.items() if its == kind})

    @property
    def scope(self) -> str:
        key, name = next(iter(self.named().items()))
        return f"{_SCOPES[key]}:{name}"

    @property
    def room_id(self) -> str:
        return ROOMS + json.dumps(self.named(), ensure_ascii=False, separators=(",", ":"))

    @property
    def rooms(self) -> str:
        """The prefix of the ids of all rooms with this user, else agent, else run: those of one scope."""
        key, name = next(iter(self.named().items()))
        return ROOMS + json.dumps({key: name}, ensure_ascii=False, separators=(",", ":")).removesuffix("}")

    def named(self) -> dict[str, str]:
        """Return the owners that are set, the user first."""
        return {key: name for key in KEYS if (name := getattr(self, key)) is not None}

    def include(self, wanted: "Owners") -> bool:
        return wanted.named().items() <= self.named().items()

    def sender_id(self, role: str) -> str:
        """Return the sender of a message: the user for the role 'user', otherwise the agent."""
        if role == "user":
            return self.user_id or "user"
        return self.agent_id or role


def _name(key: str, given: Any) -> str | None:
    if given is None:
        return None
    if isinstance(given, bool | float | Mapping) or not (name := str(given).strip()) or name == "*":
        raise InvalidInput("mem0_owner_invalid", name=key, value=f"{given!r:.60}")
    return name


_NOTE = "mem0"
_NOT_OURS = (*KEYS, "actor_id")
_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "tool": Role.TOOL}


@dataclass(frozen=True, slots=True)
class GivenMessage:
    """A message as given. `name`: of the sender."""

    role: str
    text: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """The data that mem0 stores with a memory. It is stored with the message that supports the memory. `until`: the
    last day on which the memory is shown, as in '2027-01-31'."""

    metadata: Mapping[str, Any] = field(default_factory=dict)
    until: str | None = None
    role: str | None = None
    actor_id: str | None = None


def given_messages(messages: Any) -> list[GivenMessage]:
    """Return the messages. A text is the user's message. System messages and messages without content are left out.
    Raises `InvalidInput`."""
    if isinstance(messages, str):
        return [GivenMessage("user", messages)]
    given = [messages] if isinstance(messages, Mapping) else messages
    if not isinstance(given, list | tuple):
        raise InvalidInput("mem0_messages_invalid", value=f"{messages!r:.60}")
    return [_given_message(message) for message in given if not _is_silent(message)]


def _is_silent(message: Any) -> bool:
    return isinstance(message, Mapping) and (message.get("role") == "system" or message.get("content") is None)


def _given_message(message: Any) -> GivenMessage:
    if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
        raise InvalidInput("mem0_message_invalid", value=f"{message!r:.80}")
    name = message.get("name")
    return GivenMessage(message["role"], _text(message["content"]), str(name) if name else None)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts: Sequence[Any] = content if isinstance(content, list | tuple) else [None]
    if not all(isinstance(part, Mapping) and isinstance(part.get("text"), str) for part in parts):
        raise InvalidInput("mem0_content_invalid")
    return "\n".join(part["text"] for part in parts)


def own(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the caller's metadata without keys that name owners, which are arguments; a warning names these. Raises
    `InvalidInput` if it is no mapping."""
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InvalidInput("mem0_metadata_invalid", value=f"{metadata!r:.60}")
    given = dict(metadata or {})
    if named := sorted(given.keys() & set(_NOT_OURS)):
        log.warning("metadata cannot say whose a memory is; left out", extra={"fields": named})
    return {key: value for key, value in given.items() if key not in _NOT_OURS}


def last_day(given: Any) -> str | None:
    """Return the day of an expiration date as a text; None stays None. Raises `InvalidInput`."""
    if isinstance(given, datetime):
        return given.date().isoformat()
    try:
        return None if given is None else date.fromisoformat(str(given)).isoformat()
    except ValueError as error:
        raise InvalidInput("expiration_date_invalid", value=f"{given!r:.60}") from error


def as_message(
    message: GivenMessage, note: Note, owners: Owners, *, message_id: str, at: datetime, kept: bool
) -> Message:
    """Return a message to store. `kept`: it is a memory already, so no model needs to read it. Then the user is its
    sender, whoever wrote it, so that forgetting the user removes it."""
    owner = owners.user_id if kept else None
    return Message(
        id=message_id,
        room_id=owners.room_id,
        sender_id=owner or owners.sender_id(message.role),
        sender_name=message.name or "",
        role=_ROLES.get(message.role, Role.ASSISTANT),
        text=message.text,
        sent_at=at,
        metadata=stored_note(note) if kept else {_NOTE: asdict(note)},
    )


def stored_note(note: Note | None) -> dict[str, Any]:
    """Return the metadata of a message that no model reads, with a note or without one."""
    return {INJECTED: True} | ({_NOTE: asdict(note)} if note else {})


def as_note_alone(note: Note, owners: Owners, *, message_id: str, at: datetime) -> Message:
    """Return a message without text, which changes the note of a memory."""
    return as_message(GivenMessage("user", ""), note, owners, message_id=message_id, at=at, kept=True)


def note_of(message: Message) -> Note | None:
    """Return the note of a message; None if this client did not write the message."""
    stored = message.metadata.get(_NOTE)
    if not isinstance(stored, Mapping) or not isinstance(stored.get("metadata"), Mapping):
        return None
    role, actor = stored.get("role"), stored.get("actor_id")
    try:
        until = last_day(stored.get("until"))
    except InvalidInput:
        return None
    return Note(stored["metadata"], until, None if role is None else str(role), None if actor is None else str(actor))


@dataclass(frozen=True, slots=True)
class Kept:
    """A memory. `owners`: the sets of owners it was added for, that of its last evidence last. `note`: the note for
    that set, None if this client did not add it; `beside`: the notes for the others."""

    memory: Memory
    owners: Sequence[Owners]
    note: Note | None
    beside: Mapping[Owners, Note] = field(default_factory=dict)

    def seen_by(self, wanted: Owners) -> "Kept | None":
        """Return it as it was added for one of these owners, None if it was not."""
        including = [owners for owners in self.owners if owners.include(wanted)]
        if not including or including[-1] == self.owners[-1]:
            return self if including else None
        others = [owners for owners in self.owners if owners != including[-1]]
        return replace(self, owners=[*others, including[-1]], note=self.note_for(including[-1]))

    def note_for(self, owners: Owners) -> Note | None:
        """Return the note for these owners."""
        return self.beside.get(owners, self.note)

    def is_shown(self, today: date) -> bool:
        return not expired(self.note, today)

    def metadata(self) -> dict[str, Any]:
        """Return the caller's metadata, or that of the part of roomlore that made the memory."""
        if self.note is not None:
            return dict(self.note.metadata)
        memory = self.memory
        known = {"category": memory.category, "tags": list(memory.tags), "confidence": memory.confidence}
        return {key: value for key, value in known.items() if value not in ("", [], None)}

    def item(self) -> dict[str, Any]:
        """Return the memory in the form of `get_all`."""
        memory, note = self.memory, self.note or Note()
        more = {"actor_id": note.actor_id, "role": note.role, "expiration_date": note.until}
        return {
            "id": memory.lineage_id,
            "memory": memory.statement,
            "hash": hashlib.md5(memory.statement.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest(),
            "metadata": self.metadata() or None,
            "created_at": memory.created_at.isoformat(),
            "updated_at": memory.updated_at.isoformat(),
            **self.owners[-1].named(),
            **{key: value for key, value in more.items() if value is not None},
        }

    def fields(self) -> dict[str, Any]:
        """Return the fields for filters, by name; mem0's stores call the text of a memory `data`."""
        item = self.item()
        return {"data": item["memory"], **(item.pop("metadata") or {}), **item}


def expired(note: Note | None, today: date) -> bool:
    """Return True if its last day is over."""
    return note is not None and note.until is not None and date.fromisoformat(note.until) < today


def beside(memory: Memory, owners: Owners) -> Source:
    """Return the source that records that a memory was added for other owners too: the memory itself is stored once."""
    return Source(owners.room_id, f"of-{memory.lineage_id}")


async def read(lore: Lore, memories: Iterable[Memory], also: Iterable[Owners] = ()) -> list[Kept]:
    """Return the memories with their notes, in the same order. `also`: owners for whom they may have been added again.
    Raises `StorageUnavailable`."""
    kept_memories, others = list(memories), list(also)
    rests_on = {memory.memory_id: _ours(memory) for memory in kept_memories}
    last_sources = [sources[-1] for sources in rests_on.values() if sources]
    notes = await _notes(lore, last_sources + [beside(memory, its) for memory in kept_memories for its in others])
    return [_kept(memory, rests_on[memory.memory_id], notes, others) for memory in kept_memories]


def _kept(memory: Memory, sources: Sequence[Source], notes: Mapping[Source, Note], also: Sequence[Owners]) -> Kept:
    rooms = dict.fromkeys(source.room_id for source in reversed(sources))
    owners = [its for room_id in reversed(rooms) if (its := Owners.of_room(room_id))]
    note = notes.get(sources[-1]) if sources else None
    others = {its: notes[at] for its in also if (at := beside(memory, its)) in notes and its not in owners}
    return Kept(memory, [*others, *(owners or [Owners.of_scope(memory.scope)])], note, others)


def _ours(memory: Memory) -> list[Source]:
    return [source for source in memory.sources if Owners.of_room(source.room_id)]


async def _notes(lore: Lore, sources: Iterable[Source]) -> dict[Source, Note]:
    by_room: dict[str, list[str]] = {}
    for source in sources:
        by_room.setdefault(source.room_id, []).append(source.message_id)
    notes: dict[Source, Note] = {}
    async with lore.storage.reading(lore.tenant) as work:
        for room_id, ids in by_room.items():
            for entry in await work.messages.by_id(room_id=room_id, message_ids=ids):
                if note := note_of(entry.message):
                    notes[Source(room_id, entry.message.id)] = note
    return notes
