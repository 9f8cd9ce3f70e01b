"""Questions and what they mean, asked on Wednesday, 12 June 2024, 15:30 UTC."""

from datetime import UTC, datetime

from roomlore.core.dates import FAR_PAST
from roomlore.core.dates.spans import time_spans

NOW = datetime(2024, 6, 12, 15, 30, tzinfo=UTC)


def rows(table):
    """Lines of "question | start end | ...", where a day without a time is its midnight, `now` is when it is asked and
    `ever` is far past."""
    return [tuple(map(str.strip, line.split("|", 1))) for line in table.strip().splitlines()]


def meaning(question, *, now=NOW, zone=UTC):
    spans = time_spans(question, now=now, zone=zone)
    return " | ".join(f"{shown(span.start, now, zone)} {shown(span.end, now, zone)}" for span in spans)


def shown(moment, now, zone=UTC):
    if moment in (now, FAR_PAST):
        return "now" if moment == now else "ever"
    text = moment.astimezone(zone).replace(tzinfo=None).isoformat(timespec="minutes")
    return text.removesuffix("T00:00")
