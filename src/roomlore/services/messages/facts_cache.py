"""The facts of rooms that were lately searched, kept in memory and brought up to date by what changed."""

from collections import OrderedDict
from dataclasses import fields
from datetime import datetime
from sys import getsizeof

import numpy as np

from roomlore.core.facts import facts_of, renewed
from roomlore.core.models import Room
from roomlore.core.search import RoomFacts
from roomlore.ports.storage import UnitOfWork

_BYTES_A_ROOM = 2_000
_BYTES_A_SENDER = 130
"""Two strings without their characters, and their places."""
_BYTES_A_TERM = 90

_Key = tuple[str, str]


class FactsCache:
    """At most `size_bytes` of facts, those searched last; shared by all tenants of one process. One room that is larger
    is read anew for each search."""

    def __init__(self, *, size_bytes: int) -> None:
        self._size = size_bytes
        self._held = 0
        self._rooms: OrderedDict[_Key, tuple[RoomFacts, int, datetime]] = OrderedDict()

    def known(self, tenant: str, room_id: str) -> RoomFacts | None:
        """What was last read of the room; it may be old."""
        key = (tenant, room_id)
        if key not in self._rooms:
            return None
        self._rooms.move_to_end(key)
        return self._rooms[key][0]

    async def of(self, work: UnitOfWork, room: Room) -> RoomFacts:
        """The facts of the room, at least as new as `room`; one that was removed and begun again is read anew."""
        known = self.known(room.tenant, room.room_id)
        if known is not None and self._rooms[room.tenant, room.room_id][2] != room.created_at:
            known = None
        if known is not None and known.revision >= room.revision:
            return known
        since = 0 if known is None else known.revision
        rows = await work.lexical.facts(tenant=room.tenant, room_id=room.room_id, since=since)
        facts = renewed(known, rows, revision=room.revision) if known else facts_of(rows, revision=room.revision)
        self._keep(room, facts)
        return facts

    def _keep(self, room: Room, facts: RoomFacts) -> None:
        """Drops others to make room, but none for what would not fit in any case."""
        key, size = (room.tenant, room.room_id), _bytes_of(facts)
        if key in self._rooms:
            self._held -= self._rooms.pop(key)[1]
        if size > self._size:
            return
        self._rooms[key] = facts, size, room.created_at
        self._held += size
        while self._held > self._size:
            _, (_, freed, _) = self._rooms.popitem(last=False)
            self._held -= freed


def _bytes_of(facts: RoomFacts) -> int:
    """About what the facts take in memory."""
    values = [getattr(facts, one.name) for one in fields(facts)]
    columns = sum(value.nbytes for value in values if isinstance(value, np.ndarray))
    people = sum(map(len, facts.sender_ids)) + sum(map(len, facts.sender_names))
    people += _BYTES_A_SENDER * len(facts.sender_ids)
    tallies = facts.naming.tallies
    return _BYTES_A_ROOM + columns + people + getsizeof(tallies) + _BYTES_A_TERM * len(tallies)
