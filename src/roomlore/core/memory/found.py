"""What a search of memories found, as callers are told."""

from collections.abc import Mapping
from dataclasses import dataclass

from roomlore.core.memory.models import Memory
from roomlore.core.search import SearchMode


@dataclass(frozen=True, slots=True)
class NumberedMemory:
    """A version of a memory with its tenant and row number: what vectors know it by."""

    tenant: str
    number: int
    memory: Memory


@dataclass(frozen=True, slots=True)
class MemoryHit:
    """A memory with how surely it is what was asked for, in [0, 1], and what that is made of."""

    memory: Memory
    score: float
    signals: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryAnswer:
    """What a search found, best first. `mode`: how it was searched. `degraded`: None, or why less was done than asked
    for."""

    scope: str
    query: str
    mode: SearchMode
    hits: tuple[MemoryHit, ...] = ()
    degraded: str | None = None
