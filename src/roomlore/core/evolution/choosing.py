"""Which memories are offered where there are more than a model is shown."""

from collections.abc import Sequence

from roomlore.core.memory.models import Memory
from roomlore.core.terms import terms

STATEMENT_CHARACTERS = 480
"""Code points that a memory is given on average: no statement that an evolution makes needs more, callers' may."""


def chosen(memories: Sequence[Memory], said: str, *, most: int) -> list[Memory]:
    """At most so many, the oldest lineage first: those that share the largest part of their words with what was said
    and, where they share as much, those that changed last. A long one that leaves no room is passed over.

    `memories`: the last changed first."""
    if len(memories) > most or _size(memories) > most * STATEMENT_CHARACTERS:
        heard = set(terms(said))
        memories = _fitting(sorted(memories, key=lambda memory: -_share(memory, heard)), most)
    return sorted(memories, key=lambda memory: (memory.created_at, memory.memory_id))


def _fitting(memories: Sequence[Memory], most: int) -> list[Memory]:
    found: list[Memory] = []
    room = most * STATEMENT_CHARACTERS
    for memory in memories:
        if len(found) < most and len(memory.statement) <= room:
            found.append(memory)
            room -= len(memory.statement)
    return found


def _size(memories: Sequence[Memory]) -> int:
    return sum(len(memory.statement) for memory in memories)


def _share(memory: Memory, heard: set[str]) -> float:
    words = set(terms(memory.statement))
    return len(words & heard) / len(words) if words else 0.0
