"""The date and time before a message of WhatsApp, in the notation, digits and calendar of the phone."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cache, lru_cache
from itertools import pairwise

from roomlore.core.patterns import lazy_pattern
from roomlore_importers.whatsapp_words import MARKS, letters, stamp_words

_BLANKS = {"\u202f": " ", "\u00a0": " ", "\u2009": " ", **dict.fromkeys(MARKS)}
_LONGEST = 60
_LONGEST_LEAD = 12
_ORDERS = ("dmy", "mdy", "ymd")


class _Plain(dict[int, str | int | None]):
    """For `str.translate`: digits of any script become ASCII, blanks of any width become spaces, marks vanish."""

    def __missing__(self, code: int) -> str | int | None:
        character = chr(code)
        digit = not character.isascii() and character.isdecimal()
        self[code] = str(int(character)) if digit else _BLANKS.get(character, code)
        return self[code]


_PLAIN = _Plain()
_OF_DATE = r" ?[./\-‐–年月년월] ?"
_OF_TIME = r"(?:[:.٫]| ?(?:h|min|hodź\.?|時|时|點|点|分|시|분|སྐར་མ་) ?)"
_DATE = (
    rf"(?P<a>\d{{1,4}})(?P<mark>{_OF_DATE})(?P<b>\d{{1,2}})(?:{_OF_DATE})(?P<era>[^\W\d_]{{0,8}})(?P<c>\d{{1,4}})"
    r"(?P<dot>[.日일]*)"
)
_TIME = rf"(?P<hour>\d{{1,2}}){_OF_TIME}(?P<minute>\d\d|(?<=:)\d(?!\d))(?:{_OF_TIME}(?P<second>\d{{1,2}}))?(?![\d/])"
_BEGIN, _BETWEEN, _TAIL = r"(?P<open>\[)?(?P<lead>[^\d\[\]\n]{0,12})", r"[^\d\[\]:/\n]", r"[^\d\[\],:\n]{0,16}?"
_END = r"(?(open)\] ?|(?: [-–] |(?P<colon>: )))"
_DATE_FIRST = lazy_pattern(rf"{_BEGIN}{_DATE}(?P<between>{_BETWEEN}{{1,24}}?){_TIME}(?P<tail>{_TAIL}){_END}")
"""A date and a time with a half of the day before or behind it, in brackets or before a hyphen or a colon."""
_TIME_FIRST = lazy_pattern(rf"{_BEGIN}{_TIME}(?P<between>{_BETWEEN}{{1,24}}?){_DATE}(?P<tail>{_TAIL}){_END}")
"""The same with the time before the date, as in Vietnamese."""
_NAMED = lazy_pattern(r"[^:\n]{1,25}: ")
"""A name before a text."""
_ERAS = ("ap", "ah")
"""Words of Persian and Islamic years, which elsewhere mean a half of the day behind the time."""
_WEEKDAY = lazy_pattern(r"(?:星期|週|周|\()[日天一二三四五六月火水木金土]\)?")
"""A day of the week between date and time."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """The date and time before a message: the date's three numbers as written, and the time. `length` in characters of
    the line. `era`: what to add to the year, if the stamp names one. `first`: the order of the numbers that this form
    suggests. `bracketed`: True in an iPhone's export, and `marked` if a mark stands before the brackets, as it does
    before media."""

    numbers: tuple[int, int, int]
    hour: int
    minute: int
    second: int
    length: int
    era: int | None = None
    first: str = "dmy"
    bracketed: bool = False
    marked: bool = False

    def at(self, order: str) -> datetime | None:
        """Return the local time with the date read in this order, or in another if that is impossible; None if all
        are."""
        day = next((day for candidate in (order, *_ORDERS) if (day := self.day(candidate))), None)
        if day is None or self.hour > 23 or self.minute > 59:
            return None
        return datetime.combine(day, time(self.hour, self.minute, min(self.second, 59)))

    def day(self, order: str) -> date | None:
        if self.numbers[0] > 99:
            order = "ymd"
        year, month, day = (self.numbers[order.index(part)] for part in "ymd")
        try:
            return _in_calendar(year, month, day) if self.era is None else date(year + self.era, month, day)
        except (ValueError, OverflowError):
            return None


def read_stamp(line: str) -> Stamp | None:
    """Return the stamp at the start of a line, None if there is none."""
    first = line[:1]
    if not (first.isdecimal() or first == "[" or any(map(str.isdecimal, line[:_LONGEST_LEAD]))):
        return None
    head = line[:_LONGEST].translate(_PLAIN)
    match = _DATE_FIRST.match(head) or _TIME_FIRST.match(head)
    if match is None:
        return None
    parts = {name: value or "" for name, value in match.groupdict().items()}
    between = _WEEKDAY.sub("", parts["between"])
    beside = ["" if letters(piece) in _ERAS else piece for piece in (parts["lead"], parts["era"], between)]
    meanings = [_meaning(piece) for piece in (*beside, parts["tail"])]
    # A stranger's words may stand in brackets only, and a colon behind hours and minutes is followed by a name.
    if not parts["open"] and None in meanings:
        return None
    if parts["colon"] and not (parts["second"] or _NAMED.match(head, match.end())):
        return None
    known = [meaning for meaning in meanings if meaning is not None]
    hours = next((meaning.hours for meaning in known if meaning.hours), None)
    return Stamp(
        numbers=(int(parts["a"]), int(parts["b"]), int(parts["c"])),
        hour=_hour(int(parts["hour"]), hours),
        minute=int(parts["minute"]),
        second=int(parts["second"] or 0),
        length=_raw_length(line, match.end()),
        era=next((meaning.era for meaning in known if meaning.era), None),
        first=_first_order(parts, line),
        bracketed=bool(parts["open"]),
        marked=bool(parts["open"]) and first in "\u200e\u200f",
    )


def _raw_length(line: str, length: int) -> int:
    """Return how many characters of the line, with direction marks, make up this length without them."""
    taken = 0
    for place, character in enumerate(line):
        if taken == length:
            return place
        taken += character not in MARKS
    return len(line)


@dataclass(frozen=True, slots=True)
class _Meaning:
    """The meaning of words in a stamp. `hours`: the first and last hour that a word of the day marks."""

    hours: tuple[int, int] | None = None
    era: int | None = None


@cache
def _meanings() -> dict[str, _Meaning]:
    words = stamp_words()
    meanings = {
        **dict.fromkeys(["", *words["between"]], _Meaning()),
        **{word: _Meaning(era=years) for word, years in words["eras"].items()},
        **dict.fromkeys(words["am"], _Meaning((0, 11))),
        **dict.fromkeys(words["pm"], _Meaning((12, 23))),
        **{word: _Meaning((hours[0], hours[1])) for word, hours in words["hours"].items()},
    }
    return {letters(word): meaning for word, meaning in meanings.items()}


@lru_cache(maxsize=1 << 10)
def _meaning(piece: str) -> _Meaning | None:
    """Return the meaning of what stands beside the numbers, of one word or two; None if a word is unknown."""
    word, known = letters(piece), _meanings()
    for place in range(len(word) + 1):
        first, second = known.get(word[:place]), known.get(word[place:])
        if first is not None and second is not None:
            return first if first != _Meaning() else second
    return None


def _hour(hour: int, hours: tuple[int, int] | None) -> int:
    """Return the hour of the day: of the two that a clock of twelve hours may mean, the one within these or nearer to
    them. Some phones call midnight 24."""
    if hour > 12 or hours is None:
        return 0 if hour == 24 else hour
    return min((hour % 12, hour % 12 + 12), key=lambda candidate: _distance(candidate, hours))


def _distance(hour: int, hours: tuple[int, int]) -> int:
    first, last = hours
    inside = first <= hour <= last if first <= last else hour >= first or hour <= last
    return 0 if inside else min((first - hour) % 24, (hour - last) % 24)


def _first_order(parts: dict[str, str], line: str) -> str:
    """Return the order of the numbers that a form suggests: of the United States by its slashes, capitals and figures
    without zeros; with the year first by its signs, or by a point behind each number, as in Korean."""
    if parts["mark"].strip() in "年년" or (parts["dot"] and parts["mark"] == ". " and len(parts["c"]) < 3):
        return "ymd"
    american = parts["mark"] == "/" and letters(parts["tail"]) in ("am", "pm") and parts["tail"].strip()[:1].isupper()
    padded = (len(parts["a"]) > 1 and len(parts["b"]) > 1) or parts["hour"].startswith("0")
    return "mdy" if american and not padded and line[:_LONGEST_LEAD].isascii() else "dmy"


def decide_order(stamps: Iterable[Stamp]) -> str:
    """Return "dmy", "mdy" or "ymd": the order with the fewest impossible dates, then the fewest steps back, then the
    one that the form of the first stamp suggests."""
    seen = list(stamps)
    habit = dict.fromkeys((seen[0].first if seen else "dmy", *_ORDERS))
    return min(habit, key=lambda order: _implausibility(seen, order))


_FIRST_YEAR, _LAST_YEAR = 2009, 2060
"""Years in which people write in WhatsApp; dates of other years are hardly right."""


def _implausibility(stamps: list[Stamp], order: str) -> tuple[int, int, int]:
    """Return (impossible dates, steps back, how far apart the dates lie in powers of eight)."""
    dates = [day for stamp in stamps if (day := stamp.day(order))]
    days = [day.toordinal() for day in dates if _FIRST_YEAR <= day.year <= _LAST_YEAR]
    steps = [later - earlier for earlier, later in pairwise(days)]
    way = sum(map(abs, steps))
    return len(stamps) - len(days), sum(step < 0 for step in steps), int(math.log(way + 1, 8))


_THAI, _CHINESE = 543, 1911
"""The years between other eras and ours."""


def _in_calendar(year: int, month: int, day: int) -> date:
    """Return a date of the calendar to which a year of this size belongs: a phone writes years of 2009 and later, so
    those of the Thai, Persian, Islamic and Chinese calendars can be told apart, Thai years by two digits too. Raise
    `ValueError` if there is no such day."""
    if year < 100:
        return date(year + (2000 if year < 52 else 2500 - _THAI), month, day)
    if year < 200:
        return date(year + _CHINESE, month, day)
    if 1300 <= year < 1430:
        return _persian(year, month, day)
    if 1430 <= year < 1430 + len(_months_of_umm_al_qura()):
        return _islamic(year, month, day)
    return date(year - _THAI if 2400 <= year < 2700 else year, month, day)


def _persian(year: int, month: int, day: int) -> date:
    """Return a date of the Persian calendar: six months of 31 days, five of 30, and 29 or, in eight years of 33, 30."""
    leap = (year * 8 + 29) % 33 < 8
    if not (1 <= month <= 12 and 1 <= day <= (31 if month < 7 else 30 if month < 12 or leap else 29)):
        raise ValueError(day)
    before = 365 * (year - 1) + (year * 8 + 21) // 33 + (month - 1) * 31 - max(0, month - 7)
    return date.fromordinal(before + day + 226894)


@cache
def _months_of_umm_al_qura() -> list[int]:
    """Return for each year from 1430 on twelve bits, set for months of 30 days, the first month in the highest."""
    return [int(months, 16) for months in stamp_words()["umm_al_qura"].split()]


def _islamic(year: int, month: int, day: int) -> date:
    lengths = [29 + (months >> 11 - place & 1) for months in _months_of_umm_al_qura() for place in range(12)]
    place = (year - 1430) * 12 + month - 1
    if not (1 <= month <= 12 and 1 <= day <= lengths[place]):
        raise ValueError(day)
    return date(2008, 12, 28) + timedelta(days=sum(lengths[:place]) + day)
