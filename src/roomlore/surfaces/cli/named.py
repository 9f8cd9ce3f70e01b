"""Rooms by their names where a command takes `room:<id>`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roomlore.core.errors import NotFound

if TYPE_CHECKING:
    from roomlore.wiring import Lore


async def with_id(lore: Lore, given: str) -> tuple[str, str | None]:
    """Return a text such as 'room:Crew' with the room's id in place of its name, and the room if there is none such.
    Any other text stays as it is. Raise `InvalidInput` if several rooms have the name."""
    kind, _, room = given.partition(":")
    if kind != "room" or not room:
        return given, None
    try:
        return f"room:{await lore.rooms.named(room)}", None
    except NotFound:
        return given, room


async def viewer_of(lore: Lore, given: str | None) -> str | None:
    """Return a viewer with the room's id in place of its name."""
    return None if given is None else (await with_id(lore, given))[0]
