"""Choosing what matters for a message, keeping what was chosen, and learning to choose better."""

from roomlore.services.contexts.recorder import UsageRecorder
from roomlore.services.contexts.service import ContextService
from roomlore.services.contexts.strategies import STRATEGIES
from roomlore.services.contexts.tuning import TuningService

__all__ = ["STRATEGIES", "ContextService", "TuningService", "UsageRecorder"]
