"""Addresses with the name of a room or a person in place of an id: they lead to the one that has it, or to a choice."""

from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from starlette.responses import Response

from roomlore.core.models import Room, Speaker
from roomlore_console.frame import Page, address
from roomlore_console.people import is_known, named_like
from roomlore_console.shell import rooms_among, rooms_by_use

_MOST = 50
_ROOMS_READ = 200
_PEOPLE_READ = 200

_PARAMETERS: Mapping[str, str] = {
    "/room": "id",
    "/thread": "id",
    "/digest": "id",
    "/visible": "id",
    "/context": "room",
    "/person": "id",
}
"""The parameter that takes an id, by page."""


async def room(page: Page) -> Response:
    """Lead from `/rooms/NAME` to the page of the room with this id or name."""
    return await _from_path(page, "/room", "/rooms")


async def person(page: Page) -> Response:
    """Lead from `/people/NAME` to the page of the person with this id or name."""
    return await _from_path(page, "/person", "/people")


async def _from_path(page: Page, path: str, every: str) -> Response:
    name = unquote(page.request.path_params["name"])
    if not name:
        return page.go(every)
    return await _led(page, path, {"id": name}) or page.go(path, id=name)


async def instead(page: Page, path: str) -> Response | None:
    """Return a redirect or a choice if an id in the address of a page is unknown, and a name; None if it is neither."""
    name = page.asked(_PARAMETERS.get(path, ""))
    return await _led(page, path, dict(page.request.query_params)) if name else None


async def _led(page: Page, path: str, query: Mapping[str, str]) -> Response | None:
    parameter = _PARAMETERS[path]
    name = query[parameter]
    of_people = path == "/person"
    rooms = [] if of_people else await _rooms_called(page, name)
    people = await _people_called(page, name) if of_people else []
    ids = [of_room.room_id for of_room in rooms] + [of_person.sender_id for of_person in people]
    if len(ids) == 1:
        return page.go(path, **{**query, parameter: ids[0]})
    if not ids:
        return None
    hrefs = {own_id: address(path, **{**query, parameter: own_id}) for own_id in ids}
    return page.show("choose.html", rooms=rooms, people=people, name=name, hrefs=hrefs)


async def _rooms_called(page: Page, name: str) -> list[Room]:
    """Return the rooms with this name that the viewer sees; none if it is an id."""
    if page.viewer is None:
        async with page.lore.storage.reading(page.lore.tenant) as work:
            like = await work.rooms.named_like(part=name, limit=_MOST, whole=True)
    else:
        like = list(await rooms_by_use(page, limit=_ROOMS_READ))
    if any(like_room.room_id == name for like_room in like):
        return []
    return [like_room for like_room in like if like_room.name.casefold() == name.casefold()]


async def _people_called(page: Page, name: str) -> Sequence[Speaker]:
    """Return those who have this name in a room that the viewer sees; none if it is an id."""
    if await is_known(page.lore, name):
        return []
    like = await named_like(page, name, limit=_PEOPLE_READ)
    others = {voice.sender_id for voice in like if voice.name.casefold() != name.casefold()}
    among = await rooms_among(page)
    async with page.lore.storage.reading(page.lore.tenant) as work:
        for person_id in list(others)[:_MOST]:
            voices = await work.rooms.voices(sender_id=person_id)
            shown = (voice.name for voice in voices if among is None or voice.room_id in among)
            if name.casefold() in map(str.casefold, shown):
                others.discard(person_id)
    return [voice for voice in like if voice.sender_id not in others][:_MOST]
