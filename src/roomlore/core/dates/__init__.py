"""Times that people write: spans in questions, the closeness of messages to them, and single moments.

`spans.time_spans` finds the expressions. Its patterns take a tenth of a second to compile, which only a search needs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any, Literal, TypeGuard

import numpy as np
from numpy.typing import NDArray

from roomlore.core.errors import InvalidInput
from roomlore.core.records import parse_time

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


Edge = Literal["start", "end"]
_NOW = frozenset({"now", "现在", "現在"})


def is_before(begins: datetime, ends: datetime, moment: datetime) -> bool:
    """Return True if the period lies before the moment, as does a day that ends then."""
    return begins < moment >= ends


def moment(name: str, words: str, *, now: datetime, zone: tzinfo, edge: Edge, may_come: bool = False) -> datetime:
    """Return the time that the words name (aware, UTC). A time without a zone is in `zone`.

    A day, as a date or in words such as 'yesterday' and 'last week', gives its first or last instant (`edge`); a
    shorter time, such as 'two hours ago', its middle. A time in words is never later than `now`, and today ends now,
    unless it `may_come`; then an end on a day without a year, such as 'Friday', is the next one. `name`: what the error
    calls it. Raises `InvalidInput` if the words name no time, or several.
    """
    if day := day_in(words):
        begins, ends = start_of(day, zone), end_of(day, zone)
        return begins if edge == "start" else ends if may_come or now < begins else min(ends, now)
    moment_given = parse_time(words, zone=zone)
    if moment_given is not None:
        return moment_given
    if words.strip().casefold() in _NOW:
        return now
    from roomlore.core.dates.spans import time_spans  # its patterns take a tenth of a second to compile

    spans = time_spans(words, now=now, zone=zone, ahead=may_come and edge == "end")
    if len(spans) != 1:
        raise InvalidInput("time_words_invalid", name=name, value=repr(words[:60]))
    edge_moment = _edge(spans[0], zone, edge)
    return edge_moment if may_come else min(edge_moment, now)


def day_in(words: str) -> date | None:
    """Return the day that the words are, such as 2024-05-01; None if they are a time, or neither."""
    try:
        return date.fromisoformat(words.strip().replace("/", "-"))
    except ValueError:
        return None


def is_day(given: Any) -> TypeGuard[date]:
    """Return True for a `date` without a time."""
    return isinstance(given, date) and not isinstance(given, datetime)


def start_of(day: date, zone: tzinfo) -> datetime:
    """Return the first instant of a day in the zone, in UTC."""
    return _midnight(day, zone)


def end_of(day: date, zone: tzinfo) -> datetime:
    """Return the first instant after a day in the zone, in UTC. The last day of the calendar ends with the calendar."""
    if day == date.max:
        return datetime.max.replace(tzinfo=UTC)
    return _midnight(day + timedelta(days=1), zone)


def _midnight(day: date, zone: tzinfo) -> datetime:
    begins = datetime.combine(day, time(), zone)
    try:
        return begins.astimezone(UTC)
    except OverflowError:  # at the calendar's ends
        return begins.replace(tzinfo=UTC)


def _edge(span: TimeSpan, zone: tzinfo, edge: Edge) -> datetime:
    midnights = {moment.astimezone(zone).time() for moment in (span.start, span.end)} == {time()}
    if not midnights:
        return span.start + (span.end - span.start) / 2
    return span.start if edge == "start" else span.end
