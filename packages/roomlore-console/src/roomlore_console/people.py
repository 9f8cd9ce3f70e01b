"""The pages of people: everybody who spoke, one person, and whom to forget."""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.responses import Response

from roomlore.core.errors import NotFound
from roomlore.core.memory.memory import Memory
from roomlore.core.models import Room, StoredMessage, Voice
from roomlore.surfaces.people_named import with_people_named
from roomlore.wiring import Lore
from roomlore_console.choosing import choice_in, named_like, offered
from roomlore_console.frame import Page, Tried, address
from roomlore_console.memories import locked
from roomlore_console.shell import rooms_among

_PEOPLE = 50
_FACTS = 50
_ROOMS = 100
_ROOMS_READ = 3
_MESSAGES_READ = 100
_MESSAGES = 10


@dataclass(frozen=True, slots=True)
class Person:
    """The content of a person's page. `member_of`: rooms in which the person never spoke. `more`: rooms that are not
    shown."""

    person_id: str
    names: tuple[str, ...]
    voices: Sequence[Voice]
    member_of: Sequence[Room]
    more: int
    facts: Sequence[Memory]
    said: Sequence[StoredMessage]


async def listed(page: Page) -> Response:
    """Return the page of those who spoke, who spoke last first, or of those with a part of a name."""
    part, offset = page.asked("q").strip(), page.number("offset") or 0
    people_like = await named_like(page, part, limit=_PEOPLE + 1, offset=offset)
    following = offset + _PEOPLE if len(people_like) > _PEOPLE else None
    return page.show("people.html", people=people_like[:_PEOPLE], part=part, next=following, offset=offset)


async def person(page: Page) -> Response:
    """Return the page of a person, within what the viewer may see."""
    described = await _person(page, page.needed("id"))
    return page.show(
        "person.html",
        person=described,
        locked=await locked(page.lore, described.facts) if page.viewer is None else {},
    )


async def forget(page: Page) -> Response:
    """Return the form that asks whom to forget; the only one with an id or a name leads on at once."""
    page.need("admin")
    tried, of = Tried({}), ("user",)
    chosen = await choice_in(page, tried, "who", of=of)
    if chosen:
        return page.go("/memory/change", what="forget", id=chosen.own_id)
    if tried.wrong and not tried.near:
        tried.wrong["who"] = page.tongue.say("forget.nobody")
    near = [(choice, address("/memory/change", what="forget", id=choice.own_id)) for choice in tried.near]
    return page.show("forget.html", who=page.asked("who"), tried=tried, near=near, offered=await offered(page, of=of))


async def _person(page: Page, person_id: str) -> Person:
    lore, among, scope = page.lore, await rooms_among(page), f"user:{person_id}"
    async with lore.storage.reading(lore.tenant) as work:
        voices = await work.rooms.voices(sender_id=person_id)
        rooms = await work.rooms.of_person(person_id=person_id)
    facts = await lore.memories.page(scope, limit=_FACTS, viewer=page.viewer)
    if among is not None:
        voices = [voice for voice in voices if voice.room_id in among]
        rooms = [room for room in rooms if room.room_id in among]
    if not (voices or rooms or facts):
        raise NotFound("person_not_in_list", person=f"{person_id!r:.80}")
    spoke_in = {voice.room_id for voice in voices}
    silent = [room for room in rooms if room.room_id not in spoke_in]
    return Person(
        person_id,
        tuple(dict.fromkeys(voice.name for voice in voices if voice.name)),
        voices[:_ROOMS],
        silent[:_ROOMS],
        max(0, len(voices) - _ROOMS) + max(0, len(silent) - _ROOMS),
        facts,
        await _last_said(lore, person_id, voices[:_ROOMS_READ]),
    )


async def _last_said(lore: Lore, person_id: str, voices: Sequence[Voice]) -> list[StoredMessage]:
    """Return the last messages of a person, from the ends of the rooms in which the person spoke last."""
    messages: list[StoredMessage] = []
    async with lore.storage.reading(lore.tenant) as work:
        for voice in voices:
            after = max(0, voice.last_arrival - _MESSAGES_READ)
            messages += await work.messages.page(
                room_id=voice.room_id, after=after, limit=_MESSAGES_READ, sender_id=person_id
            )
    newest = sorted(messages, key=lambda message: message.at, reverse=True)[:_MESSAGES]
    return await with_people_named(lore, newest)
