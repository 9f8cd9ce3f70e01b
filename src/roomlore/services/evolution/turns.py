"""One evolution of a scope at a time, over all processes, by a lease that is kept up while the work goes on."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from roomlore.core.errors import StorageUnavailable, describe
from roomlore.ports.coordination import Clock
from roomlore.ports.storage import Storage
from roomlore.services.evolution.piece import EVOLUTION, Piece

_FIRST_LOOK_SECONDS = 0.02
_LONGEST_LOOK_SECONDS = 0.5

log = logging.getLogger(__name__)


class Turns:
    """The leases of all tenants. The same evolution, begun again after a kill, has its own lease still."""

    def __init__(self, *, storage: Storage, clock: Clock, lease_seconds: float) -> None:
        self._storage = storage
        self._clock = clock
        self._lease_seconds = lease_seconds

    @asynccontextmanager
    async def turn(self, piece: Piece) -> AsyncIterator[None]:
        """Waits until nobody else evolves the scope, and keeps others waiting until the block ends."""
        await self._wait(piece)
        renewing = asyncio.create_task(self._renew(piece))
        try:
            yield
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
            await self._free(piece)

    async def _wait(self, piece: Piece) -> None:
        pause = _FIRST_LOOK_SECONDS
        while not await self._take(piece):
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_LOOK_SECONDS)

    async def _renew(self, piece: Piece) -> None:
        """A lease that cannot be kept up is none to stop for: what is written is compared with what was read."""
        while True:
            await asyncio.sleep(self._lease_seconds / 3)
            try:
                await self._take(piece)
            except StorageUnavailable as error:
                log.warning("the lease of an evolution could not be kept up", extra={"why": describe(error)})

    async def _take(self, piece: Piece) -> bool:
        now = self._clock.now()
        async with self._storage.writing() as work:
            return await work.leases.take(
                tenant=piece.tenant,
                name=_name(piece),
                holder=piece.evolution_id,
                now=now,
                until=now + timedelta(seconds=self._lease_seconds),
            )

    async def _free(self, piece: Piece) -> None:
        try:
            async with self._storage.writing() as work:
                await work.leases.free(tenant=piece.tenant, name=_name(piece), holder=piece.evolution_id)
        except StorageUnavailable as error:
            log.warning("the lease of an evolution runs out by itself", extra={"why": describe(error)})


def _name(piece: Piece) -> str:
    return f"{EVOLUTION}:{piece.scope}"
