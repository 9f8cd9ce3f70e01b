"""One time that somebody writes, as a date or in words such as "3 days ago" or "上周五"."""

from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any, Literal, TypeGuard

from roomlore.core.dates import TimeSpan
from roomlore.core.errors import InvalidInput
from roomlore.core.records import parse_time

Edge = Literal["start", "end"]
_NOW = frozenset({"now", "现在", "現在"})


def moment(name: str, words: str, *, now: datetime, zone: tzinfo, edge: Edge, may_come: bool = False) -> datetime:
    """Return the time that the words name (aware, UTC). A time without a zone is in `zone`.

    A date is its first instant. Days in words, such as 'last week', give their first or last instant (`edge`); a
    shorter time, such as 'two hours ago', its middle. A time in words is never later than `now`, unless it `may_come`.
    `name`: what the error calls it. Raises `InvalidInput` if the words name no time, or several.
    """
    told = parse_time(words, zone=zone)
    if told is not None:
        return told
    if words.strip().casefold() in _NOW:
        return now
    from roomlore.core.dates.spans import time_spans  # its patterns take a tenth of a second to compile

    spans = time_spans(words, now=now, zone=zone)
    if len(spans) != 1:
        raise InvalidInput(
            f"{name} is {words[:60]!r}; write one time, such as 2024-05-01, 2024-05-01T12:30, yesterday, '3 days ago' "
            "or 上周五."
        )
    found = _edge(spans[0], zone, edge)
    return found if may_come else min(found, now)


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
