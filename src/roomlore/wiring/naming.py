"""Rooms, people and agents as callers name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roomlore.core.errors import InvalidInput, NotFound, UnknownRoom
from roomlore.core.memory.memory import check_scope
from roomlore.core.memory.writing import scope_of
from roomlore.core.models import Room
from roomlore.core.search.facts import nobody_has
from roomlore.core.texts import Phrase, sentences
from roomlore.ports.people import people_meant

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from roomlore.wiring.lore import Lore


async def scope_about(
    lore: Lore,
    about: Room | str,
    *,
    viewer: str | None,
    group: bool = False,
    person: Callable[[str], Awaitable[str]] | None = None,
    refuse: Callable[[str], object] | None = None,
) -> str:
    """Return the scope of a room, or of a scope (also 'room:Crew') or the name or id of a room or a person alone: with
    the id in place of the name of a room, and in place of a person's where it stands alone.

    Raise `InvalidInput` that names what may be meant if several have the name. `viewer`: a name alone is of a room of
    which it may see all, and no person's. `group`: a room comes before a person of that name, and may be new. `person`:
    reads a person's name that stands alone, by default as `lore.privacy.person_named` does. `refuse`: raises the error
    for what nothing has.
    """
    if isinstance(about, Room):
        return f"group:{about.room_id}"
    kind, _, name = about.partition(":") if isinstance(about, str) else ("", "", "")
    given = f"group:{name}" if kind == "room" and name else about
    if scope_of(given) == given:
        return await lore.rooms.scope_named(given, viewer=viewer)
    room = f"group:{await lore.rooms.named(given, viewer=viewer, or_new=True)}"
    is_room = not (unknown := await scope_meant(lore, room, viewer=viewer))
    if is_room and (group or viewer is not None):
        return room
    if viewer is not None:
        raise NotFound(unknown)
    user = f"user:{await (person or lore.privacy.person_named)(given)}"
    try:
        await lore.rooms.check_there(user)
    except NotFound as error:
        if is_room or group:
            return room
        meant = [await lore.rooms.meant(given, viewer=viewer), await scope_meant(lore, user, viewer=viewer)]
        if alike := sentences("", *(text for text in meant if text.endswith("?"))):
            raise NotFound(sentences(Phrase("name_unknown", name=f"{given!r:.80}"), alike)) from error
        (refuse or check_scope)(given)
    if is_room:
        raise InvalidInput("scope_of_two", given=f"{given!r:.80}", room=room, user=user)
    return user


async def scope_meant(lore: Lore, scope: str, *, viewer: str | None) -> str:
    """Return a sentence which says that there is no room, or nobody, with the id of a scope, and which may be meant; ''
    if there is."""
    kind, _, known = scope.partition(":")
    if kind == "group":
        try:
            await lore.rooms.named(known, viewer=viewer)
        except UnknownRoom as error:
            return sentences(str(error), await lore.rooms.meant(known, viewer=viewer))
    if kind == "user":
        async with lore.storage.reading(lore.tenant) as work:
            if not await work.rooms.of_person(person_id=known):
                return nobody_has(known, await people_meant(work, known, viewer=viewer, now=lore.now()))
    return ""
