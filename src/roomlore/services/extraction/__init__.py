"""Extraction: short memories of what was said in rooms."""

from roomlore.services.extraction.extraction_service import (
    EXTRACTION,
    Extracted,
    ExtractionService,
    MemorySummaries,
    RepliesDue,
    RepliesImported,
)
from roomlore.services.extraction.retry import EXTRACTION_RETRY, FallbackRetries

__all__ = [
    "EXTRACTION",
    "EXTRACTION_RETRY",
    "Extracted",
    "ExtractionService",
    "FallbackRetries",
    "MemorySummaries",
    "RepliesDue",
    "RepliesImported",
]
