"""Time expressions in questions, and the closeness of messages to them."""

from roomlore.core.dates.moments import Edge, moment
from roomlore.core.dates.spans import FAR_PAST, MAX_SPANS, TimeSpan, closeness, time_spans

__all__ = ["FAR_PAST", "MAX_SPANS", "Edge", "TimeSpan", "closeness", "moment", "time_spans"]
