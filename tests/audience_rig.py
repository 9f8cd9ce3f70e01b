"""A store whose rooms differ in who can see them, and facts about Ann that were said in some of them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import roomlore
from roomlore import Lore, Message, Settings, Source
from roomlore_testkit import START


@asynccontextmanager
async def heard_in(people: Mapping[str, str], *, direct: str, settings: Settings | None = None) -> AsyncIterator[Lore]:
    """Everybody has spoken in their rooms; `direct` is Ann's with an agent, 'square' is public, and the members of
    'team' are told. Of other rooms nothing is."""
    async with roomlore.open("sqlite://", settings=settings or Settings(), background=False) as lore:
        await lore.messages.add(
            [
                Message(id=f"{room}-{who}", room_id=room, sender_id=who, text="something", sent_at=START)
                for room, names in people.items()
                for who in names.split()
            ]
        )
        await lore.rooms.set_kind(direct, "direct")
        await lore.rooms.set_kind("square", "public")
        await lore.rooms.set_members("team", ["ann", "bo"])
        yield lore


async def remember(lore: Lore, statement: str, *rooms: str) -> str:
    """Add a fact about Ann that she said in these rooms, and return its id."""
    sources = [Source(room, f"{room}-ann") for room in rooms]
    return (await lore.memories.add("user:ann", statement, sources=sources)).memory_id
