"""What `add` does: word for word, or by what a model reads in it."""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from roomlore import Change, Lore, Memory, Message, NewMemory, Remembered, Source
from roomlore.core.memory.intake import MAX_SOURCES, checked
from roomlore.core.memory.models import Action, MemoryStatus
from roomlore.surfaces.mem0.kept import Kept, beside, expired, read
from roomlore.surfaces.mem0.owners import Owners
from roomlore.surfaces.mem0.said import Note, Said, as_message, as_note_alone, note_of, stored_note

Item = dict[str, Any]


async def a_model_reads(lore: Lore) -> bool:
    """Whether the model that evolves what is known can be asked at all: a provider has a key, or needs none."""
    models = await lore.models.list_available_models(internal=True)
    return any(model.usable for model in models if model.model_id == lore.settings.evolve_model)


async def keep(lore: Lore, said: Sequence[Said], given: Note, owners: Owners) -> list[Item]:
    """Each message becomes a fact as it stands. Raises `InvalidInput` before anything is stored."""
    messages = [
        _message(lore, one, replace(given, role=one.role, actor_id=one.name), owners, kept=True) for one in said
    ]
    facts = [checked(_fact(message, owners)) for message in messages]
    if not facts:
        return []
    await lore.messages.add(messages)
    done = await lore.memories.add_all(facts)
    return [await _settled(lore, one, message, owners) for one, message in zip(done, messages, strict=True)]


async def infer(lore: Lore, said: Sequence[Said], given: Note, owners: Owners) -> list[Item]:
    """The messages are stored, and a model reads all that is new of the user. Raises `ModelUnavailable`: what was
    stored is read by the next call then."""
    if not any(one.role == "user" and one.text.strip() for one in said):
        return []
    await lore.messages.add([_message(lore, one, given, owners, kept=False) for one in said])
    changes: list[Change] = []
    while True:
        done = await lore.memories.evolve(f"user:{owners.user_id}", mode="llm")
        changes += done.changes
        if done.failed or not done.remaining or not done.messages:
            return [_event(change) for change in changes if change.action is not Action.STRENGTH]


async def note(lore: Lore, kept: Kept, owners: Owners, wanted: Note) -> Memory:
    """Keep this beside a memory for these owners, and return the memory."""
    memory = kept.memory
    if owners in kept.owners and owners not in kept.beside:
        message = as_note_alone(wanted, owners, message_id=uuid.uuid4().hex, at=lore.now())
        await lore.messages.add(message)
        return await lore.memories.update(memory.memory_id, sources=_with_source(memory, message))
    at = beside(memory, owners)
    message = as_note_alone(wanted, owners, message_id=at.message_id, at=lore.now())
    report = await lore.messages.add(message, on_conflict="report")
    if not report.added:
        await lore.messages.edit(at.room_id, at.message_id, metadata=message.metadata)
    return memory


async def drop(lore: Lore, kept: Kept, gone: Sequence[Owners]) -> None:
    """Delete a memory, or keep it for the owners who are left."""
    memory, left = kept.memory, [owners for owners in kept.owners if owners not in gone]
    if not left:
        await lore.memories.delete(memory.memory_id)
        return
    rooms = {owners.room_id for owners in gone}
    sources = [source for source in memory.sources if source.room_id not in rooms]
    if kept.owners[-1] in gone:
        sources += [beside(memory, left[-1])] if left[-1] in kept.beside else []
    if sources != list(memory.sources):
        await lore.memories.update(memory.memory_id, sources=sources)
    for at in (beside(memory, owners) for owners in gone if owners in kept.beside):
        await lore.messages.edit(at.room_id, at.message_id, metadata=stored_note(None))


def _with_source(memory: Memory, message: Message) -> list[Source]:
    """What the memory rests on, this message last: of its room the first stays beside it, as evidence."""
    here = [source for source in memory.sources if source.room_id == message.room_id]
    others = [source for source in memory.sources if source.room_id != message.room_id]
    return [*others, *here[:1], Source(message.room_id, message.id)][-MAX_SOURCES:]


def _message(lore: Lore, said: Said, given: Note, owners: Owners, *, kept: bool) -> Message:
    return as_message(said, given, owners, message_id=uuid.uuid4().hex, at=lore.now(), kept=kept)


def _fact(message: Message, owners: Owners) -> NewMemory:
    return NewMemory(scope=owners.scope, statement=message.text, sources=[Source(message.room_id, message.id)])


async def _settled(lore: Lore, done: Remembered, message: Message, owners: Owners) -> Item:
    """What was known already keeps what is kept beside it, and takes over what is new; what has expired is shown
    again."""
    event, memory, new = "ADD", done.memory, note_of(message) or Note()
    if done.outcome != "added":
        event = "NONE"
        known = (await read(lore, [memory], [owners]))[0]
        whose = dict.fromkeys([owners, known.owners[-1]]) if _over(lore, known.note) else [owners]
        for its in whose:
            before = known.note_for(its) if its in known.owners else None
            wanted = _joined(lore, before, new)
            if wanted != before:
                memory, event = await note(lore, known, its, wanted), "UPDATE"
                known = replace(known, memory=memory)
    return {
        "id": memory.lineage_id,
        "memory": memory.statement,
        "event": event,
        "actor_id": new.actor_id,
        "role": new.role,
    }


def _over(lore: Lore, kept: Note | None) -> bool:
    return expired(kept, lore.now().date())


def _joined(lore: Lore, before: Note | None, new: Note) -> Note:
    if before is None:
        return new
    until = new.until if _over(lore, before) else before.until
    return replace(before, metadata={**new.metadata, **before.metadata}, until=until)


def _event(change: Change) -> Item:
    item = {"id": change.memory.lineage_id, "memory": change.memory.statement}
    if change.memory.status is not MemoryStatus.ACTIVE:
        return {**item, "event": "DELETE"}
    if change.old_statement is None:
        return {**item, "event": "ADD"}
    return {**item, "event": "UPDATE", "previous_memory": change.old_statement}
