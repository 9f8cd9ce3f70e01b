"""Times as people write them at a terminal: dates, and words such as "3 days ago" or "上周五"."""

from datetime import datetime, time
from typing import Literal
from zoneinfo import ZoneInfo

from roomlore.core.errors import InvalidInput
from roomlore.core.records import parse_time
from roomlore.core.when import TimeSpan, time_spans

Edge = Literal["start", "end"]
_NOW = frozenset({"now", "现在", "現在"})


def moment(name: str, words: str, *, now: datetime, zone: ZoneInfo, edge: Edge) -> datetime:
    """The time that the words name (aware, UTC); those without a zone are of `zone`.

    A date is its first instant. Of days in words, such as 'last week', it is the first instant or the last one
    (`edge`); of a shorter time, such as 'two hours ago', the middle. Never later than now where it is in words. Raises
    `InvalidInput` where they name no time, or several.
    """
    told = parse_time(words, zone=zone)
    if told is not None:
        return told
    if words.strip().casefold() in _NOW:
        return now
    spans = time_spans(words, now=now, zone=zone)
    if len(spans) != 1:
        raise InvalidInput(
            f"{name} is {words[:60]!r}; write one time, such as 2024-05-01, 2024-05-01T12:30, yesterday, '3 days ago' "
            "or 上周五."
        )
    return min(_edge(spans[0], zone, edge), now)


def _edge(span: TimeSpan, zone: ZoneInfo, edge: Edge) -> datetime:
    midnights = {moment.astimezone(zone).time() for moment in (span.start, span.end)} == {time()}
    if not midnights:
        return span.start + (span.end - span.start) / 2
    return span.start if edge == "start" else span.end
