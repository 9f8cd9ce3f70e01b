"""Digests of rooms, and how far people have read."""

from roomlore.services.digest.digest_service import DigestService, ReadingMarks
from roomlore.services.digest.nightly import DIGEST, NightlyDigests
from roomlore.services.digest.overview import OverviewService
from roomlore.services.digest.titles import TITLES, ThreadTitler
from roomlore.services.digest.writing import Writing, WritingOptions

__all__ = [
    "DIGEST",
    "TITLES",
    "DigestService",
    "NightlyDigests",
    "OverviewService",
    "ReadingMarks",
    "ThreadTitler",
    "Writing",
    "WritingOptions",
]
