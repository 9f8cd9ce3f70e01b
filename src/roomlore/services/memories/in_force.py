"""What is in force in scopes, kept in memory and brought up to date by their logs.

A memory that says what another one says is not added, and a scope may hold many: they are read once, and then only what
has changed since.
"""

from collections import OrderedDict
from datetime import datetime

from roomlore.core.memory.models import MemoryKind, MemoryStatus, Scope
from roomlore.core.memory.writing import InForce
from roomlore.ports.storage import Storage, UnitOfWork

_ALL = 2**31 - 1
_FOLLOWED = 2_000
_OVERHEAD = 10


_Name = tuple[str, str, MemoryKind, datetime]
"""With the time since when there is such a scope: one that was forgotten may be begun again."""


class InForceCache:
    """Of all tenants; at most about `size` memories, those of the scopes lately written to."""

    def __init__(self, *, storage: Storage, size: int = 20_000) -> None:
        self._storage = storage
        self._size = size
        self._kept: OrderedDict[_Name, InForce] = OrderedDict()

    async def read(self, *, tenant: str, scope: str, kind: MemoryKind) -> InForce:
        """A copy, for the caller to change."""
        async with self._storage.reading() as work:
            stored = await work.memory_log.scope(tenant=tenant, scope=scope)
            if stored is None:
                return InForce(kind)
            name = (tenant, scope, kind, stored.created_at)
            found = self._kept.get(name)
            if found is None or stored.changes - found.number > _FOLLOWED:
                found = await self._load(work, stored, kind)
            await catch_up(work, found, stored)
        self._keep(name, found)
        return found.copy()

    async def _load(self, work: UnitOfWork, stored: Scope, kind: MemoryKind) -> InForce:
        """Changes that come in between are followed though they show already, which does no harm."""
        memories = await work.memories.page(
            tenant=stored.tenant, scopes=[stored.scope], kinds=[kind], status=MemoryStatus.ACTIVE, limit=_ALL
        )
        return InForce(kind, stored.changes, memories)

    def _keep(self, name: _Name, found: InForce) -> None:
        newer = self._kept.get(name)
        if newer is None or newer.number <= found.number:
            self._kept[name] = found
        self._kept.move_to_end(name)
        while len(self._kept) > 1 and sum(len(one) + _OVERHEAD for one in self._kept.values()) > self._size:
            self._kept.popitem(last=False)


async def catch_up(work: UnitOfWork, in_force: InForce, stored: Scope) -> None:
    """Takes in what has changed up to the scope's last change."""
    missed = stored.changes - in_force.number
    if missed > 0:
        in_force.follow(
            await work.memory_log.changes(tenant=stored.tenant, scope=stored.scope, after=in_force.number, limit=missed)
        )
