"""Recall: the facts that are worth their tokens in a prompt."""

from roomlore.services.recall.facts_cache import FactVectors, RecallCache
from roomlore.services.recall.recall_service import (
    KnownForReplies,
    RecallMessage,
    RecallParts,
    RecallService,
    ShownBefore,
)

__all__ = [
    "FactVectors",
    "KnownForReplies",
    "RecallCache",
    "RecallMessage",
    "RecallParts",
    "RecallService",
    "ShownBefore",
]
