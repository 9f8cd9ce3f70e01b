"""What a vector index lately read of its collections and scopes, so that a search soon after need not ask again."""

import asyncio
from dataclasses import dataclass

from roomlore.adapters.sql.vector_rows import Collection, ScopeState

_MOST = 10_000

Name = tuple[str, str, str]
"""Collection, tenant, scope."""


@dataclass(frozen=True, slots=True)
class _Seen:
    at: float
    collection: Collection
    state: ScopeState


class LateStates:
    """States no older than `seconds`. What this index itself writes is forgotten at once."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._seen: dict[Name, _Seen] = {}

    def find(self, name: Name) -> tuple[Collection, ScopeState] | None:
        seen = self._seen.get(name)
        if seen is None or asyncio.get_running_loop().time() - seen.at >= self._seconds:
            return None
        return seen.collection, seen.state

    def keep(self, name: Name, collection: Collection, state: ScopeState) -> None:
        if self._seconds > 0:
            if len(self._seen) >= _MOST:
                self._seen.clear()
            self._seen[name] = _Seen(asyncio.get_running_loop().time(), collection, state)

    def forget(self, name: Name) -> None:
        self._seen.pop(name, None)

    def clear(self) -> None:
        self._seen.clear()
