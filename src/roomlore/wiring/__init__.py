"""From settings to adapters to services: the one place that knows them all."""

from roomlore.wiring.lore import Lore, open_lore

__all__ = ["Lore", "open_lore"]
