"""Times in questions: which a question speaks of, and how near to them a message is."""

from roomlore.core.when.spans import FAR_PAST, MOST_SPANS, TimeSpan, closeness, time_spans

__all__ = ["FAR_PAST", "MOST_SPANS", "TimeSpan", "closeness", "time_spans"]
