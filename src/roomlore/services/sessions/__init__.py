"""The verbs of `lore.sessions`, and the checkpoints roomlore makes by itself."""

from roomlore.services.sessions.automatic import AutoCheckpoints
from roomlore.services.sessions.cache import SegmentCache
from roomlore.services.sessions.checkpoints import Checkpointer
from roomlore.services.sessions.later import SUMMARY, LaterSummaries
from roomlore.services.sessions.offers import Offers
from roomlore.services.sessions.reader import SessionReader
from roomlore.services.sessions.service import SessionParts, SessionService
from roomlore.services.sessions.summaries import Summaries

__all__ = [
    "SUMMARY",
    "AutoCheckpoints",
    "Checkpointer",
    "LaterSummaries",
    "Offers",
    "SegmentCache",
    "SessionParts",
    "SessionReader",
    "SessionService",
    "Summaries",
]
