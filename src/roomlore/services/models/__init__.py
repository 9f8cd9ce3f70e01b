"""Language models behind one chain: `lore.models`."""

from roomlore.services.models.service import Check, ModelService
from roomlore.services.models.standings import ModelStanding, ModelTrial, ProviderStanding

__all__ = ["Check", "ModelService", "ModelStanding", "ModelTrial", "ProviderStanding"]
