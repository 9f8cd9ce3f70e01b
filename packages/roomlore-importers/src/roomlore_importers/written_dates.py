"""Dates and times of day in words, as apps write them in the language of the phone or computer."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time

from roomlore.core.patterns import lazy_pattern

# The beginnings of the words for the days of the week, from Monday on, and for the months; the longest one counts.
_WEEKDAYS = (
    "mon lun seg sen isn ma mo 月 월 一 จ пн пон pzt pazartesi hai الاثنين",
    "tue di mar ter sel 火 화 二 อ вт sal ba الثلاثاء",
    "wed mi mer mié qua rab wo 水 수 三 พ ср çar tư الأربعاء",
    "thu do jeu jue gio qui kam kha 木 목 四 พฤ чт чет per năm الخميس",
    "fri fr ven vie sex jum vr 金 금 五 ศ пт пят cum sáu الجمعة",
    "sat sa sam sáb sab za 土 토 六 ส เส сб суб cmt cumartesi bảy السبت",
    "sun so dim dom min aha zo 日 일 อา вс вос paz cn chủ الأحد",
)
_MONTHS = (
    "jan ene gen янв oca ม.ค มกร", "feb fév fev фев şub ก.พ กุม", "mar mär mrt мар มี.ค มีน",
    "apr abr avr апр nis เม.ย เมษ", "may mai mag mei мая май พ.ค พฤษภ", "jun juin giu июн haz มิ.ย มิถ",
    "jul juil lug июл tem ก.ค กรก",
    "aug ago aoû agu авг ağu ส.ค สิง", "sep set сен eyl ก.ย กัน", "oct okt out ott окт eki ต.ค ตุล",
    "nov ноя kas พ.ย พฤศ", "dec déc dic dez des дек ara ธ.ค ธัน",
)  # fmt: skip
_JOINERS = ("at", "um", "à", "a", "las", "alle", "às", "de", "del", "di", "of", "om", "kl", "klo", "o", "den", "thứ")
"""Words of a date that mean nothing by themselves."""
_HALVES = r"上午|下午|凌晨|清晨|早上|中午|晚上|午前|午後|오전|오후|ก่อนเที่ยง|หลังเที่ยง"
_AFTERNOON = ("下午", "晚上", "午後", "오후", "หลังเที่ยง")
CLOCK = (
    rf"(?:(?P<before>{_HALVES}) ?)?(?P<hour>\d{{1,2}})[:.](?P<minute>\d\d)(?:[:.](?P<second>\d\d))?"
    r"(?: ?(?P<after>[AaPp]\.? ?[Mm](?![^\W\d_])\.?))?(?: ?น\.)?"
)
"""A time of day as a part of a pattern; `clock_time` reads what it matches."""
_CLOCK = lazy_pattern(rf"(?:^|[\s,]){CLOCK}(?!\d)")
"""A time of day behind a date."""
_UNITS = lazy_pattern(r"(?<=\d)\s?(?:[年년月월日일]|(?:st|nd|rd|th)\b)")
"""What some languages write behind the numbers of a date."""
_PART = lazy_pattern(r"(?P<number>\d{1,4})|(?P<word>[^\W\d_][^\d\s,/()（）-]*)|(?P<other>[^\s,./()（）-])")
"""A number, a word or anything else that is no punctuation of a date."""
_MARKS = str.maketrans({"\u202f": " ", "\u00a0": " ", **dict.fromkeys("\u200e\u200f\u202a\u202c\ufeff")})
_WEEKDAY_HEADS = ("星期", "禮拜", "週", "周", "วัน")
_LONGEST = 60
_MOST_WORDS = 2
_BUDDHIST = 543
"""Years by which the calendar of Thailand is ahead."""


def _table(rows: Sequence[str]) -> dict[str, int]:
    return {begin: number for number, row in enumerate(rows) for begin in row.split()}


_WEEKDAY_OF, _MONTH_OF = _table(_WEEKDAYS), _table(_MONTHS)


def _named(word: str, table: dict[str, int]) -> int | None:
    lengths = range(len(word), 0, -1)
    return next((table[word[:length]] for length in lengths if word[:length] in table), None)


@dataclass(frozen=True, slots=True)
class Day:
    """A date as written. `numbers`: in the written order, with the month in it; `order`: "ymd", "dmy", "mdy" or "" if
    the numbers do not tell. `weekday`: 0 for Monday, None if no known one is there. `words`: how many other words."""

    numbers: tuple[int, int, int]
    order: str
    weekday: int | None
    words: int

    def day(self, *, month_first: bool = False) -> date | None:
        """Return the date; the day of the week tells day and month apart, else `month_first` does."""
        if self.order:
            return _date(self.numbers, self.order)
        fitting = [day for order in ("dmy", "mdy") if (day := _date(self.numbers, order))]
        told = [day for day in fitting if day.weekday() == self.weekday] or fitting
        return told[-1 if month_first else 0] if told else None


def _date(numbers: tuple[int, int, int], order: str) -> date | None:
    year, month, day = (numbers[order.index(part)] for part in "ymd")
    try:
        return date(year - _BUDDHIST if year > 2400 else year, month, day)
    except ValueError:
        return None


def month_first(days: Iterable[Day]) -> bool:
    """Return True if most of the days whose weekday tells day and month apart have the month in front."""
    votes = 0
    for written in days:
        first, second = _date(written.numbers, "mdy"), _date(written.numbers, "dmy")
        if not written.order and first != second:
            votes += (first is not None and first.weekday() == written.weekday) or second is None
            votes -= (second is not None and second.weekday() == written.weekday) or first is None
    return votes > 0


def read_day(text: str) -> Day | None:
    """Return the date of a text that is nothing but a date, None if it is anything else."""
    plain = text.translate(_MARKS).strip("- ")
    if len(plain) > _LONGEST or not any(map(str.isdigit, plain)):
        return None
    parts = list(_PART.finditer(_UNITS.sub(" ", plain)))
    words = [word for part in parts if (word := _word(part)) and word not in _JOINERS]
    numbers = [int(part["number"]) for part in parts if part["number"]]
    if any(part["other"] for part in parts) or len(words) > _MOST_WORDS:
        return None
    month = _month(words) if len(numbers) == 2 else None
    if month is None:
        return _day(numbers, "", words) if len(numbers) == 3 else None
    place = sum(1 for part in parts[: [_word(part) for part in parts].index(month)] if part["number"])
    numbers.insert(place, (_named(month, _MONTH_OF) or 0) + 1)
    return _day(numbers, "mdy" if place == 0 else "dmy", [word for word in words if word != month])


def _word(part: re.Match[str]) -> str:
    return (part["word"] or "").casefold().rstrip(".")


def _month(words: list[str]) -> str | None:
    """Return the word that is a month: one that begins like a weekday too, such as "Mar", only if no other is one."""
    months = [word for word in words if len(word) > 2 and _named(word, _MONTH_OF) is not None]
    return next((word for word in months if _named(word, _WEEKDAY_OF) is None), months[-1] if months else None)


def _day(numbers: list[int], order: str, words: list[str]) -> Day | None:
    if numbers[0] > 999:
        order = "ymd"
    elif numbers[2] < 1000:
        return None
    weekdays = (_named(_without_head(word), _WEEKDAY_OF) for word in words)
    weekday = next((found for found in weekdays if found is not None), None)
    return Day((numbers[0], numbers[1], numbers[2]), order, weekday, len(words))


def _without_head(word: str) -> str:
    for head in _WEEKDAY_HEADS:
        word = word.removeprefix(head)
    return word


def clock_time(match: re.Match[str]) -> time | None:
    """Return the time of day that a match of `CLOCK` has, None for an impossible one."""
    hour, minute, second = int(match["hour"]), int(match["minute"]), int(match["second"] or 0)
    before, after = match["before"] or "", (match["after"] or "").lower()
    if hour <= 12 and before == "中午":
        hour = hour + 12 if hour < 11 else hour
    elif hour <= 12 and (before or after):
        hour = hour % 12 + (12 if after.startswith("p") or before in _AFTERNOON else 0)
    return time(hour, minute, min(second, 59)) if hour < 24 and minute < 60 else None


def read_moment(text: str) -> datetime | None:
    """Return the date and time of a text such as "February 10, 2016 at 2:33 AM", without the zone behind it."""
    plain = text.translate(_MARKS)
    clocks = list(_CLOCK.finditer(plain[:_LONGEST]))
    written = read_day(plain[: clocks[-1].start()]) if clocks else None
    day, at = written.day() if written else None, clock_time(clocks[-1]) if clocks else None
    return datetime.combine(day, at) if day and at else None
