"""Rooms, their threads and their own settings."""

from collections.abc import Mapping
from typing import Any

from roomlore.core.context import ContextOptions
from roomlore.core.errors import InvalidInput, NotFound
from roomlore.core.models import Entry, Room, Thread
from roomlore.core.paging import check_page
from roomlore.ports.coordination import Clock
from roomlore.ports.storage import Storage, UnitOfWork


class RoomService:
    """The rooms of one tenant."""

    def __init__(self, *, tenant: str, storage: Storage, clock: Clock, options: ContextOptions) -> None:
        self._tenant = tenant
        self._storage = storage
        self._clock = clock
        self._options = options

    async def get(self, room_id: str) -> Room:
        """`NotFound` where no message was ever stored in it."""
        async with self._storage.reading() as work:
            return await self._find(work, room_id)

    async def page(self, *, after: str | None = None, limit: int = 100) -> list[Room]:
        """Up to `limit` rooms by id, those with an id above `after`."""
        check_page(limit=limit)
        async with self._storage.reading() as work:
            return await work.rooms.page(tenant=self._tenant, after=after, limit=limit)

    async def threads(self, room_id: str, *, after: int = 0, limit: int = 100) -> list[tuple[int, Thread]]:
        """Threads in the order they began, those whose first arrival is above `after`, each with that arrival."""
        check_page(limit=limit, after=after)
        async with self._storage.reading() as work:
            await self._find(work, room_id)
            return await work.threads.page(tenant=self._tenant, room_id=room_id, after=after, limit=limit)

    async def thread(self, room_id: str, message_id: str, *, limit: int = 100) -> list[Entry]:
        """The newest `limit` messages of the thread this message is in, in order of arrival."""
        check_page(limit=limit)
        async with self._storage.reading() as work:
            await self._find(work, room_id)
            found = await work.messages.by_id(tenant=self._tenant, room_id=room_id, message_ids=[message_id])
            if not found:
                raise NotFound(f"Room {room_id!r} has no message {message_id!r}.")
            return await work.threads.members(
                tenant=self._tenant, room_id=room_id, thread=found[0].link.thread, limit=limit
            )

    async def settings(self, room_id: str) -> dict[str, tuple[Any, str]]:
        """Every setting that a room may have of its own: name to (value in force, "room" or "default")."""
        room = await self.get(room_id)
        effective = self._options.overridden(room.settings).flat()
        return {name: (value, "room" if name in room.settings else "default") for name, value in effective.items()}

    async def configure(self, room_id: str, changes: Mapping[str, Any]) -> Room:
        """Sets the room's own settings; None takes one back. `InvalidInput` names the setting and its range."""
        if not isinstance(changes, Mapping):
            raise InvalidInput(f"Give settings by name, such as {{'strategy': 'weighted'}}, not {changes!r:.60}.")
        known = self._options.flat()
        async with self._storage.writing() as work:
            await self._find(work, room_id)
            room = await work.rooms.lock(tenant=self._tenant, room_id=room_id, now=self._clock.now())
            self._options.overridden(
                {name: None for name in changes if name not in known and name not in room.settings}
            )
            merged = {**room.settings, **changes}
            settings = {name: value for name, value in merged.items() if value is not None}
            self._options.overridden(settings)
            return await work.rooms.configure(tenant=self._tenant, room_id=room_id, settings=settings)

    async def _find(self, work: UnitOfWork, room_id: str) -> Room:
        room = await work.rooms.find(tenant=self._tenant, room_id=room_id)
        if room is None:
            raise NotFound(f"There is no room {room_id!r}; a room appears with its first message.")
        return room
