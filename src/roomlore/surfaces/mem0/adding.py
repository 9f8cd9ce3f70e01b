"""What `add` does: word for word, or by what a model reads in it."""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from roomlore import Change, Lore, Memory, Message, NewMemory, Remembered, Source
from roomlore.core.memory.intake import MAX_SOURCES, checked
from roomlore.core.memory.models import Action, MemoryStatus
from roomlore.surfaces.mem0.kept import read
from roomlore.surfaces.mem0.owners import Owners
from roomlore.surfaces.mem0.said import Note, Said, as_message, note_of

Item = dict[str, Any]


async def a_model_reads(lore: Lore) -> bool:
    """Whether the model that evolves what is known can be asked at all: a provider has a key, or needs none."""
    models = await lore.models.list_available_models(internal=True)
    return any(model.usable for model in models if model.model_id == lore.settings.evolve_model)


async def keep(lore: Lore, said: Sequence[Said], note: Note, owners: Owners) -> list[Item]:
    """Each message becomes a fact as it stands. Raises `InvalidInput` before anything is stored."""
    messages = [_message(lore, one, replace(note, role=one.role, actor_id=one.name), owners, kept=True) for one in said]
    facts = [checked(_fact(message, owners)) for message in messages]
    if not facts:
        return []
    await lore.messages.add(messages)
    done = await lore.memories.add_all(facts)
    return [await _settled(lore, one, message, owners) for one, message in zip(done, messages, strict=True)]


async def infer(lore: Lore, said: Sequence[Said], note: Note, owners: Owners) -> list[Item]:
    """The messages are stored, and a model reads all that is new of the user. Raises `ModelUnavailable`: what was
    stored is read by the next call then."""
    if not any(one.role == "user" and one.text.strip() for one in said):
        return []
    await lore.messages.add([_message(lore, one, note, owners, kept=False) for one in said])
    changes: list[Change] = []
    while True:
        done = await lore.memories.evolve(f"user:{owners.user_id}", mode="llm")
        changes += done.changes
        if done.failed or not done.remaining or not done.messages:
            return [_event(change) for change in changes if change.action is not Action.STRENGTH]


def with_source(memory: Memory, message: Message) -> list[Source]:
    """What the memory rests on, this message last."""
    return [*memory.sources, Source(message.room_id, message.id)][-MAX_SOURCES:]


def _message(lore: Lore, said: Said, note: Note, owners: Owners, *, kept: bool) -> Message:
    return as_message(said, note, owners, message_id=uuid.uuid4().hex, at=lore.now(), kept=kept)


def _fact(message: Message, owners: Owners) -> NewMemory:
    return NewMemory(scope=owners.scope, statement=message.text, sources=[Source(message.room_id, message.id)])


async def _settled(lore: Lore, done: Remembered, message: Message, owners: Owners) -> Item:
    """What was known already takes over what is kept beside it now, where that is something else."""
    event, memory, note = "ADD", done.memory, note_of(message) or Note()
    if done.outcome != "added":
        known = (await read(lore, [memory]))[0]
        event = "NONE" if known.note == note and owners in known.owners else "UPDATE"
    if event == "UPDATE":
        memory = await lore.memories.update(memory.memory_id, sources=with_source(memory, message))
    return {
        "id": memory.lineage_id,
        "memory": memory.statement,
        "event": event,
        "actor_id": note.actor_id,
        "role": note.role,
    }


def _event(change: Change) -> Item:
    item = {"id": change.memory.lineage_id, "memory": change.memory.statement}
    if change.memory.status is not MemoryStatus.ACTIVE:
        return {**item, "event": "DELETE"}
    if change.old_statement is None:
        return {**item, "event": "ADD"}
    return {**item, "event": "UPDATE", "previous_memory": change.old_statement}
