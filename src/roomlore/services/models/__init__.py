"""Language models behind one chain: `lore.models`."""

from roomlore.services.models.service import ModelService

__all__ = ["ModelService"]
