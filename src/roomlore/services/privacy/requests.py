"""Requests for work that goes on after its process ends: each is recorded with the data of its tenant until it is done,
and is done as durable work, one of a tenant at a time."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta

from roomlore.core.errors import RoomloreError
from roomlore.ports.durable import DurableWork, Json, own_part, submit_noted, work_name
from roomlore.ports.shared import Backends, Service
from roomlore.storage import UnitOfWork
from roomlore.storage.values import DueRoom

_AT_ONCE = 50
LOOK_AGAIN = timedelta(seconds=30)
_HELD = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Request:
    """A recorded request. `kind`: what was asked for; `room`: the record. In that of a person their id takes the place
    of the room's."""

    kind: str
    room: DueRoom

    @property
    def own(self) -> str:
        """The part of the work's id that tells this request from others."""
        return own_part(self.room, self.kind)


class Requests(Service):
    """The requests of all tenants. `kinds`: what is asked for; the first is the name of the work."""

    def __init__(self, backends: Backends, *, durable: DurableWork, kinds: Sequence[str]) -> None:
        super().__init__(backends)
        self._durable = durable
        self._kinds = kinds
        self._name = kinds[0]

    def _more(self, request: Request) -> Json:
        """Return further arguments of the work."""
        return {}

    async def sweep(self) -> list[str]:
        """Submit the work of recorded requests that no process is at, and return the ids of the work."""
        submitted = []
        async with self._storage.reading() as work:
            kinds = [kind for kind in self._kinds if await work.progress.any_noted(work=kind)]
        for kind in kinds:
            now = self._clock.now()
            async with self._storage.writing() as work:
                claimed = await work.progress.claim_rooms(
                    work=kind, now=now, lease_until=now + LOOK_AGAIN, limit=_AT_ONCE
                )
            submitted += [await self._submitted(Request(kind, room), patiently=True) for room in claimed]
        return submitted

    async def _request(self, tenant: str, own: str) -> Request | None:
        async with self._storage.reading(tenant) as work:
            requests = [Request(kind, room) for kind in self._kinds for room in await work.progress.noted(work=kind)]
        return next((request for request in requests if request.own == own), None)

    async def _submitted(self, request: Request, *, patiently: bool) -> str:
        tenant, own = request.room.tenant, request.own

        async def is_due() -> bool:
            return await self._request(tenant, own) is not None

        return await submit_noted(
            self._durable,
            self._name,
            work_id=work_name(tenant, self._name, own),
            partition=work_name(tenant, self._name, "all"),
            arguments={"tenant": tenant, "own": own, **self._more(request)},
            now=self._clock.now(),
            is_due=is_due,
            patiently=patiently,
        )

    async def _remove(self, work: UnitOfWork, room_id: str, kind: str) -> None:
        for room in await work.progress.noted(work=kind, room_id=room_id):
            await work.progress.done(room=room, work=kind)

    @asynccontextmanager
    async def _held(self, request: Request) -> AsyncIterator[None]:
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
