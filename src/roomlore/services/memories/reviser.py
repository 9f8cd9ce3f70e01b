"""Going back: taking an evolution back, restoring a version, setting how strong a memory is."""

from roomlore.core.memory.models import Change, Memory
from roomlore.ports.coordination import Clock, Ids
from roomlore.ports.storage import Storage


class Reviser:
    """Revises the memories of one tenant."""

    def __init__(self, *, tenant: str, storage: Storage, clock: Clock, ids: Ids) -> None:
        self._tenant = tenant
        self._storage = storage
        self._clock = clock
        self._ids = ids

    async def revert(self, evolution_id: str, reason: str) -> list[Change]:
        """Takes an evolution back."""
        raise NotImplementedError

    async def restore(self, memory_id: str, reason: str) -> Memory:
        """Brings a version back into force."""
        raise NotImplementedError

    async def strength(self, memory_id: str, value: float, reason: str) -> Memory:
        """Sets how strong a memory is."""
        raise NotImplementedError
