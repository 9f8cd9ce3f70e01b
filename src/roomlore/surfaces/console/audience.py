"""Marks of who may see memories, and the page of a room as it sees what is remembered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starlette.responses import Response

from roomlore.core.audience import public_windows
from roomlore.core.memory.memory import Memory
from roomlore.core.visibility import Visibility, is_for_all
from roomlore.surfaces.console.frame import Page
from roomlore.surfaces.console.shell import name_scopes
from roomlore.wiring import Lore

_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Seen:
    """A page of memories as a room sees them. `shown`, `withheld`: how many of all there are."""

    page: Sequence[Visibility]
    shown: int
    withheld: int


async def locked(lore: Lore, memories: Sequence[Memory]) -> Mapping[str, tuple[str, ...]]:
    """Return the rooms in which each memory was said, by its id; without memories that are for all."""
    named = {one.room_id for memory in memories for one in memory.evidence}
    async with lore.storage.reading() as work:
        found = await work.rooms.people(tenant=lore.tenant, room_ids=named, persons=[])
    public = {room_id: public_windows(room) for room_id, room in found.items()}
    return {
        memory.memory_id: tuple(one.room_id for one in memory.evidence)
        for memory in memories
        if not is_for_all(memory, public)
    }


async def visible(page: Page) -> Response:
    """Return the page of a room with the memories it is shown, or those withheld from it, each with the reasons."""
    lore, room_id = page.need("admin", "read"), page.needed("id")
    room = await lore.rooms.get(room_id)
    every = await lore.memories.visible(f"room:{room_id}")
    withheld = page.asked("withheld") == "1"
    offset = page.number("offset") or 0
    chosen = [one for one in every if one.shown is not withheld]
    hidden = len(chosen) if withheld else len(every) - len(chosen)
    await name_scopes(page, [one.memory.scope for one in chosen[offset : offset + _SHOWN]])
    return page.show(
        "visible.html",
        room=room,
        seen=Seen(chosen[offset : offset + _SHOWN], len(every) - hidden, hidden),
        withheld=withheld,
        people=await lore.rooms.people(room_id),
        offset=offset,
        next=offset + _SHOWN if offset + _SHOWN < len(chosen) else None,
    )
