"""Work that is noted for a room until it is done: recorded with the data of its tenant, submitted by sweeps, and done
as durable work."""

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from roomlore.core.json_values import storable
from roomlore.ports.durable import ENDED, RETRIABLE, DurableWork, Json, work_name
from roomlore.ports.shared import Backends, Service
from roomlore.storage.values import DueRoom

NOTED_LEASE = timedelta(seconds=30)
"""For so long noted work is left alone by others once it is submitted."""
_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(minutes=1), timedelta(hours=1)
_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class NotedWork:
    """A record of work. `kind`: what is to be done; `room`: where. In that for a person their id takes the place of the
    room's."""

    kind: str
    room: DueRoom

    @property
    def own(self) -> str:
        """The part of the work's id that tells this record from others, without naming the room."""
        named = f"{self.room.noted_at} {self.kind} {self.room.room_id}"
        return hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:24]


class NotedRooms(Service):
    """The records of all tenants. `kinds`: of the work; the first is its name. Each record has one piece of durable
    work, which is retried after growing pauses if it failed."""

    def __init__(self, backends: Backends, *, durable: DurableWork, kinds: tuple[str, ...]) -> None:
        super().__init__(backends)
        self._durable = durable
        self._kinds = kinds
        self._name = kinds[0]

    async def sweep(self) -> list[str]:
        """Submit the work of records that nobody is at, and return the ids of the work."""
        submitted: list[str] = []
        while records := await self.claim():
            submitted += [await self._submitted(noted) for noted in records]
        return submitted

    async def any(self) -> bool:
        """Return True if anything is noted."""
        async with self._storage.reading() as work:
            return any([await work.progress.any_noted(work=kind) for kind in self._kinds])

    async def claim(self) -> list[NotedWork]:
        """Claim some of the records that nobody else has claimed."""
        if not await self.any():
            return []
        now = self._clock.now()
        due: dict[str, Any] = {"now": now, "lease_until": now + NOTED_LEASE, "limit": _AT_ONCE}
        async with self._storage.writing() as work:
            rooms = {kind: await work.progress.claim_rooms(work=kind, **due) for kind in self._kinds}
        return [NotedWork(kind, room) for kind in self._kinds for room in rooms[kind]]

    async def noted(self, tenant: str, room_id: str | None = None) -> list[NotedWork]:
        """Return the records of a tenant, or those of one room."""
        async with self._storage.reading(tenant) as work:
            rooms = {kind: await work.progress.noted(work=kind, room_id=room_id) for kind in self._kinds}
        return [NotedWork(kind, room) for kind in self._kinds for room in rooms[kind]]

    def _partition_and_arguments(self, noted: NotedWork) -> tuple[str, Json]:
        """Return where the work stands in line, and its arguments: by default one of a room at a time."""
        return storable(noted.room.room_id), {"tenant": noted.room.tenant, "room_id": noted.room.room_id}

    async def _submitted(self, noted: NotedWork, *, patiently: bool = True) -> str:
        """Submit the work, or again if it failed, and return its id. `patiently`: work that failed is left alone for a
        time that grows with its attempts."""
        tenant, now = noted.room.tenant, self._clock.now()
        partition, arguments = self._partition_and_arguments(noted)
        work_id = work_name(tenant, self._name, noted.own)
        given: dict[str, Any] = {"partition": work_name(tenant, self._name, partition), "arguments": arguments}
        if await self._durable.start(self._name, work_id=work_id, **given):
            return work_id
        state = await self._durable.find(work_id)
        if state is None or state.status not in ENDED:
            return work_id
        if state.status in RETRIABLE:
            pause = min(_FIRST_PAUSE * 2 ** min(state.attempts // 3, 10), _LONGEST_PAUSE)
            if not patiently or state.updated_at + pause <= now:
                await self._durable.retry(work_id)
        elif noted.own in [other.own for other in await self.noted(tenant, noted.room.room_id)]:
            work_id = f"{work_id}-{now:%Y%m%dT%H%M%S}"  # an older state of the database was restored
            await self._durable.start(self._name, work_id=work_id, **given)
        return work_id
