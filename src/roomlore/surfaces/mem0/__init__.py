"""mem0's `Memory` and `AsyncMemory` over roomlore: `from roomlore.surfaces.mem0 import Memory`."""

from roomlore.surfaces.mem0.clients import AsyncMemory, Memory
from roomlore.surfaces.mem0.config import IgnoredSetting

__all__ = ["AsyncMemory", "IgnoredSetting", "Memory"]
