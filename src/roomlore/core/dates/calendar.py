"""Calendar periods as naive local times, the holidays of a year, and the rules that both languages share."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from functools import lru_cache, partial
from itertools import pairwise
from math import floor, radians, sin
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
    """From `start` up to `end`, exclusive. `every` is set if the words name a recurring time, such as "Monday" or
    "May", without saying which: the latest was taken."""

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
    """Return the weekend of the day's week."""
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
    """Return the same day of another month, or that month's last."""
    number = day.year * 12 + day.month - 1 + count
    first = date(number // 12, number % 12 + 1, 1)
    return date(first.year, first.month, min(day.day, (_next_month(first) - ONE_DAY).day))


def _next_month(first: date) -> date:
    return (first + 31 * ONE_DAY).replace(day=1)


def latest_over(make: Callable[[int], Period], now: datetime) -> Period:
    """Return the last one that is over."""
    return next(period for period in map(make, range(now.year + 1, now.year - 3, -1)) if period.end <= now)


def next_one(make: Callable[[int], Period], now: datetime) -> Period:
    """Return the first one that has not begun."""
    return next(period for period in map(make, range(now.year, now.year + 3)) if period.start > now)


def current(make: Callable[[int], Period], now: datetime) -> Period:
    """Return this year's, or the rest of one that began last year, as a winter does."""
    before = make(now.year - 1)
    return before if before.end > now else make(now.year)


def latest_weekday(today: date, weekday: int) -> Period:
    """Return the last one before today."""
    return replace(days(today - ((today.weekday() - weekday - 1) % 7 + 1) * ONE_DAY), every="week")


def again(period: Period, steps: int) -> Period:
    """Return the same period of another week or year, as `every` says."""
    if period.every == "week":
        return replace(period, start=period.start + 7 * steps * ONE_DAY, end=period.end + 7 * steps * ONE_DAY)
    start = midnight(later(period.start, 12 * steps))
    return replace(period, start=start, end=midnight(later(period.end, 12 * steps)))


def back(now: datetime, amount: float, unit: str) -> datetime:
    """Return the time `amount` units before."""
    amount, unit = _whole(amount, unit)
    if unit in ("month", "year"):
        return datetime.combine(later(now, -int(amount) * (12 if unit == "year" else 1)), now.time())
    return now - timedelta(**{unit + "s": amount})


def _whole(amount: float, unit: str) -> tuple[float, str]:
    """Return a fractional number in the next finer unit."""
    if amount == int(amount) or unit not in _FINER:
        return amount, unit
    times, finer = _FINER[unit]
    return amount * times, finer


def ago(now: datetime, low: float, high: float, unit: str) -> Period:
    """Return a period one unit wide around the point `low` units before `now`, wider for large numbers; if `high`
    differs, everything from `high` units before up to `low`."""
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
    """Return the last `amount` units up to now: whole days, except for hours and minutes."""
    start = back(now, amount, unit)
    return Period(start if unit in ("minute", "hour") else midnight(start), now, "stretch")


def part(day: Period, name: str) -> Period:
    """Return a part of a day; the night extends into the next morning."""
    first, last = PARTS[name]
    start = midnight(day.start)
    return Period(start + timedelta(hours=first), start + timedelta(hours=last), "part", day.every)


def clock(day: Period, hour: int, minute: int | None) -> Period:
    """Return an hour of a day, or the half hour around a time with minutes; 24 and more are the next morning."""
    start = midnight(day.start) + timedelta(hours=hour)
    if minute is None:
        return Period(start, start + timedelta(hours=1), "hour", day.every)
    start += timedelta(minutes=minute - 15)
    return Period(start, start + timedelta(minutes=30), "hour", day.every)


def third(period: Period, number: int) -> Period:
    """Return the early (1), middle (2) or late (3) part: 10 days and the rest of a month, 4 months of a year."""
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
    """Return the beginning (1) or the end (3): as a third, but nearer the edge of a year."""
    if period.unit == "year":
        first = later(period.start, 0 if number == 1 else 10)
        return replace(months(first, 3 if number == 1 else 2, "stretch"), every=period.every)
    return third(period, number)


def nth(period: Period, number: int, what: str | int) -> Period:
    """Return the first (1), second, … or last (-1) day, week, weekend, month, quarter, half or weekday (0 to 6) of a
    period.

    Weeks are counted in sevens from its first day.
    """
    first, end = period.start.date(), period.end.date()
    if what in ("month", "quarter", "half"):
        width = {"month": 1, "quarter": 3, "half": 6}[str(what)]
        stretch = months(later(first, width * (number - 1)) if number > 0 else later(end, -width), width, "stretch")
    elif what in ("day", "week"):
        width = 7 if what == "week" else 1
        stretch = days(
            first + width * (number - 1) * ONE_DAY if number > 0 else end - width * ONE_DAY, width, "stretch"
        )
    else:
        weekday = 5 if what == "weekend" else int(what)
        day = first + (weekday - first.weekday()) % 7 * ONE_DAY + 7 * (number - 1) * ONE_DAY
        day = day if number > 0 else end - ((end.weekday() - weekday - 1) % 7 + 1) * ONE_DAY
        stretch = days(day, 2 if what == "weekend" else 1)
    if stretch.start >= period.end:
        raise ValueError(number)
    return replace(stretch, every=period.every)


def beside(period: Period, what: str | int, *, after: bool) -> Period:
    """Return the day, night, week, weekend, month, year or weekday just before or after a period."""
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
    day_period = latest_weekday(edge_of + (7 * ONE_DAY if after else 0 * ONE_DAY), weekday)
    return days(day_period.start, 2 if what == "weekend" else 1)


_SAME = (
    "週周個个後后號号點点兩两禮礼間间這这過过來来開开終终節节聖圣誕诞國国慶庆勞劳動动兒儿萬万雙双陽阳現现從从幾几鐘钟時时陣阵內内當当於于裡里"
    "裏里剛刚與与將将會会歲岁報报長长圍围轉转腦脑頭头條条氣气臺台點点學学線线樓楼門门應应該该還还歷历曆历農农陰阴舊旧鄉乡號号淩凌師师親亲戀恋"
    "婦妇書书課课環环運运餅饼燈灯禮礼業业畢毕項项場场張张歷历數数劉刘陳陈楊杨趙赵黃黄吳吴孫孙馬马羅罗檔档裝装價价賀贺經经據据樂乐〇零○零"
)
FOLD = {
    **{code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)},
    **{ord(old): ord(new) for old, new in zip(_SAME[::2], _SAME[1::2], strict=True)},
    **{code: code + 32 for code in range(ord("A"), ord("Z") + 1)},
    **{code - 0x20 + 0xFEE0: code for code in range(ord("a"), ord("z") + 1)},
    **dict.fromkeys(map(ord, "\u3000\u00a0\t\n\r"), ord(" ")),
    **dict.fromkeys(map(ord, "‘’ʼ"), ord("'")),
    **dict.fromkeys(map(ord, "–—―−"), ord("-")),
    ord("〜"): ord("~"),
    ord("～"): ord("~"),
}
LOOK_BACK = 48


