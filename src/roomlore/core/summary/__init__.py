"""Shorten a conversation: choose sentences, or normalise a language model's summary."""

from roomlore.core.summary.answers import accepted, completed, echoes, without_label
from roomlore.core.summary.select import Count, extract
from roomlore.core.summary.sentences import SpeakerText

__all__ = ["Count", "SpeakerText", "accepted", "completed", "echoes", "extract", "without_label"]
