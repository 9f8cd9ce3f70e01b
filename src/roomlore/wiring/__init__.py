"""From settings to adapters to services: the one place that knows them all."""

from roomlore.wiring.doctor import EXTRAS, diagnose
from roomlore.wiring.lore import Lore, open_lore
from roomlore.wiring.models import open_models

__all__ = ["EXTRAS", "Lore", "diagnose", "open_lore", "open_models"]
