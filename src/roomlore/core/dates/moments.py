"""One time that somebody writes, as a date or in words such as "3 days ago" or "上周五"."""

from datetime import datetime, time, tzinfo
from typing import Literal

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


def _edge(span: TimeSpan, zone: tzinfo, edge: Edge) -> datetime:
    midnights = {moment.astimezone(zone).time() for moment in (span.start, span.end)} == {time()}
    if not midnights:
        return span.start + (span.end - span.start) / 2
    return span.start if edge == "start" else span.end
