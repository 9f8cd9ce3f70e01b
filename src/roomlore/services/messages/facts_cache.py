"""The facts of rooms that were lately searched, kept in memory and brought up to date by what changed."""

from collections import OrderedDict

from roomlore.core.facts import facts_of, renewed
from roomlore.core.models import Room
from roomlore.core.search import RoomFacts
from roomlore.ports.storage import UnitOfWork

_BYTES_A_MESSAGE = 73

_Key = tuple[str, str]


class FactsCache:
    """At most `size_bytes` of facts, those searched last; shared by all tenants of one process. One room that is larger
    is read anew for each search."""

    def __init__(self, *, size_bytes: int) -> None:
        self._room_for = size_bytes // _BYTES_A_MESSAGE
        self._held = 0
        self._rooms: OrderedDict[_Key, RoomFacts] = OrderedDict()

    def known(self, tenant: str, room_id: str) -> RoomFacts | None:
        """What was last read of the room; it may be old."""
        return self._rooms.get((tenant, room_id))

    async def of(self, work: UnitOfWork, room: Room) -> RoomFacts:
        """The facts of the room, at least as new as `room`."""
        known = self._rooms.get((room.tenant, room.room_id))
        if known is None or known.revision < room.revision:
            since = 0 if known is None else known.revision
            rows = await work.lexical.facts(tenant=room.tenant, room_id=room.room_id, since=since)
            facts = renewed(known, rows, revision=room.revision) if known else facts_of(rows, revision=room.revision)
        else:
            facts = known
        self._keep((room.tenant, room.room_id), facts)
        return facts

    def _keep(self, key: _Key, facts: RoomFacts) -> None:
        replaced = self._rooms.pop(key, None)
        self._held += facts.arrivals.size - (replaced.arrivals.size if replaced else 0)
        self._rooms[key] = facts
        while self._held > self._room_for and self._rooms:
            _, dropped = self._rooms.popitem(last=False)
            self._held -= dropped.arrivals.size
