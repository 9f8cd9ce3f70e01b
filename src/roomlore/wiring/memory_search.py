"""The search of memories, shared by all tenants."""

from roomlore.ports.coordination import Clock, Jobs, Telemetry
from roomlore.ports.storage import Storage
from roomlore.services.memory_search import MemorySearch, MemoryShelf
from roomlore.wiring.indexing import Indexing


def make_memory_search(
    storage: Storage, indexing: Indexing, *, clock: Clock, jobs: Jobs, telemetry: Telemetry
) -> MemorySearch:
    """Nothing is read yet."""
    return MemorySearch(
        shelf=MemoryShelf(storage=storage),
        meaning=indexing.memories,
        embedder=indexing.embedder,
        clock=clock,
        jobs=jobs,
        telemetry=telemetry,
    )
