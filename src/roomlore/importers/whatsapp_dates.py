"""The date and time before a WhatsApp message, in whatever order and notation the phone's language has."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time
from itertools import pairwise

MARKS = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
_BLANKS = str.maketrans({"\u202f": " ", "\u00a0": " ", "\u2009": " ", **dict.fromkeys(MARKS)})

_DATE = (
    r"(?:(?P<zh>\d{4}年\d{1,2}月\d{1,2}日)|(?P<a>\d{1,4})(?P<mark>[./-]) ?(?P<b>\d{1,2})(?P=mark) ?(?P<c>\d{1,4})\.?)"
)
_HALF = r"上午|下午|凌晨|清晨|早上|中午|晚上|午前|午後|오전|오후"
_CLOCK = (
    rf"(?:(?P<before>{_HALF}) ?)?(?P<hour>\d{{1,2}})[:.](?P<minute>\d\d)(?:[:.](?P<second>\d\d))?"
    r"(?: ?(?P<after>[AaPp]\. ?[Mm]\.|[AaPp][Mm]))?"
)
_BETWEEN = r"[,،]? *(?:(?:klo|um|à|at|kl\.?|a las|alle|às|星期.|週.|周.) *)?"
_STAMP = rf"{_DATE}{_BETWEEN}{_CLOCK}"
_HEADER = re.compile(rf"(?:\[{_STAMP}\] ?|{_STAMP.replace('?P<', '?P<_').replace('?P=', '?P=_')} [-–] )")
_LONGEST = 60
_AFTERNOON = ("下午", "晚上", "午後", "오후")
_ORDERS = ("dmy", "mdy", "ymd")


@dataclass(frozen=True, slots=True)
class Stamp:
    """What stands before a message: the date's three numbers as written, and the time. `length` in characters of the
    line. `uppercase`: AM or PM in capitals. `padded`: 01/02 rather than 1/2."""

    numbers: tuple[int, int, int]
    mark: str
    hour: int
    minute: int
    second: int
    uppercase: bool
    padded: bool
    length: int

    def at(self, order: str) -> datetime | None:
        """The local time with the date read in this order, or in another if that is impossible; None: impossible."""
        day = next((day for one in (order, *_ORDERS) if (day := self.day(one))), None)
        if day is None or self.hour > 23 or self.minute > 59:
            return None
        return datetime.combine(day, time(self.hour, self.minute, min(self.second, 59)))

    def day(self, order: str) -> date | None:
        if self.numbers[0] > 999:
            order = "ymd"
        year, month, day = (self.numbers[order.index(part)] for part in "ymd")
        try:
            return date(year + 2000 if year < 100 else year, month, day)
        except ValueError:
            return None


def read_stamp(line: str) -> Stamp | None:
    """The stamp a line begins with, None where it begins with none."""
    first = line[:1]
    if not (first.isdecimal() or first == "[" or first in MARKS):
        return None
    head = line[:_LONGEST].translate(_BLANKS)
    match = _HEADER.match(head)
    if match is None:
        return None
    parts = {key.removeprefix("_"): value for key, value in match.groupdict().items() if value is not None}
    return _stamp(parts, _raw_length(line, match.end()))


def _raw_length(line: str, length: int) -> int:
    """Characters of the line that make up this many once the direction marks are gone."""
    taken = 0
    for place, character in enumerate(line):
        if taken == length:
            return place
        taken += character not in MARKS
    return len(line)


def _stamp(parts: dict[str, str], length: int) -> Stamp:
    after = parts.get("after", "")
    written = re.findall(r"\d+", parts["zh"]) if "zh" in parts else [parts["a"], parts["b"], parts["c"]]
    return Stamp(
        numbers=(int(written[0]), int(written[1]), int(written[2])),
        mark=parts.get("mark", "年"),
        hour=_hour(int(parts["hour"]), parts.get("before", ""), after.lower()[:1]),
        minute=int(parts["minute"]),
        second=int(parts.get("second", "0")),
        uppercase=after[:1] in ("A", "P"),
        padded=len(written[0]) > 1 and len(written[1]) > 1,
        length=length,
    )


def _hour(hour: int, before: str, after: str) -> int:
    if hour > 12 or not (before or after):
        return hour
    if before == "中午":
        return hour + 12 if hour < 11 else hour
    return hour % 12 + (12 if after == "p" or before in _AFTERNOON else 0)


def decide_order(stamps: Iterable[Stamp]) -> str:
    """ "dmy", "mdy" or "ymd": the order with the fewest impossible dates, then the fewest steps back, then by habit."""
    seen = list(stamps)
    american = bool(seen) and seen[0].mark == "/" and seen[0].uppercase and not all(one.padded for one in seen)
    habit = ("mdy", "dmy", "ymd") if american else _ORDERS
    return min(habit, key=lambda order: _strangeness(seen, order))


def _strangeness(stamps: list[Stamp], order: str) -> tuple[int, int, int]:
    """(impossible dates, steps back, how far apart the dates lie in powers of eight)"""
    days = [day.toordinal() for one in stamps if (day := one.day(order))]
    steps = [later - earlier for earlier, later in pairwise(days)]
    way = sum(map(abs, steps))
    return len(stamps) - len(days), sum(step < 0 for step in steps), int(math.log(way + 1, 8))
