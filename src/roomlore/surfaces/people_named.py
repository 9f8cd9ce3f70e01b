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
    said = list(messages)
    ids = [ids_named(one.text, one.mentions) for one in said]
    wanted = set[str]().union(*ids)
    if not wanted:
        return said
    rooms = {one.room_id for one, its in zip(said, ids, strict=True) if its}
    async with lore.storage.reading(lore.tenant) as work:
        names = await work.rooms.names_of(room_ids=rooms, sender_ids=wanted)
    texts = [with_names(one.text, names.get(one.room_id, {}), one.mentions) for one in said]
    return [one if text == one.text else replace(one, text=text) for one, text in zip(said, texts, strict=True)]


async def context_with_people_named(lore: Lore, built: Context) -> Context:
    """Return a context to be shown to a person."""
    named = await with_people_named(lore, (one.message for one in built.messages))
    pairs = zip(built.messages, named, strict=True)
    return replace(built, messages=tuple(replace(one, message=message) for one, message in pairs))


async def answer_with_people_named(lore: Lore, answer: SearchAnswer) -> SearchAnswer:
    """Return the answer of a search to be shown to a person."""
    said = [message for hit in answer.hits for message in (hit.message, *hit.conversation)]
    named = iter(await with_people_named(lore, said))
    hits = tuple(
        replace(hit, message=next(named), conversation=tuple(next(named) for _ in hit.conversation))
        for hit in answer.hits
    )
    return replace(answer, hits=hits)


async def blame_with_people_named(lore: Lore, found: Blame) -> Blame:
    """Return the versions of a memory with the messages that they rest on, to be shown to a person."""
    there = [one.message for version in found.versions for one in version.evidence if one.message]
    named = {(one.room_id, one.id): one for one in await with_people_named(lore, there)}

    def told(one: Evidence) -> Evidence:
        return replace(one, message=named[one.message.room_id, one.message.id]) if one.message else one

    versions = (replace(version, evidence=tuple(map(told, version.evidence))) for version in found.versions)
    return replace(found, versions=tuple(versions))
