"""Group memory, and facts about people, that evolve with what is said."""

from roomlore.services.evolution.applying import Applying
from roomlore.services.evolution.asking import Asking, Models, Offline
from roomlore.services.evolution.options import EvolutionOptions
from roomlore.services.evolution.piece import EVOLUTION
from roomlore.services.evolution.reading import Reading
from roomlore.services.evolution.schedule import Schedule, Times
from roomlore.services.evolution.service import EvolutionService
from roomlore.services.evolution.turns import Turns

__all__ = [
    "EVOLUTION",
    "Applying",
    "Asking",
    "EvolutionOptions",
    "EvolutionService",
    "Models",
    "Offline",
    "Reading",
    "Schedule",
    "Times",
    "Turns",
]
