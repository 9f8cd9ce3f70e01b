"""Memories of other systems: DeerFlow's `memory.json`, mem0's export."""

from roomlore.importers.memories.reading import FORMS, read_memories

__all__ = ["FORMS", "read_memories"]
