"""Recall: the facts that are worth their tokens in a prompt."""

from roomlore.services.recall.for_replies import KnownForReplies
from roomlore.services.recall.messages import SaidBefore
from roomlore.services.recall.service import RecallParts, RecallService
from roomlore.services.recall.shelf import FactShelf
from roomlore.services.recall.shown import ShownBefore
from roomlore.services.recall.vectors import FactVectors

__all__ = ["FactShelf", "FactVectors", "KnownForReplies", "RecallParts", "RecallService", "SaidBefore", "ShownBefore"]
