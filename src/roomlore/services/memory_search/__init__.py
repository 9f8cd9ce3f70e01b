"""Searching what is remembered of groups, people and agents."""

from roomlore.services.memory_search.searching import Meaning, MemorySearch
from roomlore.services.memory_search.shelf import MemoryShelf

__all__ = ["Meaning", "MemorySearch", "MemoryShelf"]
