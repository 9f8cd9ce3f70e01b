"""Keeping the indexes that are derived from SQL in step with it, and making them anew."""

from roomlore.services.indexing.service import IndexingService
from roomlore.services.indexing.standing import Standing, Standings
from roomlore.services.indexing.vectors import VectorIndexing
from roomlore.services.indexing.words import WordIndexing

__all__ = ["IndexingService", "Standing", "Standings", "VectorIndexing", "WordIndexing"]
