"""Short memories of what was said in rooms."""

from roomlore.services.extraction.again import AGAIN, FallbacksAgain
from roomlore.services.extraction.due import EXTRACTION, RepliesDue, RepliesImported
from roomlore.services.extraction.service import ExtractionService
from roomlore.services.extraction.summarise import Extracted, MemorySummaries

__all__ = [
    "AGAIN",
    "EXTRACTION",
    "Extracted",
    "ExtractionService",
    "FallbacksAgain",
    "MemorySummaries",
    "RepliesDue",
    "RepliesImported",
]
