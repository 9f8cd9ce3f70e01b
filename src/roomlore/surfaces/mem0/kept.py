"""Memories as mem0 shows them."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from roomlore import Lore, Memory, Source
from roomlore.surfaces.mem0.owners import Owners
from roomlore.surfaces.mem0.said import Note, note_of


@dataclass(frozen=True, slots=True)
class Kept:
    """A memory. `owners`: the sets of owners it was added for, the one it rests on last. `note`: what is kept for that
    one, None where this client did not add it; `beside`: what is kept for others."""

    memory: Memory
    owners: Sequence[Owners]
    note: Note | None
    beside: Mapping[Owners, Note] = field(default_factory=dict)

    def seen_by(self, wanted: Owners) -> "Kept | None":
        """Return it as it was added for one of these owners, None where it was not."""
        found = [owners for owners in self.owners if owners.include(wanted)]
        if not found or found[-1] == self.owners[-1]:
            return self if found else None
        others = [owners for owners in self.owners if owners != found[-1]]
        return replace(self, owners=[*others, found[-1]], note=self.note_for(found[-1]))

    def note_for(self, owners: Owners) -> Note | None:
        """Return what was kept beside it for these owners."""
        return self.beside.get(owners, self.note)

    def is_shown(self, today: date) -> bool:
        return not expired(self.note, today)

    def metadata(self) -> dict[str, Any]:
        """The caller's; of a memory that another part of roomlore made, what that kept beside it."""
        if self.note is not None:
            return dict(self.note.metadata)
        memory = self.memory
        known = {"category": memory.category, "tags": list(memory.tags), "confidence": memory.confidence}
        return {key: value for key, value in known.items() if value not in ("", [], None)}

    def item(self) -> dict[str, Any]:
        """As `get_all` gives it."""
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
        """What filters ask for, by name."""
        item = self.item()
        return {**(item.pop("metadata") or {}), **item}


def expired(note: Note | None, today: date) -> bool:
    """Whether its last day is over."""
    return note is not None and note.until is not None and date.fromisoformat(note.until) < today


def beside(memory: Memory, owners: Owners) -> Source:
    """Return where it is kept that a memory was added for other owners too: a memory itself is written once, however
    many say it again."""
    return Source(owners.room_id, f"of-{memory.lineage_id}")


async def read(lore: Lore, memories: Iterable[Memory], also: Iterable[Owners] = ()) -> list[Kept]:
    """The memories with what this client kept beside them, in their order; `also`: owners for whom they may have been
    added again. Raises `StorageUnavailable`."""
    found, others = list(memories), list(also)
    rests_on = {memory.memory_id: _ours(memory) for memory in found}
    asked = [sources[-1] for sources in rests_on.values() if sources]
    notes = await _notes(lore, asked + [beside(memory, its) for memory in found for its in others])
    return [_kept(memory, rests_on[memory.memory_id], notes, others) for memory in found]


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
    found: dict[Source, Note] = {}
    async with lore.storage.reading() as work:
        for room_id, ids in by_room.items():
            for entry in await work.messages.by_id(tenant=lore.tenant, room_id=room_id, message_ids=ids):
                if note := note_of(entry.message):
                    found[Source(room_id, entry.message.id)] = note
    return found
