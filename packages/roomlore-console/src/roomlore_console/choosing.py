"""People, rooms and agents to choose from: names are shown, ids are sent, and a typed name is looked up."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from roomlore.core.errors import InvalidInput
from roomlore.core.memory.memory import check_scope
from roomlore.core.models import Room, Speaker
from roomlore.core.text import alike
from roomlore.ports import people as stored_people
from roomlore.wiring import Lore
from roomlore_console.frame import Page, Tried, visible
from roomlore_console.shell import rooms_among, rooms_by_use, rooms_named

_OFFERED = 100
_LIKE = 50
_NEAR = 5
_KINDS: Mapping[str, str] = {"group": "group", "room": "group", "user": "user", "agent": "agent"}
"""The kind of a scope by the kind that was typed."""
_EVERY_KIND = ("group", "user", "agent")


class Choice(NamedTuple):
    """Whose memories a scope holds. `name`: '' if only the id is known."""

    scope: str
    name: str = ""

    @property
    def kind(self) -> str:
        return self.scope.partition(":")[0]

    @property
    def own_id(self) -> str:
        return self.scope.partition(":")[2]

    @property
    def title(self) -> str:
        return self.name or self.own_id

    @property
    def viewer(self) -> str:
        """The viewer that this is, 'room:team' or 'user:anna'."""
        return f"room:{self.own_id}" if self.kind == "group" else self.scope


async def choice_in(
    page: Page, tried: Tried, name: str, *, of: Sequence[str] = _EVERY_KIND, typed: str | None = None
) -> Choice | None:
    """Return the one of some kinds whose id or name a field contains, by default that of the address; None for an
    empty field, and with a note if that is nobody or several."""
    typed = (page.asked(name) if typed is None else typed).strip()
    if not typed:
        return None
    try:
        exact, tried.near = await meant(page, typed, of)
    except InvalidInput as error:
        tried.wrong[name] = str(error)
        return None
    if len(exact) == 1:
        return exact[0]
    tried.near = exact or tried.near
    how = "several" if exact else "near" if tried.near else "nobody"
    tried.wrong[name] = page.tongue.say(f"pick.{how}", name=visible(typed[:80]))
    return None


async def named_like(page: Page, part: str, *, limit: int, offset: int = 0) -> list[Speaker]:
    """Return those who spoke in rooms that the viewer sees, whose id or name contains `part`."""
    lore, among = page.lore, await rooms_among(page)
    async with lore.storage.reading(lore.tenant) as work:
        return await work.rooms.speakers(part=part, room_ids=among, limit=limit, offset=offset)


async def is_known(lore: Lore, person_id: str) -> bool:
    """Return True if somebody with this id spoke, is a member of a room, or has facts."""
    async with lore.storage.reading(lore.tenant) as work:
        return await stored_people.is_known(work, person_id)


async def offered(page: Page, *, of: Sequence[str] = _EVERY_KIND) -> list[Choice]:
    """Return the rooms used last and the people who spoke last, as far as the viewer sees them."""
    rooms = await rooms_by_use(page, limit=_OFFERED) if "group" in of else []
    choices = [*_of_rooms(rooms), *_of_people(await named_like(page, "", limit=_OFFERED))]
    return [choice for choice in choices if visible(choice.scope) == choice.scope]


async def meant(page: Page, typed: str, of: Sequence[str]) -> tuple[list[Choice], list[Choice]]:
    """Return those who have this id or name, and only the one with the id if exactly one has it; if nobody has, those
    with one like it."""
    kind, _, own_id = typed.partition(":")
    if own_id and _KINDS.get(kind) in of and not page.shown_as:
        return [Choice(check_scope(f"{_KINDS[kind]}:{own_id}"))], []
    rooms = _of_rooms([*await rooms_named(page, typed, whole=True), *await rooms_named(page, typed, limit=_LIKE)])
    people = await named_like(page, typed, limit=_LIKE)
    like = list(dict.fromkeys([*(rooms if "group" in of else ()), *_of_people(people)]))
    wanted = typed.casefold()
    exact = [choice for choice in like if wanted in (choice.own_id.casefold(), choice.name.casefold())]
    exact += [choice for choice in like if choice not in exact and wanted in await _names(page, choice)]
    if page.is_admin and not any(choice.own_id == typed for choice in exact):
        exact = [choice for choice in await _stored(page.lore, typed) if choice.kind in of] or exact
    if exact or like:
        own = [choice for choice in exact if choice.own_id == typed]
        return own if len(own) == 1 else exact, like[:_NEAR]
    known: dict[str, list[Choice]] = {}
    for choice in await offered(page, of=of):
        for text in {choice.own_id, choice.name} - {""}:
            known.setdefault(text, []).append(choice)
    return [], list(dict.fromkeys(choice for text in alike(typed, known) for choice in known[text]))[:_NEAR]


async def _names(page: Page, choice: Choice) -> set[str]:
    """Return the names that a person has in the rooms that the viewer sees."""
    lore, among = page.lore, await rooms_among(page)
    async with lore.storage.reading(lore.tenant) as work:
        voices = await work.rooms.voices(sender_id=choice.own_id) if choice.kind == "user" else []
    return {voice.name.casefold() for voice in voices if among is None or voice.room_id in among}


async def _stored(lore: Lore, own_id: str) -> list[Choice]:
    """Return what has this id without having spoken: a person with facts or in a room, or an agent with memories."""
    people = [Choice(f"user:{own_id}")] if await is_known(lore, own_id) else []
    async with lore.storage.reading(lore.tenant) as work:
        agent = await work.memories.scope(scope=f"agent:{own_id}")
        room = await work.rooms.find(room_id=own_id)
    others = (f"agent:{own_id}" if agent else "", f"group:{own_id}" if room else "")
    return [*people, *(Choice(scope) for scope in others if scope)]


def _of_rooms(rooms: Iterable[Room]) -> list[Choice]:
    return [Choice(f"group:{room.room_id}", room.name) for room in rooms]


def _of_people(people: Iterable[Speaker]) -> list[Choice]:
    return [Choice(f"user:{speaker.sender_id}", speaker.name) for speaker in people]
