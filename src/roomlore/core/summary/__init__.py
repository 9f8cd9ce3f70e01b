"""Fewer words that stand for a conversation: chosen from it, or a language model's made fit for use."""

from roomlore.core.summary.answers import accepted, without_label
from roomlore.core.summary.choice import Count, extract
from roomlore.core.summary.units import Said

__all__ = ["Count", "Said", "accepted", "extract", "without_label"]
