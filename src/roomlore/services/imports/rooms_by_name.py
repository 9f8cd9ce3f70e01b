"""The rooms of chats of which an export has no id, only a name, chosen by what is stored.

Exports of one run are told apart before; here they are compared with the rooms of earlier runs.
"""

import asyncio
import re
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice

from roomlore.core.audience import BEGINNING
from roomlore.core.models import Origin, Role
from roomlore.core.records import UNKNOWN_SENDER, Item, Parsed
from roomlore.core.reimport import Likeness, is_shared, room_for
from roomlore.storage import Storage, UnitOfWork

_BATCH = 1_000
_MOST_ROOMS = 1_000
_TICK = timedelta(microseconds=1)
_NOBODY = {UNKNOWN_SENDER, *(role.value for role in Role)}
"""Senders that tell nothing of who they are."""


@dataclass(frozen=True, slots=True)
class NamedChats:
    """The chats of an export that have no id, only a name. `rooms`: the ids they should get, by name. `read`: yields
    what the export holds, with these rooms under other ids."""

    rooms: Mapping[str, str]
    read: Callable[[Mapping[str, str]], Generator[Item]]


@dataclass(frozen=True, slots=True)
class ChosenRooms:
    """`ids`: for each export the ids of its rooms that are not the name of the chat, by name. `apart`: the names of
    these chats by the ids. `continued`: stored rooms that share neither a message nor most people with the chat."""

    ids: tuple[Mapping[str, str], ...]
    apart: Mapping[str, str] = field(default_factory=dict)
    continued: frozenset[str] = frozenset()

    def named(self, room_id: str) -> str | None:
        """Return the name of the chat in this room if the room is called otherwise."""
        own_name = self.apart.get(room_id)
        return self.apart.get(re.sub(f"{_TALK}$", "", room_id)) if own_name is None else own_name


@dataclass(slots=True)
class _Compared:
    """A chat as far as it is compared with a stored room. `rooms`: that room, or those of its numbered talks. `first`,
    `last`: when its messages were sent, None if the export tells no time. `begun`: when the chat was created, if the
    export begins with that and the room does not have it."""

    room_id: str
    read: int = 0
    shared: int = 0
    first: datetime | None = None
    last: datetime | None = None
    begun: datetime | None = None
    rooms: set[str] = field(default_factory=set)
    people: set[str] = field(default_factory=set)

    def take(self, item: Parsed, stored: Origin | None) -> None:
        """Take in a message. `stored`: what is stored under its id."""
        message = item.message
        if item.begins and stored is None and not self.people:
            self.begun = message.sent_at
        self.read += 1
        self.shared += is_shared(message, stored)
        self.rooms.add(message.room_id)
        if message.role is not Role.SYSTEM and message.sender_id not in _NOBODY:
            self.people.add(message.sender_id)
        if (at := message.sent_at) is not None:
            self.first, self.last = min(self.first or at, at), max(self.last or at, at)

    @property
    def is_found(self) -> bool:
        """True if the room has most of what was read."""
        return self.shared * 2 > self.read


@dataclass(frozen=True, slots=True)
class _Chat:
    """A chat as one export has it. `stored`: the rooms that may be its own, the wanted one first."""

    name: str
    wanted: str
    stored: Sequence[_Compared]

    @property
    def is_found(self) -> bool:
        return any(stored_room.is_found for stored_room in self.stored)


