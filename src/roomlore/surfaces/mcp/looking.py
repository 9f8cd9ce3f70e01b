"""The tools that read."""

from collections.abc import Sequence

from roomlore.core.memory.models import MemoryKind
from roomlore.core.models import Candidate
from roomlore.surfaces.mcp import answers, arguments
from roomlore.surfaces.mcp.fitting import fitting
from roomlore.surfaces.mcp.tool import Visitor


async def searched(visitor: Visitor, wanted: arguments.SearchMemories) -> answers.FoundMemories:
    found = await visitor.lore.memories.search(
        visitor.whose(wanted.scope), wanted.query, limit=wanted.limit, threshold=wanted.threshold
    )
    hits = [answers.FoundMemory(**answers.memory_fields(hit.memory), score=round(hit.score, 4)) for hit in found.hits]
    shown = fitting(hits)
    return answers.FoundMemories(memories=shown, degraded=found.degraded, hint=_search_hint(shown, hits, wanted))


def _search_hint(
    shown: Sequence[answers.FoundMemory], hits: Sequence[answers.FoundMemory], wanted: arguments.SearchMemories
) -> str | None:
    if not hits:
        return f"Nothing scores {wanted.threshold:g} or more: try other words, a lower threshold, or get_memories."
    if len(shown) < len(hits):
        return f"{len(hits) - len(shown)} more did not fit; ask for something narrower."
    return _cut_hint(shown)


async def listed(visitor: Visitor, wanted: arguments.GetMemories) -> answers.MemoryPage:
    scope, memories = visitor.whose(wanted.scope), visitor.lore.memories
    kinds = tuple(MemoryKind) if wanted.kind is None else (MemoryKind(wanted.kind),)
    page = await memories.page(scope, kinds=kinds, status=wanted.status, limit=wanted.limit, offset=wanted.offset)
    total = await memories.count(scope, kinds=kinds, status=wanted.status)
    shown = fitting([answers.MemoryView(**answers.memory_fields(memory)) for memory in page])
    following = _next(wanted.offset, len(shown), total)
    return answers.MemoryPage(
        memories=shown, total=total, next_offset=following, hint=_page_hint(following, total) or _cut_hint(shown)
    )


async def one(visitor: Visitor, wanted: arguments.GetMemory) -> answers.OneMemory:
    memory = answers.details(await visitor.lore.memories.head(wanted.memory_id))
    hint = None if memory.status == "active" else "It was deleted and is not recalled any more."
    return answers.OneMemory(memory=memory, hint=hint)


async def history(visitor: Visitor, wanted: arguments.MemoryHistory) -> answers.Versions:
    versions = await visitor.lore.memories.history(wanted.memory_id)
    shown = fitting([answers.version_of(memory) for memory in versions[wanted.offset :]])
    following = _next(wanted.offset, len(shown), len(versions))
    return answers.Versions(
        versions=shown, total=len(versions), next_offset=following, hint=_page_hint(following, len(versions))
    )


async def prompt(visitor: Visitor, wanted: arguments.MemoryPrompt) -> answers.PromptBlock:
    scopes = [visitor.whose(scope) for scope in wanted.scopes or ("",)]
    said = [{"role": "user", "content": wanted.query}] if wanted.query.strip() else []
    found = await visitor.lore.recall.build(scopes, said, max_tokens=wanted.max_tokens)
    return answers.PromptBlock(
        text=found.text,
        tokens=found.tokens,
        taken=len(found.facts),
        considered=found.considered,
        degraded=found.degraded,
        hint=_prompt_hint(len(found.facts), found.considered),
    )


def _prompt_hint(taken: int, considered: int) -> str | None:
    if considered == 0:
        return "Nothing is remembered there yet."
    return None if taken else "No memory fits; ask with more max_tokens."


async def context(visitor: Visitor, wanted: arguments.RoomContext) -> answers.RoomMessages:
    found = await visitor.lore.context.build(
        wanted.room_id,
        wanted.message_id,
        strategy=wanted.strategy,
        max_messages=wanted.max_messages,
        max_tokens=wanted.max_tokens,
    )
    shown = _surest(found.messages, found.parent)
    left_out = len(found.messages) - len(shown)
    return answers.RoomMessages(
        room_id=found.room_id,
        message_id=found.message_id,
        strategy=found.strategy,
        messages=shown,
        left_out=left_out or None,
        degraded=found.degraded,
        hint=None if shown else "Nothing said before matters for this message.",
    )


def _surest(taken: Sequence[Candidate], parent: str | None) -> list[answers.MessageView]:
    """Those that fit, the surest first in line, in the order in which they were said."""
    views = [answers.message_of(one, parent) for one in taken]
    ranked = sorted(range(len(views)), key=lambda place: -views[place].score)
    kept = len(fitting([views[place] for place in ranked]))
    return [views[place] for place in sorted(ranked[:kept])]


def _next(offset: int, shown: int, total: int) -> int | None:
    following = offset + shown
    return following if shown and following < total else None


def _page_hint(following: int | None, total: int) -> str | None:
    return None if following is None else f"{total - following} more; go on with offset={following}."


def _cut_hint(shown: Sequence[answers.MemoryView]) -> str | None:
    return "get_memory gives the statements that are cut in full." if any(one.cut for one in shown) else None
