"""Holidays that a rule gives: fixed days, weekdays of a month, Easter and the festivals of the Chinese calendar."""

from collections.abc import Callable
from datetime import date, datetime
from functools import partial

from roomlore.core.when.lunar import clear_and_bright, festival
from roomlore.core.when.periods import ONE_DAY, Period, again, days, latest, month, nth


def latest_unless_near(make: Callable[[int], Period], now: datetime) -> Period | None:
    """The last that has begun. None where the next is less than 30 days off, since either may be meant then."""
    found = latest(make, now)
    return None if again(found, 1).start - now < 30 * ONE_DAY else found


def _fixed(number: int, day: int, count: int, year: int) -> Period:
    return days(date(year, number, day), count)


def _turn(year: int) -> Period:
    return days(date(year - 1, 12, 31), 2)


def _thanksgiving(year: int) -> Period:
    return nth(month(year, 11), 4, 3)


def _easter(year: int) -> Period:
    """Good Friday to Easter Monday (the Gregorian rule, as Meeus gives it)."""
    a, b, c = year % 19, year // 100, year % 100
    h = (19 * a + b - b // 4 - (b - (b + 8) // 25 + 1) // 3 + 15) % 30
    k = (32 + 2 * (b % 4) + 2 * (c // 4) - h - c % 4) % 7
    number, day = divmod(h + k - 7 * ((a + 11 * h + 22 * k) // 451) + 114, 31)
    return days(date(year, number, day + 1) - 2 * ONE_DAY, 4)


def _spring_festival(year: int) -> Period:
    """From the eve to the seventh day."""
    return days(festival(year, 1, 1) - ONE_DAY, 8)


def _eve(year: int) -> Period:
    return days(festival(year, 1, 1) - ONE_DAY)


def _lunar(number: int, day: int, year: int) -> Period:
    return days(festival(year, number, day))


def _qingming(year: int) -> Period:
    return days(clear_and_bright(year))


def _on(number: int, day: int, count: int = 1) -> Callable[[int], Period]:
    return partial(_fixed, number, day, count)


ENGLISH: dict[str, Callable[[int], Period]] = {
    "new years eve": _on(12, 31),
    "new years day": _on(1, 1),
    "new year": _turn,
    "chinese new year": _spring_festival,
    "lunar new year": _spring_festival,
    "spring festival": _spring_festival,
    "mid-autumn festival": partial(_lunar, 8, 15),
    "dragon boat festival": partial(_lunar, 5, 5),
    "valentines day": _on(2, 14),
    "easter": _easter,
    "halloween": _on(10, 31),
    "thanksgiving": _thanksgiving,
    "christmas eve": _on(12, 24),
    "christmas day": _on(12, 25),
    "christmas": _on(12, 24, 3),
}
CHINESE: dict[str, Callable[[int], Period]] = {
    "元旦": _on(1, 1),
    "情人节": _on(2, 14),
    "妇女节": _on(3, 8),
    "三八": _on(3, 8),
    "愚人节": _on(4, 1),
    "劳动节": _on(5, 1, 5),
    "五一": _on(5, 1, 5),
    "儿童节": _on(6, 1),
    "六一": _on(6, 1),
    "青年节": _on(5, 4),
    "教师节": _on(9, 10),
    "国庆": _on(10, 1, 7),
    "十一": _on(10, 1, 7),
    "万圣节": _on(10, 31),
    "双十一": _on(11, 11),
    "双11": _on(11, 11),
    "双十二": _on(12, 12),
    "双12": _on(12, 12),
    "感恩节": _thanksgiving,
    "平安夜": _on(12, 24),
    "圣诞": _on(12, 24, 3),
    "跨年": _on(12, 31),
    "复活节": _easter,
    "春节": _spring_festival,
    "除夕": _eve,
    "年三十": _eve,
    "年初一": partial(_lunar, 1, 1),
    "元宵节": partial(_lunar, 1, 15),
    "清明": _qingming,
    "端午": partial(_lunar, 5, 5),
    "七夕": partial(_lunar, 7, 7),
    "中秋": partial(_lunar, 8, 15),
    "重阳节": partial(_lunar, 9, 9),
}
