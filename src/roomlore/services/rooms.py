"""Rooms, their threads and their own settings."""

from collections.abc import Mapping
from typing import Any

from roomlore.core.context import ContextOptions
from roomlore.core.errors import InvalidInput, NotFound
from roomlore.core.intake import check_page
from roomlore.core.models import Entry, Room, Thread
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
        """Return the room. Raise `NotFound` if no message was ever stored in it."""
        async with self._storage.reading() as work:
            return await self._find(work, room_id)

    async def page(self, *, after: str | None = None, limit: int = 100) -> list[Room]:
        """Return up to `limit` rooms by id, those with an id above `after`."""
        check_page(limit=limit)
        async with self._storage.reading() as work:
            return await work.rooms.page(tenant=self._tenant, after=after, limit=limit)

    async def threads(self, room_id: str, *, after: int = 0, limit: int = 100) -> list[tuple[int, Thread]]:
        """Return threads in the order they began, those whose first arrival is above `after`, each with that
        arrival."""
        check_page(limit=limit, after=after)
        async with self._storage.reading() as work:
            await self._find(work, room_id)
            return await work.threads.page(tenant=self._tenant, room_id=room_id, after=after, limit=limit)

    async def thread(self, room_id: str, message_id: str, *, limit: int = 100) -> list[Entry]:
        """Return the newest `limit` messages of the thread of this message, in order of arrival."""
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
        """Return every setting that a room may override: name to (current value, "room" or "default")."""
        room = await self.get(room_id)
        effective = self._options.overridden(room.settings).flat()
        return {name: (value, "room" if name in room.settings else "default") for name, value in effective.items()}

    async def configure(self, room_id: str, changes: Mapping[str, Any]) -> Room:
        """Set the room's own settings; None removes one. Raise `InvalidInput` that names the setting and its range."""
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
