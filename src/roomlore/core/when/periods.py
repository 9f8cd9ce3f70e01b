"""Stretches of the calendar and the clock on the wall: naive times, which mean what they mean in the asker's zone.

Nothing here checks its numbers: a date that does not exist raises ValueError, one past the calendar's ends
OverflowError, and who calls takes either for "no time".
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import Literal

Unit = Literal[
    "minute", "hour", "part", "day", "weekend", "week", "month", "season", "quarter", "half", "year", "stretch"
]
ONE_DAY = timedelta(days=1)
# Before any chat; a zone's offset can still be added to it.
LONG_AGO = datetime.combine(date(1900, 1, 1), time())
PARTS = {
    "small hours": (0, 6),
    "early morning": (5, 9),
    "morning": (5, 12),
    "noon": (11, 14),
    "afternoon": (12, 18),
    "evening": (17, 24),
    "night": (18, 30),
    "midnight": (22, 28),
}
SEASONS = {"spring": (3, 3), "summer": (6, 3), "autumn": (9, 3), "winter": (12, 3)}
_REACH = {"day": 0, "week": 3, "month": 15, "year": 182}
_LENGTH = {"day": 1, "week": 7, "month": 30, "year": 365}
_FINER = {"year": (12, "month"), "month": (30, "day"), "week": (7, "day"), "day": (24, "hour"), "hour": (60, "minute")}


@dataclass(frozen=True, slots=True)
class Period:
    """From `start` up to `end`, without it. `every` is set where the words name what comes again, such as "Monday" or
    "May", and do not say which: the latest was taken."""

    start: datetime
    end: datetime
    unit: Unit
    every: Literal["", "week", "year"] = ""


def days(first: date, count: int = 1, unit: Unit = "day") -> Period:
    start = midnight(first)
    return Period(start, start + count * ONE_DAY, unit)


def week(day: date) -> Period:
    return days(day - day.weekday() * ONE_DAY, 7, "week")


def weekend(day: date) -> Period:
    """That of the day's week."""
    return days(day + (5 - day.weekday()) * ONE_DAY, 2, "weekend")


def months(first: date, count: int = 1, unit: Unit = "month") -> Period:
    return Period(midnight(first), midnight(later(first, count)), unit)


def month(year: int, number: int) -> Period:
    return months(date(year, number, 1))


def quarter(year: int, number: int) -> Period:
    return months(date(year, 3 * number - 2, 1), 3, "quarter")


def half(year: int, number: int) -> Period:
    return months(date(year, 6 * number - 5, 1), 6, "half")


def season(year: int, name: str) -> Period:
    first, count = SEASONS[name]
    return months(date(year, first, 1), count, "season")


def year(number: int) -> Period:
    return months(date(number, 1, 1), 12, "year")


def midnight(day: date) -> datetime:
    return datetime.combine(date(day.year, day.month, day.day), time())


