"""The rooms this process has lately written to, kept so that the next message need not read them again."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime

from roomlore.core.models import Room
from roomlore.core.room_state import RoomState
from roomlore.ports.coordination import Telemetry

_Key = tuple[str, str]


class RoomCache:
    """The `size` rooms last written to, by tenant and room id; shared by all tenants of one process.

    A state is only ever used where its revision equals the stored one, so a room that another process or an edit has
    changed is read anew; and so is one that was removed and begun again.
    """

    def __init__(self, *, size: int, telemetry: Telemetry) -> None:
        self._size = size
        self._telemetry = telemetry
        self._states: OrderedDict[_Key, tuple[datetime, RoomState]] = OrderedDict()
        self._locks: dict[_Key, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def alone(self, tenant: str, room_ids: Iterable[str]) -> AsyncIterator[None]:
        """Holds off this process's other writers to these rooms, so that they queue instead of colliding."""
        async with AsyncExitStack() as stack:
            for room_id in sorted(room_ids):
                await stack.enter_async_context(self._turn((tenant, room_id)))
            yield

    @asynccontextmanager
    async def _turn(self, key: _Key) -> AsyncIterator[None]:
        lock, users = self._locks.get(key, (asyncio.Lock(), 0))
        self._locks[key] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks.pop(key)
            if users > 1:
                self._locks[key] = (lock, users - 1)

    def take(self, room: Room) -> RoomState | None:
        """The room's state if it is of this revision. It leaves the cache: a batch that fails must not spoil it."""
        made, state = self._states.pop((room.tenant, room.room_id), (None, None))
        fits = state is not None and (made, state.revision) == (room.created_at, room.revision)
        self._telemetry.count("roomlore_room_cache_total", labels={"result": "hit" if fits else "miss"})
        return state if fits else None

    def keep(self, room: Room, state: RoomState) -> None:
        """Puts back a state that now stands at the room's revision."""
        state.revision = room.revision
        self._states[(room.tenant, room.room_id)] = room.created_at, state
        while len(self._states) > self._size:
            self._states.popitem(last=False)
