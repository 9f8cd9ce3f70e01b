"""Facts made ready, kept in memory as long as their scopes do not change."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from roomlore.core.memory.models import MemoryKind, MemoryStatus
from roomlore.core.recall.facts import FactSet
from roomlore.core.search import Vectors
from roomlore.ports.language import TokenCounter
from roomlore.ports.storage import Storage, UnitOfWork

MOST_FACTS = 20_000
_INLINE = 20_000
"""Characters of facts that are made ready on the event loop; more go to another thread."""
_HELD = 3 * MOST_FACTS
_ENTRY = 20
"""What a scope without a fact takes, in facts."""


_Stamp = tuple[tuple[datetime, int] | None, ...]
"""Since when there is such a scope, and the number of its changes: one that was forgotten may be begun again."""


@dataclass(slots=True)
class Shelved:
    """`stamp`: how each scope stood when the facts were read. `vectors`: theirs, once made. `size`: as
    it counts towards what is held."""

    stamp: _Stamp = ()
    facts: FactSet | None = None
    vectors: Vectors | None = None
    size: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def put(self, stamp: _Stamp, facts: FactSet) -> FactSet:
        self.stamp, self.facts, self.vectors = stamp, facts, None
        return facts


class FactShelf:
    """The facts of scopes lately asked for, of all tenants; of a set of scopes the 20,000 that changed last."""

    def __init__(self, *, storage: Storage, tokens: TokenCounter, held: int = _HELD) -> None:
        self._storage = storage
        self._count = tokens.count
        self._most = held
        self._held = 0
        self._shelved: OrderedDict[tuple[object, ...], Shelved] = OrderedDict()

    async def find(self, tenant: str, scopes: Sequence[str], kinds: Sequence[MemoryKind]) -> tuple[Shelved, FactSet]:
        """The facts as they stand. Raises `StorageUnavailable`."""
        key = (tenant, tuple(scopes), tuple(kinds))
        shelved = self._shelved.setdefault(key, Shelved())
        self._shelved.move_to_end(key)
        async with shelved.lock:
            facts = await self._current(shelved, tenant, scopes, kinds)
        if self._shelved.get(key) is shelved:
            self._weigh(shelved, _ENTRY * len(scopes) + len(facts))
        return shelved, facts

    async def _current(
        self, shelved: Shelved, tenant: str, scopes: Sequence[str], kinds: Sequence[MemoryKind]
    ) -> FactSet:
        async with self._storage.reading() as work:
            stamp = await _stamp(work, tenant, scopes)
            if shelved.facts is not None and shelved.stamp == stamp:
                return shelved.facts
            memories = await work.memories.page(
                tenant=tenant, scopes=scopes, kinds=kinds, status=MemoryStatus.ACTIVE, limit=MOST_FACTS
            )
        known, shelved.facts = shelved.facts, None

        def ready() -> FactSet:
            return FactSet(memories, count=self._count, labelled=len(scopes) > 1, known=known)

        if sum(len(memory.statement) for memory in memories) <= _INLINE:
            return shelved.put(stamp, ready())
        return await asyncio.shield(_made(shelved, stamp, ready))

    def _weigh(self, shelved: Shelved, size: int) -> None:
        """Drops what was asked for longest ago to make room; what was asked for last stays."""
        self._held += size - shelved.size
        shelved.size = size
        while self._held > self._most and len(self._shelved) > 1:
            _, dropped = self._shelved.popitem(last=False)
            self._held -= dropped.size


async def _stamp(work: UnitOfWork, tenant: str, scopes: Sequence[str]) -> _Stamp:
    """Read before the facts: what changes in between is read again next time."""
    found = [await work.memory_log.scope(tenant=tenant, scope=scope) for scope in scopes]
    return tuple((scope.created_at, scope.changes) if scope else None for scope in found)


async def _made(shelved: Shelved, stamp: _Stamp, ready: Callable[[], FactSet]) -> FactSet:
    """In another thread, to its end even where nobody waits any more: who asks next finds it."""
    return shelved.put(stamp, await asyncio.to_thread(ready))
