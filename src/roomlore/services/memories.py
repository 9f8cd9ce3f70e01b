"""The verbs of `lore.memories`."""

from collections.abc import Sequence
from typing import Literal

from roomlore.core.errors import InvalidInput, NotFound
from roomlore.core.memory.models import Change, Evolution, Memory, MemoryKind, MemoryStatus, check_scope
from roomlore.core.paging import check_page
from roomlore.ports.storage import Storage

Status = Literal["active", "deprecated", "all"]
_STATUSES: dict[str, MemoryStatus | None] = {
    "active": MemoryStatus.ACTIVE,
    "deprecated": MemoryStatus.DEPRECATED,
    "all": None,
}


class MemoryService:
    """The memories of one tenant."""

    def __init__(self, *, tenant: str, storage: Storage) -> None:
        self._tenant = tenant
        self._storage = storage

    async def page(
        self,
        scope: str,
        *,
        kinds: Sequence[MemoryKind] = tuple(MemoryKind),
        status: Status = "active",
        limit: int = 100,
        offset: int = 0,
    ) -> list[Memory]:
        """The newest version of each memory of a scope, such as 'agent:bot', the last changed first.

        Raises `InvalidInput` for what is no scope, kind or status.
        """
        check_page(limit=limit, after=offset)
        if status not in _STATUSES:
            raise InvalidInput(f"status is {status!r:.60}; it is one of {', '.join(_STATUSES)}.")
        async with self._storage.reading() as work:
            return await work.memories.page(
                tenant=self._tenant,
                scopes=[check_scope(scope)],
                kinds=_kinds(kinds),
                status=_STATUSES[status],
                limit=limit,
                offset=offset,
            )

    async def get(self, memory_id: str) -> Memory:
        """The version with this id; `NotFound` where there is none."""
        async with self._storage.reading() as work:
            found = await work.memories.by_id(tenant=self._tenant, memory_ids=[memory_id])
        if not found:
            raise NotFound(f"There is no memory {memory_id!r:.80}.")
        return found[0]

    async def history(self, memory_id: str) -> list[Memory]:
        """Every version of the memory that this id is a version of, the first one first; `NotFound`."""
        known = await self.get(memory_id)
        async with self._storage.reading() as work:
            return await work.memories.lineage(tenant=self._tenant, lineage_id=known.lineage_id)

    async def changes(self, scope: str, *, after: int = 0, limit: int = 100) -> list[Change]:
        """The log of a scope in the order things happened, entries with a number above `after`."""
        check_page(limit=limit, after=after)
        async with self._storage.reading() as work:
            return await work.memory_log.changes(
                tenant=self._tenant, scope=check_scope(scope), after=after, limit=limit
            )

    async def evolution(self, evolution_id: str) -> Evolution:
        """What made a memory: the messages it read, the model and its answer; `NotFound`."""
        async with self._storage.reading() as work:
            found = await work.evolutions.by_id(tenant=self._tenant, evolution_ids=[evolution_id])
        if not found:
            raise NotFound(f"There is no record {evolution_id!r:.80} of what made memories.")
        return found[0]


def _kinds(kinds: Sequence[MemoryKind]) -> list[MemoryKind]:
    given = [kinds] if isinstance(kinds, str) else list(kinds)
    try:
        return [MemoryKind(kind) for kind in given]
    except ValueError as error:
        raise InvalidInput(f"Kinds of memories are {', '.join(MemoryKind)}, not {kinds!r:.60}.") from error
