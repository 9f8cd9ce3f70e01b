"""Which memories are offered where there are more than a model is shown."""

from collections.abc import Sequence

from roomlore.core.memory.models import Memory
from roomlore.core.terms import terms


def chosen(memories: Sequence[Memory], said: str, *, most: int) -> list[Memory]:
    """At most so many, the oldest lineage first: those that share the largest part of their words with what was said
    and, where they share as much, those that changed last. `memories`: the last changed first."""
    if len(memories) > most:
        heard = set(terms(said))
        memories = sorted(memories, key=lambda memory: -_share(memory, heard))[:most]
    return sorted(memories, key=lambda memory: (memory.created_at, memory.memory_id))


def _share(memory: Memory, heard: set[str]) -> float:
    words = set(terms(memory.statement))
    return len(words & heard) / len(words) if words else 0.0
