"""Vectors of what is gone, removed at once where their store answers."""

import logging
from collections.abc import Sequence

from roomlore.core.errors import VectorsUnavailable, describe
from roomlore.ports.indexing import MEMORY_VECTORS, VECTORS
from roomlore.ports.storage import Storage
from roomlore.ports.vectors import MEMORIES, MESSAGES, VectorIndex

_AT_ONCE = 1_000
_STATES = {MESSAGES: VECTORS, MEMORIES: MEMORY_VECTORS}

log = logging.getLogger(__name__)


class VectorsGone:
    """`left`: how many vectors could not be removed now. `index`: None where this process keeps no vectors."""

    def __init__(self, *, storage: Storage, index: VectorIndex | None) -> None:
        self._storage = storage
        self._index = index

    async def remove(self, *, collection: str, tenant: str, scope: str, numbers: Sequence[int]) -> bool:
        """Whether none of them is left. Where some are, the outbox of the index removes them later."""
        if not numbers:
            return True
        if self._index is None:
            return not await self._kept_by_others(collection)
        try:
            for start in range(0, len(numbers), _AT_ONCE):
                await self._index.remove(
                    collection=collection, tenant=tenant, scope=scope, numbers=numbers[start : start + _AT_ONCE]
                )
        except VectorsUnavailable as error:
            log.warning("vectors of a forgotten person are left for later", extra={"why": describe(error)})
            return False
        return True

    async def _kept_by_others(self, collection: str) -> bool:
        async with self._storage.reading() as work:
            return await work.index_states.find(name=_STATES[collection]) is not None
