"""The rooms of exports that know a chat by its name alone, chosen by what is stored.

Exports of one run are told apart before; here they are compared with the rooms of earlier runs.
"""

import asyncio
import re
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice

from roomlore.core.models import Message, Origin, Role
from roomlore.core.records import Item, Parsed
from roomlore.core.reimport import Likeness, room_for
from roomlore.ports.storage import Storage, UnitOfWork

_BATCH = 1_000
_MOST_ROOMS = 200
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class NamedChats:
    """The chats that an export knows by name alone. `rooms`: the ids they should get, by name. `read`: yields what the
    export holds, with rooms of other ids than these names."""

    rooms: Mapping[str, str]
    read: Callable[[Mapping[str, str]], Generator[Item]]


@dataclass(frozen=True, slots=True)
class ChosenRooms:
    """`ids`: for each export the ids of its rooms, by name, without those that are the name. `apart`: the names of the
    chats by the ids of rooms that are called otherwise. `continued`: rooms that were there, and have other messages of
    another time; the export may be of another chat."""

    ids: tuple[Mapping[str, str], ...]
    apart: Mapping[str, str]
    continued: frozenset[str]


@dataclass(slots=True)
class _Compared:
    """A chat as far as it is compared with a stored room. `rooms`: that room, or those of its numbered talks."""

    room_id: str
    read: int = 0
    shared: int = 0
    first: datetime | None = None
    last: datetime | None = None
    rooms: set[str] = field(default_factory=set)

    def take(self, message: Message, known: Origin | None) -> None:
        """Take in a message. `known`: what is stored under its id."""
        at = message.sent_at
        self.read += 1
        self.rooms.add(message.room_id)
        if known is not None and known.sender_id == message.sender_id and at in (None, known.at):
            self.shared += 1
        if at is not None:
            self.first, self.last = min(self.first or at, at), max(self.last or at, at)

    @property
    def is_told(self) -> bool:
        """True if the room has most of what was read."""
        return self.shared * 2 > self.read


@dataclass(frozen=True, slots=True)
class _Chat:
    """A chat of the exports at these places. `stored`: the rooms of its name."""

    name: str
    wanted: str
    places: Sequence[int]
    stored: Sequence[_Compared]

    @property
    def is_told(self) -> bool:
        return any(one.is_told for one in self.stored)


class RoomsByName:
    """Chooses the rooms of one tenant."""

    def __init__(self, *, tenant: str, storage: Storage) -> None:
        self._tenant = tenant
        self._storage = storage

    async def choose(self, exports: Sequence[NamedChats]) -> ChosenRooms:
        """Return the ids of the rooms. An export is read once for each stored room of its chat's name, and only until
        one has most of what was read."""
        chats = await self._chats(exports)
        for place, export in enumerate(exports):
            await self._compare([chat for chat in chats if place in chat.places], export)
        likenesses = [await self._likenesses(chat) for chat in chats]
        known = [any(one.is_same for one in likeness.values()) for likeness in likenesses]
        ids: list[dict[str, str]] = [{} for _ in exports]
        taken, apart, continued = set[str](), dict[str, str](), set[str]()
        for place in sorted(range(len(chats)), key=lambda place: not known[place]):
            chat, likeness = chats[place], likenesses[place]
            room_id = room_for(chat.name, chat.wanted, likeness, taken)
            taken.add(room_id)
            if room_id != chat.name:
                apart[room_id] = chat.name
                for its in chat.places:
                    ids[its][chat.name] = room_id
            if room_id in likeness and not known[place]:
                continued.add(room_id)
        return ChosenRooms(tuple(ids), apart, frozenset(continued))

    async def _chats(self, exports: Sequence[NamedChats]) -> list[_Chat]:
        places: dict[tuple[str, str], list[int]] = {}
        for place, export in enumerate(exports):
            for name, wanted in export.rooms.items():
                places.setdefault((name, wanted), []).append(place)
        async with self._storage.reading() as work:
            stored = {name: await self._stored(work, name) for name in dict.fromkeys(name for name, _ in places)}
        return [
            _Chat(name, wanted, its, [_Compared(room_id) for room_id in stored[name]])
            for (name, wanted), its in places.items()
        ]

    async def _stored(self, work: UnitOfWork, name: str) -> list[str]:
        """Return the stored rooms of this name, with and without a label, each without the number of a talk."""
        called = re.compile(rf"({re.escape(name)}(?: \(.+\))?)(?:-\d+)?", re.S)
        found = [name] if await work.rooms.find(tenant=self._tenant, room_id=name) else []
        for part in (f"{name} (", f"{name}-"):
            like = await work.rooms.named_like(tenant=self._tenant, part=part, limit=_MOST_ROOMS)
            found += [known[1] for room in like if (known := called.fullmatch(room.room_id))]
        return list(dict.fromkeys(found))

    async def _compare(self, chats: Sequence[_Chat], export: NamedChats) -> None:
        """Compare an export with one stored room of each chat after another: the ids of messages may depend on that of
        their room."""
        for number in range(max((len(chat.stored) for chat in chats), default=0)):
            asked = [chat for chat in chats if number < len(chat.stored) and not chat.is_told]
            if not asked:
                return
            rooms = {chat.name: chat.stored[number].room_id for chat in asked}
            with closing(export.read(rooms)) as items:
                while batch := await asyncio.to_thread(list, islice(items, _BATCH)):
                    await self._take([chat.stored[number] for chat in asked], export.rooms, batch)
                    if all(chat.is_told for chat in asked):
                        break

    async def _take(self, compared: Sequence[_Compared], names: Collection[str], batch: Sequence[Item]) -> None:
        said: dict[str, list[Message]] = {}
        for item in batch:
            if isinstance(item, Parsed) and _tells(item.message):
                said.setdefault(item.message.room_id, []).append(item.message)
        async with self._storage.reading() as work:
            for one in compared:
                for room_id, messages in said.items():
                    if room_id == one.room_id or (room_id not in names and _is_talk(room_id, one.room_id)):
                        asked = [message.id for message in messages]
                        known = await work.messages.origins(tenant=self._tenant, room_id=room_id, message_ids=asked)
                        for message in messages:
                            one.take(message, known.get(message.id))

    async def _likenesses(self, chat: _Chat) -> dict[str, Likeness]:
        """Return how alike the chat and each stored room of its name are, without rooms that no message of it is in."""
        found: dict[str, Likeness] = {}
        async with self._storage.reading() as work:
            for one in chat.stored:
                rooms = [await work.rooms.find(tenant=self._tenant, room_id=room_id) for room_id in one.rooms]
                held = {room.room_id: room.messages for room in rooms if room is not None}
                if held:
                    found[one.room_id] = Likeness(one.read, one.shared, await self._meanwhile(work, one, held))
        return found

    async def _meanwhile(self, work: UnitOfWork, compared: _Compared, held: Mapping[str, int]) -> int:
        """Return how many messages of rooms are from the time of the chat, all that are `held` if it has no times."""
        if compared.first is None or compared.last is None:
            return sum(held.values())
        times = (compared.first, compared.last + _TICK)
        counts = await work.messages.sent_between(tenant=self._tenant, room_ids=held, times=times, most=compared.read)
        return sum(map(sum, counts.values()))


def _is_talk(room_id: str, of: str) -> bool:
    """Return True if the room has the number of a talk after the id of another."""
    return room_id.startswith(of) and re.fullmatch(r"-\d+", room_id[len(of) :]) is not None


def _tells(message: Message) -> bool:
    """Return True if a message tells chats apart, as those of the program do not."""
    return message.role is not Role.SYSTEM and bool(message.text)
