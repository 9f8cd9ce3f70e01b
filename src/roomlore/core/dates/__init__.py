"""Time expressions in questions, and the closeness of messages to them.

`spans.time_spans` finds the expressions. Its patterns take a tenth of a second to compile, which only a search needs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

FAR_PAST = datetime(1900, 1, 1, tzinfo=UTC)
MAX_SPANS = 16

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DAY = timedelta(days=1) / _MICROSECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSpan:
    """A time that a question names. `start`: when it begins, in UTC. `end`: when it has ended, in UTC. `text`: the
    expression. `position`: where it stands in the question: the first character, and the one after the last. A span
    that is open to the past starts at FAR_PAST, one that is open to the future ends when the question is asked."""

    start: datetime
    end: datetime
    text: str
    position: tuple[int, int]


def closeness(spans: Sequence[TimeSpan], at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the closeness of messages to the nearest of some spans, in [0, 1]; `at` in microseconds since 1970.

    1 inside a span. Events are discussed afterwards: the value halves with each length of the span after its end (at
    least a day, at most 14), and eight times as fast before its start. Without spans every time has 1.
    """
    near = np.zeros(at.shape) if spans else np.ones(at.shape)
    for span in spans:
        start, end = (span.start - _EPOCH) / _MICROSECOND, (span.end - _EPOCH) / _MICROSECOND
        half_life = min(max(end - start, _DAY), 14 * _DAY)
        away = np.maximum(at - end, 0) + 8 * np.maximum(start - at, 0)
        near = np.maximum(near, np.exp2(-away / half_life))
    return near
