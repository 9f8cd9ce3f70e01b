"""Shorten a conversation: choose sentences, or normalise a language model's summary."""

from roomlore.core.summary.select import Count, accepted, extract, without_label
from roomlore.core.summary.sentences import Said

__all__ = ["Count", "Said", "accepted", "extract", "without_label"]
