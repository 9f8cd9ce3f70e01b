"""Recall: the facts that are worth their tokens in a prompt."""

from roomlore.services.recall.recall_service import KnownForReplies, RecallParts, RecallService, SaidBefore, ShownBefore
from roomlore.services.recall.shelf import FactVectors, RecallCache

__all__ = ["FactVectors", "KnownForReplies", "RecallCache", "RecallParts", "RecallService", "SaidBefore", "ShownBefore"]
