"""The tools that change what is remembered."""

from roomlore.core.memory.intake import KEEP, NewMemory
from roomlore.core.memory.models import MemoryKind, Source
from roomlore.surfaces.mcp import answers, arguments
from roomlore.surfaces.mcp.tool import Visitor


async def add(visitor: Visitor, wanted: arguments.AddMemory) -> answers.AddedMemory:
    new = NewMemory(
        scope=visitor.whose(wanted.scope),
        statement=wanted.statement,
        kind=MemoryKind(wanted.kind),
        confidence=wanted.confidence,
        category=wanted.category,
        tags=wanted.tags,
        sources=[Source(wanted.room_id or "", message_id) for message_id in wanted.message_ids],
    )
    done = (await visitor.lore.memories.add_all([new]))[0]
    if done.outcome == "added":
        return answers.AddedMemory(memory=answers.details(done.memory), outcome="added")
    hint = "It was remembered already and is as it was; update_memory changes it."
    return answers.AddedMemory(memory=answers.details(done.memory), outcome="unchanged", hint=hint)


async def update(visitor: Visitor, wanted: arguments.UpdateMemory) -> answers.OneMemory:
    changed = await visitor.lore.memories.update(
        wanted.memory_id,
        statement=wanted.statement,
        confidence=KEEP if wanted.confidence is None else wanted.confidence,
        category=wanted.category,
        tags=wanted.tags,
        expected=wanted.expected,
        reason=wanted.reason,
    )
    return answers.OneMemory(memory=answers.details(changed))


async def delete(visitor: Visitor, wanted: arguments.DeleteMemory) -> answers.OneMemory:
    gone = await visitor.lore.memories.delete(wanted.memory_id, wanted.reason, expected=wanted.expected)
    hint = "It is out of force; its history stays."
    return answers.OneMemory(memory=answers.details(gone), hint=hint)
