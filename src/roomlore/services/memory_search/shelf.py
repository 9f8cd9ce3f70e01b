"""The memories of scopes made ready for searching, kept as long as their scopes do not change."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np

from roomlore.core.memory.found import NumberedMemory
from roomlore.core.memory.models import Memory
from roomlore.core.memory.scoring import Flags, Words, is_dense_script
from roomlore.core.search import Ints
from roomlore.ports.storage import Storage, UnitOfWork

MOST_MEMORIES = 20_000
_HELD = 3 * MOST_MEMORIES
_INLINE = 500
"""Memories that are made ready on the event loop; more go to another thread."""
_ENTRY = 4
"""What a scope without a memory takes, in memories."""


class Ready:
    """The active memories of a scope, the last changed first. `numbers`: their row numbers; `said`: which say anything
    at all; `dense_script`: which are written in one."""

    def __init__(self, found: list[NumberedMemory]) -> None:
        self.memories: tuple[Memory, ...] = tuple(one.memory for one in found)
        self.numbers: Ints = np.array([one.number for one in found], np.int64)
        self.said: Flags = np.array([bool(memory.statement.strip()) for memory in self.memories], np.bool_)
        self.dense_script: Flags = np.array([is_dense_script(memory.statement) for memory in self.memories], np.bool_)
        self.words = Words([memory.statement for memory in self.memories])
        self._order = np.argsort(self.numbers)

    def places(self, numbers: Ints) -> Ints:
        """Where these numbers stand; -1 for one that is no active memory's."""
        if not self.numbers.size:
            return np.full(numbers.size, -1)
        ordered = self.numbers[self._order]
        at = np.minimum(np.searchsorted(ordered, numbers), ordered.size - 1)
        return np.where(ordered[at] == numbers, self._order[at], -1)


@dataclass(slots=True)
class _Shelved:
    """`stamp`: since when there is such a scope, and the number of its changes when its memories were read: one that
    was forgotten may be begun again."""

    stamp: tuple[datetime, int] | None = None
    ready: Ready | None = None
    size: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class MemoryShelf:
    """Of the scopes lately searched, of all tenants; of a scope the 20,000 memories that changed last."""

    def __init__(self, *, storage: Storage, held: int = _HELD) -> None:
        self._storage = storage
        self._most = held
        self._held = 0
        self._shelved: OrderedDict[tuple[str, str], _Shelved] = OrderedDict()

    async def find(self, tenant: str, scope: str) -> Ready:
        """The memories as they stand. Raises `StorageUnavailable`."""
        key = (tenant, scope)
        shelved = self._shelved.setdefault(key, _Shelved())
        self._shelved.move_to_end(key)
        async with shelved.lock, self._storage.reading() as work:
            ready = await self._current(work, shelved, tenant, scope)
        if self._shelved.get(key) is shelved:
            self._weigh(shelved, _ENTRY + len(ready.memories))
        return ready

    async def _current(self, work: UnitOfWork, shelved: _Shelved, tenant: str, scope: str) -> Ready:
        """The stamp is read first: what changes in between is read again next time."""
        known = await work.memory_log.scope(tenant=tenant, scope=scope)
        stamp = (known.created_at, known.changes) if known else None
        if shelved.ready is None or shelved.stamp != stamp:
            found = await work.indexed_memories.active(tenant=tenant, scope=scope, limit=MOST_MEMORIES)
            large = len(found) > _INLINE
            shelved.ready = await asyncio.to_thread(Ready, found) if large else Ready(found)
            shelved.stamp = stamp
        return shelved.ready

    def _weigh(self, shelved: _Shelved, size: int) -> None:
        """Drops what was asked for longest ago to make room; what was asked for last stays."""
        self._held += size - shelved.size
        shelved.size = size
        while self._held > self._most and len(self._shelved) > 1:
            _, dropped = self._shelved.popitem(last=False)
            self._held -= dropped.size