@dataclass(frozen=True, slots=True)
class TimeQuestion:
    """A question: folded character by character, as written, and the local time of the asker. `ahead`: of a recurring
    time it means the next one, not the latest."""

    text: str
    written: str
    now: datetime
    ahead: bool = False


@dataclass(frozen=True, slots=True)
class NamedPeriod:
    """A period and the words, text[at:to], that name it."""

    at: int
    to: int
    period: Period


def recurring(make: Callable[[int], Period], question: TimeQuestion) -> Period:
    """Return the last yearly event that has begun, or the next that has not ended. The 29th of February may be some
    years away."""
    now, step = question.now, 1 if question.ahead else -1
    for number in range(now.year - question.ahead, now.year + 9 * step, step):
        with suppress(ValueError):
            period = make(number)
            if period.end > now if question.ahead else period.start <= now:
                return replace(period, every="year")
    raise ValueError(now)


def recurring_unless_near(make: Callable[[int], Period], question: TimeQuestion) -> Period | None:
    """Return the recurring event; None if the next is less than 30 days off, since either may be meant."""
    period = recurring(make, question)
    near = not question.ahead and again(period, 1).start - question.now < 30 * ONE_DAY
    return None if near else period


def recurring_weekday(question: TimeQuestion, weekday: int) -> Period:
    """Return the last one before today, or the next from today on."""
    period = latest_weekday(question.now.date(), weekday)
    return again(period, 1) if question.ahead else period


Build = Callable[[re.Match[str], TimeQuestion], Period | None]
Rule = tuple[re.Pattern[str], Build]


