"""The days to come that a message names."""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, timedelta

from roomlore.core import lexicon
from roomlore.core.dates.calendar import again
from roomlore.core.dates.languages import times_ahead
from roomlore.core.patterns import lazy_pattern
from roomlore.core.values import in_figures

_DAYS = tuple(lexicon.values("weekdays", "en"))
_MONTHS = lexicon.values("months", "en")
_MONTH = lexicon.forms("month", "en")
_ZH_NUMBER = "[一二两兩三四五六七八九十]{1,3}|[0-9]{1,2}"
# A day that is still to come, each form in groups of its own; Mondays and 3号线 are none.
_NAMED = lazy_pattern(
    rf"\b{lexicon.forms('weekday_any', 'en')},? (?:the )?(?P<d4>\d{{1,2}})(?:st|nd|rd|th)\b(?!(?: of)? {_MONTH}\b)"
    rf"|\b(?P<next>next )?(?P<weekday>{lexicon.forms('weekday', 'en')})(?![s\w])"
    rf"|(?P<zhnext>下[个個]?)?{lexicon.forms('week', 'zh')}(?P<zhday>[一二三四五六日天])"
    r"|\b(?P<tomorrow>tomorrow)\b|(?P<zhtomorrow>明[天晚早])|(?P<zhafter>(?<!大)[后後]天)"
    rf"|\b(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<m1>{_MONTH})\b"
    rf"|\b(?P<m2>{_MONTH}) (?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\b"
    rf"|(?P<zm>{_ZH_NUMBER})月(?P<zd>{_ZH_NUMBER})[日号號]"
    rf"|\bthe (?P<d3>\d{{1,2}})(?:st|nd|rd|th)\b(?!(?: of)? {_MONTH}\b)"
    rf"|(?<![月\d一二三四五六七八九十廿])(?P<zd3>{_ZH_NUMBER}) ?[号號](?!{lexicon.forms('numbered_place', 'zh')})"
)
# Right before a day: it comes again and again.
_RECURRING = lazy_pattern(r"(?:\b(?:every|each) |每[个個]?)$")
_PAST = 45
"""A month's day that is at most this many days past is not the one of next year."""


def future_days(folded: str, on: date) -> Iterator[tuple[str, date]]:
    """Yield each day that a folded text of that day names, with the words that name it. A recurring one is no day."""
    return ((words, day) for words, day, _ in _named_days(folded, on))


def _named_days(folded: str, on: date) -> Iterator[tuple[str, date, bool]]:
    """Yield also if the words name a weekday, or another day of which they do not say that it is today."""
    for match in _NAMED.finditer(folded):
        if _RECURRING.search(folded[max(0, match.start() - 8) : match.start()]):
            continue
        day = _day(match, on)
        if day is not None:
            yield match[0], day, not _TODAY.search(match[0])
    for hit in times_ahead(folded, on):
        period = hit.period
        day = period.start.date()
        if period.every == "year" and (on - (past := again(period, -1).start.date())).days <= _PAST:
            day = past
        if period.unit in ("day", "part", "hour") and (day >= on or period.every):
            yield folded[hit.at : hit.to], day, period.every == "week"


# A name of today, unlike that of its weekday.
_TODAY = lazy_pattern(r"\d|[今明号號]|today|tonight|tomorrow")
_LASTS = lexicon.pattern("lasts_from")


def last_named_day(folded: str, on: date) -> date | None:
    """Return the last day that a folded text of that day names; None if it names none, or one on which something
    begins that goes on. The weekday of that day itself may mean the next one."""
    days = [day + timedelta(days=7 * (day == on and weekday)) for _, day, weekday in _named_days(folded, on)]
    return max(days) if days and not _LASTS.search(folded) else None


def _day(match: re.Match[str], on: date) -> date | None:
    if named := match["weekday"]:
        return _weekday(on, _DAYS.index(named[:3]), week_after=bool(match["next"]))
    if named := match["zhday"]:
        return _chinese_weekday(on, "一二三四五六日".index(named.replace("天", "日")), after=bool(match["zhnext"]))
    if match["tomorrow"] or match["zhtomorrow"]:
        return on + timedelta(days=1)
    if match["zhafter"]:
        return on + timedelta(days=2)
    month = match["m1"] or match["m2"]
    number = _MONTHS[month[:3]] if month else _number(match["zm"])
    day = _number(match["d1"] or match["d2"] or match["zd"] or match["d3"] or match["d4"] or match["zd3"])
    return _of_month(on, number, day)


def _weekday(on: date, weekday: int, *, week_after: bool) -> date:
    """Return the next such day after this one; with "next" the one in the following week."""
    if week_after:
        return on + timedelta(days=7 - on.weekday() + weekday)
    return on + timedelta(days=(weekday - on.weekday()) % 7)


def _chinese_weekday(on: date, weekday: int, *, after: bool) -> date:
    """Return the day of this week, or of the next one if it is past or is named so."""
    day = on + timedelta(days=weekday - on.weekday() + 7 * after)
    return day if day >= on else day + timedelta(days=7)


def _number(text: str | None) -> int:
    figures = in_figures(text or "")
    return int(figures) if figures.isdecimal() else 0


def _of_month(on: date, month: int, day: int) -> date | None:
    """Return the day; without a month the next one with that number. None if there is no such day."""
    if month:
        with suppress(ValueError):
            day_of_month = date(on.year, month, day)
            return day_of_month if (on - day_of_month).days <= _PAST else date(on.year + 1, month, day)
        return None
    for month_ahead in range(on.month - 1, on.month + 2):  # of two months at least one has it
        with suppress(ValueError):
            day_of_month = date(on.year + month_ahead // 12, month_ahead % 12 + 1, day)
            if day_of_month >= on:
                return day_of_month
    return None