class RoomsByName:
    """Chooses the rooms of one tenant."""

    def __init__(self, *, tenant: str, storage: Storage) -> None:
        self._tenant = tenant
        self._storage = storage

    async def choose(self, exports: Sequence[NamedChats]) -> ChosenRooms:
        """Return the ids of the rooms. An export is read once for each stored room of its chat's name, and only until
        one has most of what was read."""
        chats = await self._chats(exports)
        parts: dict[tuple[str, str], dict[int, dict[str, Likeness]]] = {}
        for number, (its, export) in enumerate(zip(chats, exports, strict=True)):
            await self._compare(its, export)
            for chat in its:
                parts.setdefault((chat.name, chat.wanted), {})[number] = await self._likenesses(chat)
        wholes = {chat: _added_up(list(of_exports.values())) for chat, of_exports in parts.items()}
        ids: list[dict[str, str]] = [{} for _ in exports]
        taken, apart, continued = set[str](), dict[str, str](), set[str]()
        for name, wanted in sorted(wholes, key=lambda chat: min(map(_doubt, wholes[chat].values()), default=_UNKNOWN)):
            whole = wholes[name, wanted]
            common = room_for(name, wanted, whole, taken)
            if common in whole and not (whole[common].is_same or whole[common].is_known):
                continued.add(common)
            for number, likenesses in parts[name, wanted].items():
                held = any(likeness.is_same for likeness in likenesses.values())
                room_id = room_for(name, wanted, likenesses, taken) if held else common
                taken.add(room_id)
                if room_id != name:
                    apart[room_id] = name
                    ids[number][name] = room_id
        return ChosenRooms(tuple(ids), apart, frozenset(continued))

    async def _chats(self, exports: Sequence[NamedChats]) -> list[list[_Chat]]:
        """Return the chats of each export."""
        names = dict.fromkeys(name for export in exports for name in export.rooms)
        async with self._storage.reading(self._tenant) as work:
            stored = {name: await self._stored(work, name) for name in names}
        return [
            [
                _Chat(name, wanted, [_Compared(room_id) for room_id in sorted(stored[name], key=wanted.__ne__)])
                for name, wanted in export.rooms.items()
            ]
            for export in exports
        ]

    async def _stored(self, work: UnitOfWork, name: str) -> list[str]:
        """Return the stored rooms of this name, with and without a label, each without the number of a talk. A name
        that ends in a number, such as 'Family (1)', may be that of a file which was downloaded twice."""
        name = re.sub(r" \(\d+\)$", "", name)
        called = re.compile(rf"({re.escape(name)}(?: \(.+\))?)(?:{_TALK})?", re.S)
        bases = [name] if await work.rooms.find(room_id=name) else []
        for part in (f"{name} (", f"{name}-"):
            like = await work.rooms.named_like(part=part, limit=_MOST_ROOMS)
            bases += [held[1] for room in like if (held := called.fullmatch(room.room_id))]
        return list(dict.fromkeys(bases))

    async def _compare(self, chats: Sequence[_Chat], export: NamedChats) -> None:
        """Compare an export with one stored room of each chat after another: the ids of messages may depend on that of
        their room."""
        for place in range(max((len(chat.stored) for chat in chats), default=0)):
            unsettled = [chat for chat in chats if place < len(chat.stored) and not chat.is_found]
            if not unsettled:
                return
            stored = [chat.stored[place] for chat in unsettled]
            rooms = {chat.name: stored_room.room_id for chat, stored_room in zip(unsettled, stored, strict=True)}
            items = export.read(rooms)
            while batch := await asyncio.to_thread(list, islice(items, _BATCH)):
                await self._take(stored, export.rooms, batch)
                if all(stored_room.is_found for stored_room in stored):
                    break
            items.close()

    async def _take(self, compared: Sequence[_Compared], names: Collection[str], batch: Sequence[Item]) -> None:
        items_by_room: dict[str, list[Parsed]] = {}
        for item in batch:
            if isinstance(item, Parsed):
                items_by_room.setdefault(item.message.room_id, []).append(item)
        async with self._storage.reading(self._tenant) as work:
            for stored_room in compared:
                for room_id, items in items_by_room.items():
                    if room_id == stored_room.room_id or (
                        room_id not in names and _is_of(room_id, stored_room.room_id)
                    ):
                        ids = [item.message.id for item in items]
                        stored = await work.messages.origins(room_id=room_id, message_ids=ids)
                        for item in items:
                            stored_room.take(item, stored.get(item.message.id))

    async def _likenesses(self, chat: _Chat) -> dict[str, Likeness]:
        """Return how alike the chat and each stored room of its name are, without rooms that no message of it is in."""
        likenesses_by_room: dict[str, Likeness] = {}
        async with self._storage.reading(self._tenant) as work:
            for stored_room in chat.stored:
                rooms = [await work.rooms.find(room_id=room_id) for room_id in stored_room.rooms]
                held = {room.room_id: room.messages for room in rooms if room is not None}
                if held:
                    spoke = set[str]()
                    for room_id in held:
                        spoke |= (await work.rooms.participants(room_id=room_id)).keys() - _NOBODY
                    likenesses_by_room[stored_room.room_id] = Likeness(
                        read=stored_room.read,
                        shared=stored_room.shared,
                        meanwhile=await self._meanwhile(work, stored_room, held),
                        earlier=await self._earlier(work, stored_room, held),
                        speakers=min(len(spoke), len(stored_room.people)),
                        common=len(spoke & stored_room.people),
                    )
        return likenesses_by_room

    async def _meanwhile(self, work: UnitOfWork, compared: _Compared, held: Mapping[str, int]) -> int:
        """Return how many messages of rooms are from the time of the export. All that are `held` count for an export
        that tells no time, and for numbered talks, none of which continues another."""
        if compared.first is None or compared.last is None or held.keys() != {compared.room_id}:
            return sum(held.values())
        times = (compared.first, compared.last + _TICK)
        counts = await work.messages.sent_between(room_ids=held, times=times, most=compared.read)
        return sum(map(sum, counts.values()))

    async def _earlier(self, work: UnitOfWork, compared: _Compared, held: Mapping[str, int]) -> bool:
        """Return True if rooms have messages from before the chat was created."""
        times = (BEGINNING, compared.begun) if compared.begun else ()
        return any(map(any, (await work.messages.sent_between(room_ids=held, times=times, most=1)).values()))


_TALK = r"-\d+"
"""What follows the name in the rooms of an export that holds several talks."""


_UNKNOWN = (True, 0)


def _doubt(likeness: Likeness) -> tuple[bool, int]:
    """Return what sorts chats: those that a room holds come first, then those of which a room knows the most people."""
    return not likeness.is_same, -likeness.common if likeness.is_known else 0


def _added_up(likenesses: Sequence[Mapping[str, Likeness]]) -> dict[str, Likeness]:
    """Return how alike a chat and each stored room are, from the exports that have parts of it."""
    likenesses_by_room: dict[str, Likeness] = {}
    for room_id, likeness in (pair for its in likenesses for pair in its.items()):
        before = likenesses_by_room.get(room_id, Likeness(read=0, shared=0, meanwhile=0))
        likenesses_by_room[room_id] = Likeness(
            read=before.read + likeness.read,
            shared=before.shared + likeness.shared,
            meanwhile=before.meanwhile + likeness.meanwhile,
            earlier=before.earlier or likeness.earlier,
            speakers=max(before.speakers, likeness.speakers),
            common=max(before.common, likeness.common),
        )
    return likenesses_by_room


def _is_of(room_id: str, chosen: str) -> bool:
    """Return True if this is the room that was chosen, or that of a numbered talk of it."""
    return room_id.startswith(chosen) and re.fullmatch(f"(?:{_TALK})?", room_id[len(chosen) :]) is not None
