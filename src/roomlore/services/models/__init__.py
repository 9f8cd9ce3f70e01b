"""Language models behind one chain: `lore.models`."""

from roomlore.services.models.service import Check, ModelService
from roomlore.services.models.standings import ModelStanding, ModelTrial, ProviderStanding
from roomlore.services.models.summarizer import ChainSummarizer

__all__ = ["ChainSummarizer", "Check", "ModelService", "ModelStanding", "ModelTrial", "ProviderStanding"]
