"""The pages of people: everybody who spoke, one person, and whom to forget."""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.responses import Response

from roomlore.core.errors import NotFound
from roomlore.core.memory.memory import Memory, MemoryStatus
from roomlore.core.models import Room, StoredMessage, Voice
from roomlore.surfaces.people_named import with_people_named
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
    groups: Sequence[Memory]
    """Memories of rooms that rest on the person's last messages; for an administrator."""


async def listed(page: Page) -> Response:
    """Return the page of those who spoke, who spoke last first, or of those with a part of a name."""
    part, offset = page.asked("q").strip(), page.number("offset") or 0
    people_like = await named_like(page, part, limit=_PEOPLE + 1, offset=offset)
    following = offset + _PEOPLE if len(people_like) > _PEOPLE else None
    people = people_like[:_PEOPLE]
    async with page.lore.storage.reading(page.lore.tenant) as work:
        ids = [speaker.sender_id for speaker in people] if page.is_admin else []
        stored = [await work.memories.scope(scope=f"user:{person_id}") for person_id in ids]
    memories = {row.scope.removeprefix("user:"): row.active for row in stored if row}
    return page.show("people.html", people=people, memories=memories, part=part, next=following, offset=offset)


async def person(page: Page) -> Response:
    """Return the page of a person, within what the viewer may see."""
    described = await _person(page, page.needed("id"))
    return page.show(
        "person.html",
        person=described,
        locked=await locked(page.lore, described.facts) if page.viewer is None else {},
    )


async def forget(page: Page) -> Response:
    """Return the form that asks whom to forget; the only one with an id or a name like it leads on at once."""
    page.need("admin")
    tried, of = Tried({}), ("user",)
    chosen = await choice_in(page, tried, "who", of=of)
    if chosen and all(choice == chosen for choice in tried.near):
        return page.go("/memory/change", what="forget", id=chosen.own_id)
    if tried.wrong and not tried.near:
        tried.wrong["who"] = page.tongue.say("forget.nobody")
    likely = dict.fromkeys([*([chosen] if chosen else []), *tried.near])
    near = [(choice, address("/memory/change", what="forget", id=choice.own_id)) for choice in likely]
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
        *await _last_said(page, person_id, voices[:_ROOMS_READ]),
    )


async def _last_said(page: Page, person_id: str, voices: Sequence[Voice]) -> tuple[list[StoredMessage], list[Memory]]:
    """Return the last messages of a person, from the ends of the rooms in which the person spoke last, and the memories
    of these rooms that rest on them."""
    lore, messages, groups = page.lore, list[StoredMessage](), list[Memory]()
    async with lore.storage.reading(lore.tenant) as work:
        for voice in voices:
            after = max(0, voice.last_arrival - _MESSAGES_READ)
            here = await work.messages.page(
                room_id=voice.room_id, after=after, limit=_MESSAGES_READ, sender_id=person_id
            )
            messages += here
            if page.is_admin and here:
                groups += await work.memories.citing(
                    room_id=voice.room_id, message_ids=[message.id for message in here]
                )
    newest = sorted(messages, key=lambda message: message.at, reverse=True)[:_MESSAGES]
    rest = [memory for memory in groups if memory.status is MemoryStatus.ACTIVE and memory.scope != f"user:{person_id}"]
    return await with_people_named(lore, newest), rest
