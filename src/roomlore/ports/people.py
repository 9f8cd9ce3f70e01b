"""People by the names under which they spoke."""

from typing import TYPE_CHECKING

from roomlore.core.audience import ALWAYS, check_viewer
from roomlore.core.search.facts import people_like
from roomlore.core.text import fold
from roomlore.ports.audience import rooms_shown

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from roomlore.storage import UnitOfWork

_COMPARED = 200
"""The most people, and rooms of a viewer, whose names are compared with one that was given in place of an id."""


async def called(work: "UnitOfWork", name: str, *, rooms: "Collection[str] | None" = None) -> dict[str, list[str]]:
    """Return the ids of those whose name it is in one of these rooms, None for any, those who spoke last first, with
    the rooms in which they have it."""
    part = name.removeprefix("@")
    like = await work.rooms.speakers(part=part, room_ids=rooms, limit=_COMPARED) if part else []
    voices = await work.rooms.voices_of(sender_ids=[speaker.sender_id for speaker in like]) if like else {}
    named = {}
    for speaker in like:
        its = [voice.room_id for voice in voices.get(speaker.sender_id, ()) if fold(voice.name) == fold(part)]
        if there := [room for room in its if rooms is None or room in rooms]:
            named[speaker.sender_id] = there
    return named


async def people_meant(work: "UnitOfWork", name: str, *, viewer: str | None, now: "datetime") -> dict[str, str]:
    """Return the people whom an id may mean of which nothing is known, with their names: those whose name it is, or
    else those whose id or name is nearly the same. `viewer`: by the rooms alone that it may see all of."""
    return (await all_meant(work, [name], viewer=viewer, now=now)).get(name, {})


async def all_meant(
    work: "UnitOfWork", names: "Collection[str]", *, viewer: str | None, now: "datetime"
) -> dict[str, dict[str, str]]:
    """Return for each of these ids of which nothing is known the people who may be meant, as `people_meant` does."""
    rooms: list[str] | None = None
    if viewer is not None and names:
        shown = await rooms_shown(work, viewer=check_viewer(viewer), now=now, most=_COMPARED)
        rooms = [room.room_id for room, windows in shown.rooms if windows == ALWAYS]
    unknown = [name for name in names if not await _is_known_to(work, name, viewer, rooms)]
    last = await work.rooms.speakers(part="", room_ids=rooms, limit=_COMPARED) if unknown else []
    people, meant = {speaker.sender_id: speaker.name for speaker in last}, {}
    for name in unknown:
        named = dict.fromkeys(await called(work, name, rooms=rooms), name.removeprefix("@"))
        meant[name] = people_like(name, people | named)
    return meant


async def is_known(work: "UnitOfWork", person_id: str) -> bool:
    """Return True if somebody with this id spoke, is or was a member of a room, or has memories."""
    return bool(await work.rooms.of_person(person_id=person_id) or await work.memories.scope(scope=f"user:{person_id}"))


async def _is_known_to(work: "UnitOfWork", person_id: str, viewer: str | None, rooms: "Collection[str] | None") -> bool:
    """Return True if the viewer knows somebody with this id, from rooms that it may see all of; None for all rooms."""
    if rooms is None:
        return await is_known(work, person_id)
    its = await work.rooms.of_person(person_id=person_id)
    return viewer == f"user:{person_id}" or any(room.room_id in rooms for room in its)
