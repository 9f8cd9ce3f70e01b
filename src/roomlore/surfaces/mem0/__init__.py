"""mem0's `Memory` and `AsyncMemory` over roomlore: `from roomlore.surfaces.mem0 import Memory`."""

from roomlore.surfaces.mem0.clients import AsyncMemory, Memory

__all__ = ["AsyncMemory", "Memory"]
