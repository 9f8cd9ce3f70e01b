"""Memories: read, added, changed, deleted, and brought over from other systems."""

from roomlore.services.memories.bringing import ReadMemories
from roomlore.services.memories.in_force import InForceCache
from roomlore.services.memories.past import Past
from roomlore.services.memories.reviser import Reviser
from roomlore.services.memories.service import MemoryService, Status
from roomlore.services.memories.writer import MemoryWriter, OnConflict

__all__ = ["InForceCache", "MemoryService", "MemoryWriter", "OnConflict", "Past", "ReadMemories", "Reviser", "Status"]
