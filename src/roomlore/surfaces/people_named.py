"""Messages as people read them: with names in place of the ids of those whom they mention."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from roomlore.core.mentions import ids_named, with_names

if TYPE_CHECKING:
    from roomlore.core.context import Context
    from roomlore.core.memory.memory import Blame, Evidence
    from roomlore.core.models import StoredMessage
    from roomlore.core.search.hits import SearchAnswer
    from roomlore.wiring import Lore


async def with_people_named(lore: Lore, messages: Iterable[StoredMessage]) -> list[StoredMessage]:
    """Return the messages with names in place of the ids of people whom they mention: one query, whatever their
    number."""
    messages = list(messages)
    ids = [ids_named(message.text, message.mentions) for message in messages]
    wanted = set[str]().union(*ids)
    if not wanted:
        return messages
    rooms = {message.room_id for message, its in zip(messages, ids, strict=True) if its}
    async with lore.storage.reading(lore.tenant) as work:
        names = await work.rooms.names_of(room_ids=rooms, sender_ids=wanted)
    texts = [with_names(message.text, names.get(message.room_id, {}), message.mentions) for message in messages]
    return [
        message if text == message.text else replace(message, text=text)
        for message, text in zip(messages, texts, strict=True)
    ]


async def context_with_people_named(lore: Lore, built: Context) -> Context:
    """Return a context to be shown to a person."""
    named = await with_people_named(lore, (entry.message for entry in built.messages))
    pairs = zip(built.messages, named, strict=True)
    return replace(built, messages=tuple(replace(entry, message=message) for entry, message in pairs))


async def answer_with_people_named(lore: Lore, answer: SearchAnswer) -> SearchAnswer:
    """Return the answer of a search to be shown to a person."""
    messages = [message for hit in answer.hits for message in (hit.message, *hit.conversation)]
    named = iter(await with_people_named(lore, messages))
    hits = tuple(
        replace(hit, message=next(named), conversation=tuple(next(named) for _ in hit.conversation))
        for hit in answer.hits
    )
    return replace(answer, hits=hits)


async def blame_with_people_named(lore: Lore, blame: Blame) -> Blame:
    """Return the versions of a memory with the messages that they rest on, to be shown to a person."""
    there = [message.message for version in blame.versions for message in version.evidence if message.message]
    named = {(message.room_id, message.id): message for message in await with_people_named(lore, there)}

    def renamed(evidence: Evidence) -> Evidence:
        return (
            replace(evidence, message=named[evidence.message.room_id, evidence.message.id])
            if evidence.message
            else evidence
        )

    versions = (replace(version, evidence=tuple(map(renamed, version.evidence))) for version in blame.versions)
    return replace(blame, versions=tuple(versions))