def later(day: date, count: int) -> date:
    """The same day of another month, or that month's last."""
    number = day.year * 12 + day.month - 1 + count
    first = date(number // 12, number % 12 + 1, 1)
    return date(first.year, first.month, min(day.day, (_next_month(first) - ONE_DAY).day))


def _next_month(first: date) -> date:
    return (first + 31 * ONE_DAY).replace(day=1)


def latest(make: Callable[[int], Period], now: datetime) -> Period:
    """What comes once a year: the last that has begun. The 29th of February may be some years back."""
    for number in range(now.year, now.year - 9, -1):
        try:
            period = make(number)
        except ValueError:
            continue
        if period.start <= now:
            return replace(period, every="year")
    raise ValueError(now)


def latest_over(make: Callable[[int], Period], now: datetime) -> Period:
    """The last that is over."""
    return next(found for found in map(make, range(now.year + 1, now.year - 3, -1)) if found.end <= now)


def next_one(make: Callable[[int], Period], now: datetime) -> Period:
    """The first that has not begun."""
    return next(found for found in map(make, range(now.year, now.year + 3)) if found.start > now)


def current(make: Callable[[int], Period], now: datetime) -> Period:
    """This year's, or what is left of one that began last year, as a winter does."""
    before = make(now.year - 1)
    return before if before.end > now else make(now.year)


def latest_weekday(today: date, weekday: int) -> Period:
    """The last one before today."""
    return replace(days(today - ((today.weekday() - weekday - 1) % 7 + 1) * ONE_DAY), every="week")


def again(period: Period, steps: int) -> Period:
    """The same of another week or year, as `every` says."""
    if period.every == "week":
        return replace(period, start=period.start + 7 * steps * ONE_DAY, end=period.end + 7 * steps * ONE_DAY)
    start = midnight(later(period.start, 12 * steps))
    return replace(period, start=start, end=midnight(later(period.end, 12 * steps)))


def back(now: datetime, amount: float, unit: str) -> datetime:
    """`amount` units before."""
    amount, unit = _whole(amount, unit)
    if unit in ("month", "year"):
        return datetime.combine(later(now, -int(amount) * (12 if unit == "year" else 1)), now.time())
    return now - timedelta(**{unit + "s": amount})


def _whole(amount: float, unit: str) -> tuple[float, str]:
    """A broken number in the next finer unit."""
    if amount == int(amount) or unit not in _FINER:
        return amount, unit
    times, finer = _FINER[unit]
    return amount * times, finer


def ago(now: datetime, low: float, high: float, unit: str) -> Period:
    """A unit's width around the point `low` units before `now`, wider for large numbers; where `high` differs, all
    from `high` units before up to `low`."""
    if low != high:
        return Period(midnight(back(now, high, unit)), midnight(back(now, low - 1, unit)), "stretch")
    amount, unit = _whole(low, unit)
    if unit in ("minute", "hour"):
        width = timedelta(**{unit + "s": max(1.0, amount / 4)}) / 2
        return Period(back(now, amount, unit) - width, back(now, amount, unit) + width, "stretch")
    reach = (_REACH[unit] + abs(int(amount)) // 8 * _LENGTH[unit]) * ONE_DAY
    centre = midnight(back(now, amount, unit))
    return Period(centre - reach, centre + reach + ONE_DAY, "stretch" if reach else "day")


def past(now: datetime, amount: float, unit: str) -> Period:
    """The last `amount` units up to now: whole days, but for hours and minutes."""
    start = back(now, amount, unit)
    return Period(start if unit in ("minute", "hour") else midnight(start), now, "stretch")


def part(day: Period, name: str) -> Period:
    """A part of a day; the night runs into the next morning."""
    first, last = PARTS[name]
    start = midnight(day.start)
    return Period(start + timedelta(hours=first), start + timedelta(hours=last), "part", day.every)


def clock(day: Period, hour: int, minute: int | None) -> Period:
    """An hour of a day, or the half hour around a time given to the minute; 24 and more are the next morning."""
    start = midnight(day.start) + timedelta(hours=hour)
    if minute is None:
        return Period(start, start + timedelta(hours=1), "hour", day.every)
    start += timedelta(minutes=minute - 15)
    return Period(start, start + timedelta(minutes=30), "hour", day.every)


def third(period: Period, number: int) -> Period:
    """Early (1), middle (2) or late (3): 10 days and the rest of a month, 4 months of a year."""
    start, end = period.start, period.end
    if period.unit == "year":
        cuts = [start, midnight(later(start, 4)), midnight(later(start, 8)), end]
    elif period.unit == "month":
        cuts = [start, start + 10 * ONE_DAY, start + 20 * ONE_DAY, end]
    else:
        width = max(1, round((end - start) / ONE_DAY / 3)) * ONE_DAY
        cuts = [start, start + width, end - width, end]
    return replace(period, start=cuts[number - 1], end=cuts[number], unit="stretch")


def edge(period: Period, number: int) -> Period:
    """The beginning (1) or the end (3): as a third, but nearer the edge of a year."""
    if period.unit == "year":
        first = later(period.start, 0 if number == 1 else 10)
        return replace(months(first, 3 if number == 1 else 2, "stretch"), every=period.every)
    return third(period, number)


def nth(period: Period, number: int, what: str | int) -> Period:
    """The first (1), second, … or last (-1) day, week, weekend, month, quarter, half or weekday (0 to 6) of a period.

    Weeks are counted in sevens from its first day.
    """
    first, end = period.start.date(), period.end.date()
    if what in ("month", "quarter", "half"):
        width = {"month": 1, "quarter": 3, "half": 6}[str(what)]
        found = months(later(first, width * (number - 1)) if number > 0 else later(end, -width), width, "stretch")
    elif what in ("day", "week"):
        width = 7 if what == "week" else 1
        found = days(first + width * (number - 1) * ONE_DAY if number > 0 else end - width * ONE_DAY, width, "stretch")
    else:
        weekday = 5 if what == "weekend" else int(what)
        day = first + (weekday - first.weekday()) % 7 * ONE_DAY + 7 * (number - 1) * ONE_DAY
        day = day if number > 0 else end - ((end.weekday() - weekday - 1) % 7 + 1) * ONE_DAY
        found = days(day, 2 if what == "weekend" else 1)
    if found.start >= period.end:
        raise ValueError(number)
    return replace(found, every=period.every)


def beside(period: Period, what: str | int, *, after: bool) -> Period:
    """The day, night, week, weekend, month, year or weekday just before or after a period."""
    edge_of = period.end if after else period.start
    if what == "night":
        return part(days(period.start - (0 if after else 1) * ONE_DAY), "night")
    if what in ("month", "year"):
        width = 12 if what == "year" else 1
        return months(edge_of if after else later(edge_of, -width), width, "stretch")
    if what in ("day", "week"):
        width = 7 if what == "week" else 1
        return days(edge_of if after else edge_of - width * ONE_DAY, width, "stretch")
    weekday = 5 if what == "weekend" else int(what)
    found = latest_weekday(edge_of + (7 * ONE_DAY if after else 0 * ONE_DAY), weekday)
    return days(found.start, 2 if what == "weekend" else 1)
