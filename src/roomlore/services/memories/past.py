"""What a scope remembered, and how a memory came to be."""

from datetime import datetime

from roomlore.core.memory.models import Memory
from roomlore.core.memory.past import Blame, MemoryDiff
from roomlore.ports.coordination import Clock
from roomlore.ports.storage import Storage


class Past:
    """The past of one tenant's memories."""

    def __init__(self, *, tenant: str, storage: Storage, clock: Clock) -> None:
        self._tenant = tenant
        self._storage = storage
        self._clock = clock

    async def as_of(self, scope: str, at: datetime) -> list[Memory]:
        """What the scope remembered at a time."""
        raise NotImplementedError

    async def diff(self, scope: str, start: datetime, end: datetime | None = None) -> MemoryDiff:
        """What changed between two times."""
        raise NotImplementedError

    async def blame(self, memory_id: str) -> Blame:
        """What made a memory."""
        raise NotImplementedError
