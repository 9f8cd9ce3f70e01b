"""Search of all rooms that a viewer may see, ranked as one."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from roomlore.core.audience import Viewer, Window
from roomlore.core.linking.part import pointers, told_alone
from roomlore.core.models import Room, StoredMessage
from roomlore.core.search.hits import Dense, Ints, Postings, SearchAnswer, SearchMode
from roomlore.core.search.multi_room import MultiRoom, Part, allowed, is_whole, last_of_senders, part_of
from roomlore.core.search.query import SearchQuery
from roomlore.core.search.ranking import Ranked, rank
from roomlore.ports.audience import room_shown, rooms_shown
from roomlore.ports.storage import UnitOfWork
from roomlore.services.messages.search import (
    AskedAt,
    Filters,
    Searching,
    check_search,
    conversations,
    hit_of,
)

MAX_ROOMS = 200
MAX_MESSAGES = 200_000
_INLINE = 20_000
"""Messages that are joined on the event loop; more use another thread."""


class RoomsSearch(Searching):
    """Search all rooms of one tenant that a viewer may see: at most the 200 used last, and 200,000 messages."""

    async def search(
        self,
        viewer: Viewer | None,
        query: str,
        *,
        limit: int,
        mode: SearchMode,
        filters: Filters,
        asked_at: AskedAt,
        conversation: bool = False,
        room_id: str | None = None,
    ) -> SearchAnswer:
        """Return what the viewer may see, None for all, of the messages that answer the query best. `room_id`: of this
        room alone. Raise `NotFound` if the viewer may see nothing of it."""
        check_search(query, limit=limit, mode=mode, asked_at=asked_at)
        started = self._clock.monotonic()
        parts, left_out = await self._parts(viewer) if room_id is None else await self._part_of(viewer, room_id)
        large = sum(part.facts.arrivals.size for part in parts) > _INLINE
        rooms = await asyncio.to_thread(MultiRoom, parts) if large else MultiRoom(parts)
        facts, only = rooms.facts, rooms.among(filters.among(rooms.facts))
        read = self._read(query, facts, asked_at)
        dense = await self._near(rooms, read, only, mode)
        postings = await self._postings(rooms, read)
        nearest = rooms.nearest([one.found for one in dense])
        ranked = rank(read, postings=postings, dense=nearest, facts=facts, limit=limit, only=only)
        around = conversations(ranked, facts) if conversation else {}
        messages = await self._messages(rooms, ranked, around)
        problems = [one.problem for one in dense[:1] if one.problem] + ([left_out] if left_out else [])
        answer = SearchAnswer(
            room_id=room_id,
            query=query,
            mode="hybrid" if any(one.used for one in dense) else "lexical",
            hits=tuple(hit_of(one, messages, around) for one in ranked if one.arrival in messages),
            times=read.spans,
            degraded=" ".join(problems) or None,
            search_ms=1000 * (self._clock.monotonic() - started),
        )
        self._measure(answer)
        return answer

    async def _parts(self, viewer: Viewer | None) -> tuple[list[Part], str | None]:
        """Return what may be shown of each room, the room used last first, and what is said of those left out."""
        async with self._storage.reading() as work:
            shown = await rooms_shown(work, tenant=self._tenant, viewer=viewer, now=self._clock.now(), most=MAX_ROOMS)
            found = [await self.part(work, room, windows) for room, windows in shown.rooms]
        parts = sorted((part for part in found if part.facts.arrivals.size), key=_newest_first)
        kept, size = list[Part](), 0
        for part in parts[:MAX_ROOMS]:
            size += part.facts.arrivals.size
            if kept and size > MAX_MESSAGES:
                break
            kept.append(part)
        few = len(kept) < len(parts) or shown.more
        return kept, f"Only the {len(kept)} rooms used last were searched; name a room." if few else None

    async def _part_of(self, viewer: Viewer | None, room_id: str) -> tuple[list[Part], None]:
        async with self._storage.reading() as work:
            room, windows = await room_shown(
                work, tenant=self._tenant, viewer=viewer, room_id=room_id, now=self._clock.now()
            )
            return [await self.part(work, room, windows)], None

    async def part(self, work: UnitOfWork, room: Room, windows: Sequence[Window]) -> Part:
        """Return what may be shown of a room in these windows."""
        facts = await self._facts.of(work, room)
        if is_whole(windows):
            return Part(room.room_id, facts)
        here = {"tenant": self._tenant, "room_id": room.room_id}
        arrivals = allowed(facts, windows, await work.messages.edited(**here))
        last = await work.messages.messages_by_arrival(**here, arrivals=last_of_senders(facts, arrivals))
        return part_of(room.room_id, facts, arrivals, {one.sender_id: one.sender_name for one in last})

    async def _postings(self, rooms: MultiRoom, query: SearchQuery) -> Postings:
        async with self._storage.reading() as work:
            found = [
                await work.messages.look_up(tenant=self._tenant, room_id=part.room_id, words=query.terms)
                for part in rooms.parts
            ]
        return rooms.postings(query.terms, found)

    async def _near(self, rooms: MultiRoom, query: SearchQuery, only: Ints, mode: SearchMode) -> list[Dense]:
        """Return the nearest neighbours in each room."""
        if mode == "lexical" or not query.embed or not rooms.parts:
            return [Dense(problem=await self._dense.problem())]
        scopes = {part.room_id: rooms.within(at, only) for at, part in enumerate(rooms.parts)}
        found = await self._dense.near_each(self._tenant, scopes, query.embed)
        return [found[part.room_id] for part in rooms.parts]

    async def _messages(
        self, rooms: MultiRoom, ranked: Sequence[Ranked], around: Mapping[int, Sequence[int]]
    ) -> dict[int, StoredMessage]:
        wanted: dict[int, dict[int, int]] = {}
        for number in {one.arrival for one in ranked}.union(*around.values()):
            at, arrival = rooms.place(number)
            wanted.setdefault(at, {})[arrival] = number
        found: dict[int, StoredMessage] = {}
        async with self._storage.reading() as work:
            for at, numbers in wanted.items():
                its = await self.told(work, rooms.parts[at], sorted(numbers))
                found |= {numbers[arrival]: message for arrival, message in its.items()}
        return found

    async def told(self, work: UnitOfWork, part: Part, arrivals: Sequence[int]) -> dict[int, StoredMessage]:
        """Return these messages of a part by arrival, as a viewer is told them who sees no other part of the room."""
        here: Any = {"tenant": self._tenant, "room_id": part.room_id}
        found = {one.arrival: one for one in await work.messages.messages_by_arrival(**here, arrivals=arrivals)}
        if part.whole:
            return found
        named = await work.messages.by_id(**here, message_ids=sorted(pointers(list(found.values()))))
        shown = set(part.facts.arrivals.tolist())
        seen = {entry.message.id for entry in named if entry.message.arrival in shown}
        places = {arrival: place for place, arrival in enumerate(part.facts.arrivals.tolist(), start=1)}
        return {arrival: told_alone(message, places[arrival], seen) for arrival, message in found.items()}


def _newest_first(part: Part) -> tuple[int, str]:
    return -int(part.facts.sent_at.max()), part.room_id
