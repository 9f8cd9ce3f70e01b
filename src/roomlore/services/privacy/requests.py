"""Requests for work that goes on after its process ends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

from roomlore.core.errors import RoomloreError
from roomlore.ports.durable import Json
from roomlore.ports.noted import NotedRooms, NotedWork
from roomlore.storage import UnitOfWork

_HELD = timedelta(seconds=60)


class Requests(NotedRooms):
    """The requests of all tenants: noted work, which is done one of a tenant at a time."""

    def _partition_and_arguments(self, noted: NotedWork) -> tuple[str, Json]:
        return "all", {"tenant": noted.room.tenant, "own": noted.own}

    async def _request(self, tenant: str, own: str) -> NotedWork | None:
        return next((request for request in await self.noted(tenant) if request.own == own), None)

    async def _recorded(self, work: UnitOfWork, room_id: str, kind: str) -> NotedWork:
        """Return the request, recorded if it was not."""
        if not await work.progress.noted(work=kind, room_id=room_id):
            await work.progress.note_room(work=kind, room_id=room_id, now=self._clock.now())
        (room,) = await work.progress.noted(work=kind, room_id=room_id)
        return NotedWork(kind, room)

    @asynccontextmanager
    async def _held(self, request: NotedWork) -> AsyncIterator[None]:
        """Keep the request from sweeps of other processes while it is done here. If this process ends, it is free again
        soon after."""

        async def hold() -> None:
            while True:
                async with self._storage.writing() as work:
                    until = self._clock.now() + _HELD
                    await work.progress.put_off(room=request.room, work=request.kind, until=until)
                await asyncio.sleep(_HELD.total_seconds() / 3)

        holding = asyncio.create_task(hold())
        try:
            yield
        finally:
            holding.cancel()
            with suppress(asyncio.CancelledError, RoomloreError):
                await holding


async def remove_requests(work: UnitOfWork, room_id: str, *kinds: str) -> None:
    """Remove the records of these kinds for the room."""
    for kind in kinds:
        for room in await work.progress.noted(work=kind, room_id=room_id):
            await work.progress.done(room=room, work=kind)
