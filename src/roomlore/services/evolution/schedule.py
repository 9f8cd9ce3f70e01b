"""The schedule: which groups and people evolve by themselves, and when."""

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from datetime import timedelta

from roomlore.core.audience import RoomKind
from roomlore.core.memory.reading import own_words
from roomlore.core.models import Role
from roomlore.ports.coordination import Clock
from roomlore.ports.durable import Ticks, Times, rooms_behind
from roomlore.ports.storage import RoomBehind, Storage, UnitOfWork
from roomlore.services.evolution.evolution_service import EvolutionService
from roomlore.services.evolution.piece import EVOLUTION, Piece, facts_mark

MARK = "schedule:evolution"
PEOPLE = "schedule:people"
"""The watermark of a room up to which everything that people said was read for their facts."""
_FIRST_DAYS = 7.0
"""The days that a first evolution reads: enough for a quiet group, without all of an import."""
_MESSAGES = 500


class Schedule:
    """The schedule of all tenants. `times`: None if nothing evolves by schedule. `least`: the new messages that make a
    group evolve. `people`: returns True if the facts of people evolve now, which needs a model. `together`: the most
    people of a room whom a model is asked about in one call."""

    def __init__(
        self,
        *,
        storage: Storage,
        evolutions: EvolutionService,
        clock: Clock,
        times: Times | None,
        least: int,
        people: Callable[[], Awaitable[bool]],
        together: int = 1,
    ) -> None:
        self._together = together
        self._storage = storage
        self._evolutions = evolutions
        self._clock = clock
        self._ticks = Ticks(storage=storage, clock=clock, times=times, mark=MARK)
        self._least = least
        self._people = people

    async def sweep(self) -> list[str]:
        """Enqueue the work of the last scheduled time, unless that was done, and return the ids of the work."""
        due = await self._ticks.due()
        if due is None:
            return []
        enqueued = [await self._enqueue_group(room, due.tick) async for room in self._groups()]
        if await self._people():
            enqueued += [await self._enqueue_people(*people, due.tick) async for people in self._unread_people()]
        await self._ticks.handled(due)
        return enqueued

    async def _groups(self) -> AsyncIterator[RoomBehind]:
        async for room in rooms_behind(self._storage, EVOLUTION, self._least):
            if (room.mark or await self._has_enough_messages(room)) and not await self._is_one_person(room):
                yield room

    async def _is_one_person(self, room: RoomBehind) -> bool:
        """Return True for a room of one person and agents: it has no group whose memory could evolve."""
        async with self._storage.reading() as work:
            found = await work.rooms.people(tenant=room.tenant, room_ids=[room.room_id])
            spoke = await work.rooms.participants(tenant=room.tenant, room_id=room.room_id)
        people = found.get(room.room_id)
        if people is None or len(people.people) > 1:
            return False
        return people.kind is RoomKind.DIRECT or bool(spoke.keys() - people.people.keys())

    async def _unread_people(self) -> AsyncIterator[tuple[str, Sequence[str]]]:
        """Yield tenant and ids of everyone who spoke and was not read: together those of a room who spoke in no
        other."""
        rooms: dict[tuple[str, str], list[str]] = {}
        async for room in rooms_behind(self._storage, PEOPLE, 1):
            for person in await self._unread(room):
                rooms.setdefault((room.tenant, person), []).append(room.room_id)
        groups: dict[tuple[str, str, str], list[str]] = {}
        for (tenant, person), found in sorted(rooms.items()):
            where = ("room", found[0]) if len(found) == 1 and self._together > 1 else ("person", person)
            groups.setdefault((tenant, *where), []).append(person)
        for (tenant, *_), people in groups.items():
            for at in range(0, len(people), self._together):
                yield tenant, people[at : at + self._together]

    async def _unread(self, room: RoomBehind) -> Collection[str]:
        """Return the people with messages of the last days in the room that were not read for their facts. If there
        are none, the room is done up to here."""
        here = {"tenant": room.tenant, "room_id": room.room_id}
        async with self._storage.reading() as work:
            first = await work.messages.first_since(**here, since=self._clock.now() - timedelta(days=_FIRST_DAYS))
            if first is None:
                return ()
            last, end = await _last_said(work, room, after=max(room.mark, first - 1))
            marks = await work.progress.marks(**here, names=[facts_mark(person) for person in last])
        unread = [person for person, arrival in last.items() if marks.get(facts_mark(person), 0) < arrival]
        if not unread and end > room.mark:
            async with self._storage.writing() as work:
                await work.progress.move_mark(**here, name=PEOPLE, arrival=end, was=room.mark, now=self._clock.now())
        return unread

    async def _has_enough_messages(self, room: RoomBehind) -> bool:
        """Return True if a room that never evolved has enough recent messages: older ones are history."""
        here = {"tenant": room.tenant, "room_id": room.room_id}
        async with self._storage.reading() as work:
            first = await work.messages.first_since(**here, since=self._clock.now() - timedelta(days=_FIRST_DAYS))
            return first is not None and await work.messages.count(**here, after=first - 1) >= self._least

    async def _enqueue_group(self, room: RoomBehind, tick: int) -> str:
        return await self._enqueue(room.tenant, f"group:{room.room_id}", tick, goes_on=max(self._least, 1))

    async def _enqueue_people(self, tenant: str, people: Sequence[str], tick: int) -> str:
        """Enqueue all of these people's rooms, one after the other."""
        first, *others = [_piece(tenant, f"user:{person}", tick, goes_on=1) for person in people]
        await self._evolutions.enqueue(first, others=others)
        return first.work_id

    async def _enqueue(self, tenant: str, scope: str, tick: int, *, goes_on: int) -> str:
        piece = _piece(tenant, scope, tick, goes_on=goes_on)
        await self._evolutions.enqueue(piece)
        return piece.work_id


def _piece(tenant: str, scope: str, tick: int, *, goes_on: int) -> Piece:
    return Piece.of(
        tenant=tenant,
        scope=scope,
        days=_FIRST_DAYS,
        mode="auto",
        evolution_id=scheduled_id(tenant, scope, tick),
        goes_on=goes_on,
    )


async def _last_said(work: UnitOfWork, room: RoomBehind, *, after: int) -> tuple[dict[str, int], int]:
    """Return the arrival of each person's last message with words after this one, and of the last message of all."""
    last: dict[str, int] = {}
    while page := await work.messages.page(tenant=room.tenant, room_id=room.room_id, after=after, limit=_MESSAGES):
        last |= {one.sender_id: one.arrival for one in page if one.role is Role.USER and own_words(one)}
        after = page[-1].arrival
    return last, after


def scheduled_id(tenant: str, scope: str, tick: int) -> str:
    """Return the id of the evolution of a scope at a scheduled time. It sorts by that time among other ids."""
    own = hashlib.sha256("\0".join((tenant, scope)).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{tick * 1000:012x}8{own[:19]}"
