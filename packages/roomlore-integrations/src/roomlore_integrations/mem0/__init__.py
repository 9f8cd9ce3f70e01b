"""mem0's `Memory` and `AsyncMemory` over roomlore: `from roomlore_integrations.mem0 import Memory`."""

from roomlore_integrations.mem0.clients import AsyncMemory, Memory
from roomlore_integrations.mem0.config import IgnoredSetting

__all__ = ["AsyncMemory", "IgnoredSetting", "Memory"]
