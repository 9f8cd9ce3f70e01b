"""Keeping the indexes that are derived from SQL in step with it, and rebuilding them."""

from roomlore.services.indexing.index_service import IndexingService, IndexProgress, IndexStatus, Part
from roomlore.services.indexing.index_state import (
    DenseSearch,
    Indexed,
    IndexedMemories,
    IndexedMessages,
    IndexStateReader,
    SearchState,
)
from roomlore.services.indexing.rebuild import LinkIndexing, WordIndexing
from roomlore.services.indexing.vectors import VectorIndexing

__all__ = [
    "DenseSearch",
    "IndexProgress",
    "IndexStateReader",
    "IndexStatus",
    "Indexed",
    "IndexedMemories",
    "IndexedMessages",
    "IndexingService",
    "LinkIndexing",
    "Part",
    "SearchState",
    "VectorIndexing",
    "WordIndexing",
]
