"""Contexts: choosing the messages that matter for a message, recording the choice, and tuning the weights."""

from roomlore.services.contexts.context_service import ContextService
from roomlore.services.contexts.strategies import STRATEGIES, Strategy
from roomlore.services.contexts.usage_service import TuningService, UsageExpiry, UsageRecorder, UsageService

__all__ = [
    "STRATEGIES",
    "ContextService",
    "Strategy",
    "TuningService",
    "UsageExpiry",
    "UsageRecorder",
    "UsageService",
]
