"""Group memory, and facts about people, that evolve with the conversation."""

from roomlore.services.evolution.applying import Applying, AskingTogether, ModelAnswers
from roomlore.services.evolution.evolution_service import EvolutionLeases, EvolutionService, Schedule
from roomlore.services.evolution.piece import EVOLUTION, EvolutionOptions
from roomlore.services.evolution.reading import PieceReader

__all__ = [
    "EVOLUTION",
    "Applying",
    "AskingTogether",
    "EvolutionLeases",
    "EvolutionOptions",
    "EvolutionService",
    "ModelAnswers",
    "PieceReader",
    "Schedule",
]
