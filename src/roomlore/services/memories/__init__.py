"""Memories: read, added, changed, deleted, and imported from other systems."""

from roomlore.services.memories.history import MemoryPast
from roomlore.services.memories.memory_service import MemoryService
from roomlore.services.memories.writer import InForceCache, MemoryWriter, OnConflict, Reviser

__all__ = ["InForceCache", "MemoryPast", "MemoryService", "MemoryWriter", "OnConflict", "Reviser"]
