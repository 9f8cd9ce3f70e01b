"""Digests of rooms, and how far people have read."""

from roomlore.services.digest.digest_service import DigestService
from roomlore.services.digest.marks import ReadingMarks
from roomlore.services.digest.nightly import DIGEST, NightlyDigests, NightlyOptions
from roomlore.services.digest.writing import Writing, WritingOptions

__all__ = [
    "DIGEST",
    "DigestService",
    "NightlyDigests",
    "NightlyOptions",
    "ReadingMarks",
    "Writing",
    "WritingOptions",
]