def built(build: Build, match: re.Match[str], question: TimeQuestion) -> Period | None:
    """Return the period; None also for a date that does not exist."""
    try:
        return build(match, question)
    except (ValueError, OverflowError):
        return None


def read(rules: Sequence[Rule], question: TimeQuestion, position: int) -> NamedPeriod | None:
    """Return the result of the first rule that matches at a position."""
    for pattern, build in rules:
        match = pattern.match(question.text, position)
        if match and (period := built(build, match, question)):
            return NamedPeriod(match.start(), match.end(), period)
    return None


def preceded(pattern: re.Pattern[str], question: TimeQuestion, position: int) -> re.Match[str] | None:
    """Return the match right before a position: the pattern ends with $ and is at most 48 characters long."""
    return pattern.search(question.text, max(0, position - LOOK_BACK), position)


_LUNATION = 29.530588861
_YEAR = 365.2422
_CHINA = 8 / 24
_CLOCK_ERROR = 64 / 86_400
_ORDINAL = 1_721_425 - 0.5
_PERIODIC = (
    (-0.40720, 0, 0, 1, 0),
    (0.17241, 1, 1, 0, 0),
    (0.01608, 0, 0, 2, 0),
    (0.01039, 0, 0, 0, 2),
    (0.00739, 1, -1, 1, 0),
    (-0.00514, 1, 1, 1, 0),
    (0.00208, 2, 2, 0, 0),
    (-0.00111, 0, 0, 1, -2),
    (-0.00057, 0, 0, 1, 2),
    (0.00056, 1, 1, 2, 0),
    (-0.00042, 0, 0, 3, 0),
    (0.00042, 1, 1, 0, 2),
    (0.00038, 1, 1, 0, -2),
    (-0.00024, 1, -1, 2, 0),
)


def festival(year: int, month: int, day: int) -> date:
    """Return the day of the Gregorian `year` that is `day` of the Chinese `month` (1 to 10, never the leap month)."""
    return date.fromordinal(_months(year)[month - 1] + day - 1)


def clear_and_bright(year: int) -> date:
    """Return Qingming, when the sun's longitude reaches 15 degrees."""
    return date.fromordinal(_solar_term(year, 15))


@lru_cache(maxsize=256)
def _months(year: int) -> tuple[int, ...]:
    """Return the first days of months 1 to 10.

    Month 11 contains the winter solstice. If 13 months lie between two of these, the first one without a principal term
    is the leap month.
    """
    starts = [_new_moon_before(_solar_term(year - 1, 270))]
    last = _new_moon_before(_solar_term(year, 270))
    while starts[-1] < last:
        starts.append(_new_moon_before(starts[-1] + 31))
    if len(starts) == 14:
        terms = [_solar_term(year, longitude) for longitude in range(0, 360, 30)]
        months = pairwise(starts[1:])
        leap = next(start for start, end in months if not any(start <= term < end for term in terms))
        starts.remove(leap)
    return tuple(starts[2:12])


@lru_cache(maxsize=1024)
def _new_moon_before(day: int) -> int:
    """Return the ordinal of the last day up to `day` with a new moon in China."""
    number = floor((day + _ORDINAL - 2_451_550.1) / _LUNATION) + 1
    while (moon := _ordinal(_new_moon(number))) > day:
        number -= 1
    return moon


@lru_cache(maxsize=1024)
def _solar_term(year: int, longitude: int) -> int:
    """Return the ordinal of the day of `year` on which the sun reaches a longitude in degrees."""
    moment = (
        date(year, 3, 20).toordinal() + _ORDINAL + (longitude if longitude < 285 else longitude - 360) / 360 * _YEAR
    )
    for _ in range(4):
        moment += ((longitude - _sun(moment) + 180) % 360 - 180) / 360 * _YEAR
    return _ordinal(moment)


def _ordinal(moment: float) -> int:
    return floor(moment - _CLOCK_ERROR + _CHINA - _ORDINAL)


def _new_moon(number: int) -> float:
    """Return the Julian day of a new moon, counted from that of January 2000."""
    t = number / 1236.85
    eccentricity = 1 - 0.002516 * t
    sun = radians(2.5534 + 29.10535670 * number)
    moon = radians(201.5643 + 385.81693528 * number + 0.0107582 * t * t)
    node = radians(160.7108 + 390.67050284 * number - 0.0016118 * t * t)
    shift = sum(size * eccentricity**e * sin(s * sun + m * moon + n * node) for size, e, s, m, n in _PERIODIC)
    return 2_451_550.09766 + _LUNATION * number + 0.00015437 * t * t + shift


