"""The verbs of `lore.sessions`, and automatic checkpoints."""

from roomlore.services.sessions.automatic import SUMMARY, AutoCheckpoints, DeferredSummaries, Summaries
from roomlore.services.sessions.checkpoints import Checkpointer
from roomlore.services.sessions.reading import SegmentCache, SessionReader, signing_key
from roomlore.services.sessions.session_service import SessionParts, SessionService

__all__ = [
    "SUMMARY",
    "AutoCheckpoints",
    "Checkpointer",
    "DeferredSummaries",
    "SegmentCache",
    "SessionParts",
    "SessionReader",
    "SessionService",
    "Summaries",
    "signing_key",
]
