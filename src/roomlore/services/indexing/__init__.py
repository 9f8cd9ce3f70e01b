"""Keeping the indexes that are derived from SQL in step with it, and making them anew."""

from roomlore.services.indexing.service import IndexingService, IndexProgress, IndexStatus, Part
from roomlore.services.indexing.standing import Standing, Standings
from roomlore.services.indexing.vectors import VectorIndexing
from roomlore.services.indexing.words import WordIndexing

__all__ = [
    "IndexProgress",
    "IndexStatus",
    "IndexingService",
    "Part",
    "Standing",
    "Standings",
    "VectorIndexing",
    "WordIndexing",
]
