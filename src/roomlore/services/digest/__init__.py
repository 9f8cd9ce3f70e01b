"""Digests of rooms, and how far people have read."""

from roomlore.services.digest.digest_service import DigestService
from roomlore.services.digest.marks import ReadingMarks
from roomlore.services.digest.writing import Writing, WritingOptions

__all__ = ["DigestService", "ReadingMarks", "Writing", "WritingOptions"]
