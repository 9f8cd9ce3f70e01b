"""Keeping the indexes that are derived from SQL in step with it, and making them anew."""

from roomlore.services.indexing.dense import DenseSearch
from roomlore.services.indexing.indexed import Indexed, IndexedMemories, IndexedMessages
from roomlore.services.indexing.links import LinkIndexing
from roomlore.services.indexing.service import IndexingService, IndexProgress, IndexStatus, Part
from roomlore.services.indexing.standing import Standing, Standings
from roomlore.services.indexing.vectors import VectorIndexing
from roomlore.services.indexing.words import WordIndexing

__all__ = [
    "DenseSearch",
    "IndexProgress",
    "IndexStatus",
    "Indexed",
    "IndexedMemories",
    "IndexedMessages",
    "IndexingService",
    "LinkIndexing",
    "Part",
    "Standing",
    "Standings",
    "VectorIndexing",
    "WordIndexing",
]
