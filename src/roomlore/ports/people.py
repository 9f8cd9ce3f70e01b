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
    named = {}
    for speaker in like:
        voices = await work.rooms.voices(sender_id=speaker.sender_id)
        its = [voice.room_id for voice in voices if fold(voice.name) == fold(part)]
        if there := [room for room in its if rooms is None or room in rooms]:
            named[speaker.sender_id] = there
    return named


async def people_meant(work: "UnitOfWork", name: str, *, viewer: str | None, now: "datetime") -> dict[str, str]:
    """Return the people whom an id may mean of which nothing is known, with their names: those whose name it is, or
    else those whose id or name is nearly the same. `viewer`: by the rooms alone that it may see all of."""
    its = await work.rooms.of_person(person_id=name)
    if viewer is None:
        rooms, known = None, bool(its or await work.memories.scope(scope=f"user:{name}"))
    else:
        shown = await rooms_shown(work, viewer=check_viewer(viewer), now=now, most=_COMPARED)
        rooms = [room.room_id for room, windows in shown.rooms if windows == ALWAYS]
        known = viewer == f"user:{name}" or any(room.room_id in rooms for room in its)
    if known:
        return {}
    last = await work.rooms.speakers(part="", room_ids=rooms, limit=_COMPARED)
    people = {speaker.sender_id: speaker.name for speaker in last}
    return people_like(name, people | dict.fromkeys(await called(work, name, rooms=rooms), name.removeprefix("@")))