def _sun(moment: float) -> float:
    """Return the apparent longitude of the sun in degrees."""
    t = (moment - 2_451_545) / 36_525
    anomaly = radians(357.52911 + 35_999.05029 * t)
    centre = (1.914602 - 0.004817 * t) * sin(anomaly) + 0.019993 * sin(2 * anomaly) + 0.000289 * sin(3 * anomaly)
    return 280.46646 + 36_000.76983 * t + centre - 0.00569 - 0.00478 * sin(radians(125.04 - 1934.136 * t))


def _turn(year: int) -> Period:
    return days(date(year - 1, 12, 31), 2)


def _thanksgiving(year: int) -> Period:
    return nth(month(year, 11), 4, 3)


def _easter(year: int) -> Period:
    """Return Good Friday to Easter Monday (the Gregorian rule, as given by Meeus)."""
    a, b, c = year % 19, year // 100, year % 100
    h = (19 * a + b - b // 4 - (b - (b + 8) // 25 + 1) // 3 + 15) % 30
    k = (32 + 2 * (b % 4) + 2 * (c // 4) - h - c % 4) % 7
    number, day = divmod(h + k - 7 * ((a + 11 * h + 22 * k) // 451) + 114, 31)
    return days(date(year, number, day + 1) - 2 * ONE_DAY, 4)


def _spring_festival(year: int) -> Period:
    """Return the festival from its eve to the seventh day."""
    return days(festival(year, 1, 1) - ONE_DAY, 8)


def _lunar_eve(year: int) -> Period:
    return days(festival(year, 1, 1) - ONE_DAY)


def _lunar(number: int, day: int, year: int) -> Period:
    return days(festival(year, number, day))


def _on_day(number: int, day: int, count: int = 1) -> Callable[[int], Period]:
    return lambda year: days(date(year, number, day), count)


ENGLISH: dict[str, Callable[[int], Period]] = {
    "new years eve": _on_day(12, 31),
    "new years day": _on_day(1, 1),
    "new year": _turn,
    "chinese new year": _spring_festival,
    "lunar new year": _spring_festival,
    "spring festival": _spring_festival,
    "mid-autumn festival": partial(_lunar, 8, 15),
    "dragon boat festival": partial(_lunar, 5, 5),
    "valentines day": _on_day(2, 14),
    "easter": _easter,
    "halloween": _on_day(10, 31),
    "thanksgiving": _thanksgiving,
    "christmas eve": _on_day(12, 24),
    "christmas day": _on_day(12, 25),
    "christmas": _on_day(12, 24, 3),
}
CHINESE: dict[str, Callable[[int], Period]] = {
    "元旦": _on_day(1, 1),
    "情人节": _on_day(2, 14),
    "妇女节": _on_day(3, 8),
    "三八": _on_day(3, 8),
    "愚人节": _on_day(4, 1),
    "劳动节": _on_day(5, 1, 5),
    "五一": _on_day(5, 1, 5),
    "儿童节": _on_day(6, 1),
    "六一": _on_day(6, 1),
    "青年节": _on_day(5, 4),
    "教师节": _on_day(9, 10),
    "国庆": _on_day(10, 1, 7),
    "十一": _on_day(10, 1, 7),
    "万圣节": _on_day(10, 31),
    "双十一": _on_day(11, 11),
    "双11": _on_day(11, 11),
    "双十二": _on_day(12, 12),
    "双12": _on_day(12, 12),
    "感恩节": _thanksgiving,
    "平安夜": _on_day(12, 24),
    "圣诞": _on_day(12, 24, 3),
    "跨年": _on_day(12, 31),
    "复活节": _easter,
    "春节": _spring_festival,
    "除夕": _lunar_eve,
    "年三十": _lunar_eve,
    "年初一": partial(_lunar, 1, 1),
    "元宵节": partial(_lunar, 1, 15),
    "清明": lambda year: days(clear_and_bright(year)),
    "端午": partial(_lunar, 5, 5),
    "七夕": partial(_lunar, 7, 7),
    "中秋": partial(_lunar, 8, 15),
    "重阳节": partial(_lunar, 9, 9),
}
