"""What stands behind the verbs of `lore.memories` that others do: declared here, given by the wiring."""

from typing import Protocol

from roomlore.core.evolution.result import BegunEvolution, EvolutionResult, Mode
from roomlore.core.memory.found import MemoryAnswer


class Evolver(Protocol):
    """Evolves scopes, of any tenant."""

    async def evolve(self, *, tenant: str, scope: str, days: float, mode: Mode) -> EvolutionResult:
        """Evolves a scope here and now, and comes back when it is done."""

    async def begin(self, *, tenant: str, scope: str, days: float, mode: Mode) -> BegunEvolution:
        """Hands the same in as durable work."""

    async def result(self, *, tenant: str, evolution_id: str) -> EvolutionResult:
        """What came of it; `NotFound` where nothing was recorded."""


class Searcher(Protocol):
    """Searches the memories in force of a scope, of any tenant."""

    async def search(self, *, tenant: str, scope: str, query: str, limit: int, threshold: float) -> MemoryAnswer: ...
