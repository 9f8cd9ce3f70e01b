"""The rooms this process has lately written to, kept so that the next message need not read them again."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime

from roomlore.core.models import Room
from roomlore.core.room_state import RoomState
from roomlore.ports.coordination import Telemetry

_Key = tuple[str, str]


class Held:
    """The states of one batch's rooms, those worked on last: at most `size_bytes` of them together."""

    def __init__(self, size_bytes: int) -> None:
        self._most = size_bytes
        self._bytes = 0
        self._states: deque[tuple[Room, RoomState, int]] = deque()

    def add(self, room: Room, state: RoomState) -> None:
        state.rest()
        size = state.size_bytes()
        self._states.append((room, state, size))
        self._bytes += size
        while self._bytes > self._most:
            self._bytes -= self._states.popleft()[2]

    def __iter__(self) -> Iterator[tuple[Room, RoomState]]:
        return ((room, state) for room, state, _ in self._states)


class RoomCache:
    """The rooms last written to, by tenant and room id, `size_bytes` of them; shared by all tenants of one process.

    A state is only ever used where its revision equals the stored one, so a room that another process or an edit has
    changed is read anew; and so is one that was removed and begun again.
    """

    def __init__(self, *, size_bytes: int, telemetry: Telemetry) -> None:
        self.size_bytes = size_bytes
        self._bytes = 0
        self._telemetry = telemetry
        self._states: OrderedDict[_Key, tuple[datetime, RoomState, int]] = OrderedDict()
        self._locks: dict[_Key, tuple[asyncio.Lock, int]] = {}

    def hold(self) -> Held:
        """Return where to keep the states of a batch that is not written yet: half as many bytes as the cache."""
        return Held(self.size_bytes // 2)

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
        """Return the room's state if it is of this revision. It leaves the cache: a batch that fails must not spoil
        it."""
        made, state, size = self._states.pop((room.tenant, room.room_id), (None, None, 0))
        self._bytes -= size
        fits = state is not None and (made, state.revision) == (room.created_at, room.revision)
        self._telemetry.count("roomlore_room_cache_total", labels={"result": "hit" if fits else "miss"})
        return state if fits else None

    def keep(self, room: Room, state: RoomState) -> None:
        """Put back a state that now stands at the room's revision."""
        state.revision = room.revision
        key, size = (room.tenant, room.room_id), state.size_bytes()
        self._bytes += size - self._states.pop(key, (None, None, 0))[2]
        self._states[key] = room.created_at, state, size
        while self._bytes > self.size_bytes:
            _, (_, _, freed) = self._states.popitem(last=False)
            self._bytes -= freed
