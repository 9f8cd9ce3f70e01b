"""Group memory, and facts about people, that evolve with the conversation."""

from roomlore.services.evolution.applying import Applying, Asking, AskingTogether
from roomlore.services.evolution.evolution_service import EvolutionLeases, EvolutionService, Schedule
from roomlore.services.evolution.piece import EVOLUTION, EvolutionOptions
from roomlore.services.evolution.reading import Reading

__all__ = [
    "EVOLUTION",
    "Applying",
    "Asking",
    "AskingTogether",
    "EvolutionLeases",
    "EvolutionOptions",
    "EvolutionService",
    "Reading",
    "Schedule",
]
