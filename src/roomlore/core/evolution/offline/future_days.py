"""The days that a message names for later: tomorrow, a weekday, a day of a month; in both languages."""

import re
from collections.abc import Iterator
from datetime import date, timedelta

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_ZH_NUMBER = "[一二两兩三四五六七八九十]{1,3}|[0-9]{1,2}"
_NAMED = re.compile(
    r"\b(?P<next>next )?(?P<weekday>(?:mon|tues|wednes|thurs|fri|satur|sun)day)(?![s\w])"
    r"|(?P<zhnext>下[个個]?)?(?:周|週|星期|礼拜|禮拜)(?P<zhday>[一二三四五六日天])"
    r"|\b(?P<tomorrow>tomorrow)\b|(?P<zhtomorrow>明[天晚早])|(?P<zhafter>(?<!大)[后後]天)"
    rf"|\b(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<m1>{_MONTH})\b"
    rf"|\b(?P<m2>{_MONTH}) (?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\b"
    rf"|(?P<zm>{_ZH_NUMBER})月(?P<zd>{_ZH_NUMBER})[日号號]|\bthe (?P<d3>\d{{1,2}})(?:st|nd|rd|th)\b"
    rf"|(?<![月\d一二三四五六七八九十])(?P<zd3>{_ZH_NUMBER})[号號](?![线線楼樓])"
)
_RECURRING = re.compile(r"(?:\b(?:every|each) |每[个個]?)$")
_DIGITS = dict(zip("一二两兩三四五六七八九", (1, 2, 2, 2, 3, 4, 5, 6, 7, 8, 9), strict=True))
_PAST = 45
"""A month's day that is at most this many days past is not the one of next year."""


def future_days(folded: str, on: date) -> Iterator[tuple[str, date]]:
    """Yield each day that a folded text of that day names, with the words that name it. A recurring one is no day."""
    for found in _NAMED.finditer(folded):
        if _RECURRING.search(folded[max(0, found.start() - 8) : found.start()]):
            continue
        day = _day(found, on)
        if day is not None:
            yield found[0], day


def _day(found: re.Match[str], on: date) -> date | None:
    if named := found["weekday"]:
        return _weekday(on, _DAYS.index(named[:3]), week_after=bool(found["next"]))
    if named := found["zhday"]:
        return _chinese_weekday(on, "一二三四五六日".index(named.replace("天", "日")), after=bool(found["zhnext"]))
    if found["tomorrow"] or found["zhtomorrow"]:
        return on + timedelta(days=1)
    if found["zhafter"]:
        return on + timedelta(days=2)
    month = found["m1"] or found["m2"]
    number = _MONTHS.index(month[:3]) + 1 if month else _number(found["zm"])
    day = _number(found["d1"] or found["d2"] or found["zd"] or found["d3"] or found["zd3"])
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
    if not text:
        return 0
    if text.isdecimal():
        return int(text)
    tens, ten, ones = text.partition("十")
    if not ten:
        return _DIGITS.get(text, 0)
    return 10 * _DIGITS.get(tens, 1) + _DIGITS.get(ones, 0)


def _of_month(on: date, month: int, day: int) -> date | None:
    """Return the day; without a month the next one with that number. None if there is no such day."""
    try:
        if month:
            found = date(on.year, month, day)
            return found if (on - found).days <= _PAST else date(on.year + 1, month, day)
        found = date(on.year, on.month, day)
        return found if found >= on else date(on.year + on.month // 12, on.month % 12 + 1, day)
    except ValueError:
        return None
