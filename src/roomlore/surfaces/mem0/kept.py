"""Memories as mem0 shows them."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from roomlore import Lore, Memory, Source
from roomlore.surfaces.mem0.owners import Owners
from roomlore.surfaces.mem0.said import Note, note_of


@dataclass(frozen=True, slots=True)
class Kept:
    """A memory. `owners`: every set of owners it was added for, the last one last. `note`: what was kept beside it
    last, None where this client did not add it."""

    memory: Memory
    owners: Sequence[Owners]
    note: Note | None

    def belongs_to(self, wanted: Owners) -> bool:
        return any(owners.include(wanted) for owners in self.owners)

    def is_shown(self, today: date) -> bool:
        until = self.note.until if self.note else None
        return until is None or date.fromisoformat(until) >= today

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


async def read(lore: Lore, memories: Iterable[Memory]) -> list[Kept]:
    """The memories with what this client kept beside them, in their order. Raises `StorageUnavailable`."""
    found = list(memories)
    rests_on = {memory.memory_id: _ours(memory) for memory in found}
    notes = await _notes(lore, [sources[-1] for sources in rests_on.values() if sources])
    return [_kept(memory, rests_on[memory.memory_id], notes) for memory in found]


def _kept(memory: Memory, sources: Sequence[Source], notes: Mapping[Source, Note]) -> Kept:
    rooms = dict.fromkeys(source.room_id for source in sources)
    owners = [its for room_id in rooms if (its := Owners.of_room(room_id))]
    note = notes.get(sources[-1]) if sources else None
    return Kept(memory, owners or [Owners.of_scope(memory.scope)], note)


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
