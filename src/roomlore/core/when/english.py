"""Times in English and in figures: the rules that read on from where one may begin."""

import re
from collections.abc import Callable
from datetime import date

from roomlore.core.when import english_words as words
from roomlore.core.when.holidays import ENGLISH as HOLIDAYS
from roomlore.core.when.holidays import latest_unless_near
from roomlore.core.when.periods import (
    ONE_DAY,
    Period,
    ago,
    current,
    days,
    later,
    latest,
    latest_over,
    latest_weekday,
    month,
    months,
    next_one,
    part,
    past,
    quarter,
    season,
    week,
    weekend,
    year,
)
from roomlore.core.when.rules import Asked, Build, Rule, preceded

_UNITS = {"min": "minute", "hr": "hour", "yr": "year"}
_VAGUE = {"couple": (2.0, 3.0), "few": (2.0, 7.0), "several": (2.0, 7.0), "half": (0.5, 0.5)}
_STEPS = {"last": -1, "previous": -1, "past": -1, "this past": -1, "this": 0, "next": 1, "coming": 1, "this coming": 1}
Maker = Callable[[int], Period]


def counted(match: re.Match[str]) -> tuple[float, float, str]:
    """The least and the greatest number of units meant, and the unit."""
    word, unit = match["count"], _UNITS.get(match["unit"], match["unit"])
    low, high = next((range_ for key, range_ in _VAGUE.items() if key in word), (_number(word), _number(word)))
    if match.groupdict().get("low"):
        low = min(high, _number(match["low"]))
    return (2 * low, 2 * high, "week") if unit == "fortnight" else (low, high, unit)


def _number(word: str) -> float:
    if word.isdigit():
        return float(word)
    return words.NUMBERS.index(word) + 1.0 if word in words.NUMBERS else 1.0


def weekday_number(word: str) -> int:
    return words.WEEKDAYS.index(word[:3])


def _month_number(match: re.Match[str]) -> int:
    return words.MONTHS.index(match["month"][:3]) + 1


def _capital(match: re.Match[str], group: str, asked: Asked) -> bool:
    """Written with a capital letter that is not the first of the question's."""
    return bool(match.start(group)) and asked.written[match.start(group)].isupper()


def _chosen_year(match: re.Match[str], asked: Asked) -> int | None:
    word = match["year"]
    if not word:
        return None
    return int(word) if word.isdigit() else asked.now.year + _STEPS[word.split()[0]]


def _yearly(make: Maker, match: re.Match[str], asked: Asked) -> Period:
    """The one of the year named, or the latest."""
    chosen = _chosen_year(match, asked)
    return latest(make, asked.now) if chosen is None else make(chosen)


def _which_one(make: Maker, match: re.Match[str], asked: Asked) -> Period:
    """The last, this or the next of what comes every year."""
    return (current, next_one, latest_over)[_STEPS[match["which"]]](make, asked.now)


def _monthly(match: re.Match[str]) -> Maker:
    return lambda y: month(y, _month_number(match))


def _seasonal(match: re.Match[str]) -> Maker:
    name = match["season"]
    return lambda y: season(y, "autumn" if name == "fall" else name)


def _festive(match: re.Match[str]) -> Maker:
    return HOLIDAYS[match["holiday"].replace("'", "")]


def _date(match: re.Match[str], asked: Asked) -> Period | None:
    number, first, last = _month_number(match), int(match["day"]), int(match["last"] or match["day"])
    if last < first or not _is_date(match, asked):
        return None
    count = last - first + 1
    return _yearly(lambda y: days(date(y, number, first), count, "day" if count == 1 else "stretch"), match, asked)


def _is_date(match: re.Match[str], asked: Asked) -> bool:
    """Whether "may" or "march" beside a number is no verb."""
    if match["month"] not in ("may", "march", "mar") or match["year"] or match["suffix"]:
        return True
    if _capital(match, "month", asked) or words.LONE.match(asked.text, match.end()):
        return True
    return preceded(words.ON_DATE, asked, match.start()) is not None


def _month(match: re.Match[str], asked: Asked) -> Period | None:
    return _yearly(_monthly(match), match, asked) if match["year"] or _is_month(match, asked) else None


def _is_month(match: re.Match[str], asked: Asked) -> bool:
    """Whether a month's name alone is one."""
    if match["month"] in words.SURE_MONTHS or preceded(words.IN, asked, match.start()):
        return True
    if preceded(words.AROUND, asked, match.start()):
        return words.LONE.match(asked.text, match.end()) is not None
    return bool(preceded(words.FROM, asked, match.start()) and words.RANGE_GOES_ON.match(asked.text, match.end()))


def _iso(match: re.Match[str], asked: Asked) -> Period | None:
    if match["mark"] == "." and preceded(words.VERSION, asked, match.start()):
        return None
    return days(date(int(match["year"]), int(match["month"]), int(match["day"])))


def _day_first(match: re.Match[str], asked: Asked) -> Period | None:
    """Dots stand for day.month.year. Strokes may be either: only what can be read in one way is."""
    a, b, number = int(match["a"]), int(match["b"]), int(match["year"])
    if b > 12:
        return days(date(number, a, b))
    return days(date(number, b, a)) if match["mark"] == "." or a > 12 or a == b else None


def _year_month(match: re.Match[str], asked: Asked) -> Period:
    return month(int(match["year"]), int(match["month"]))


def _years(match: re.Match[str], asked: Asked) -> Period | None:
    count = int(match["last"]) - int(match["first"]) + 1
    if count < 2 or not preceded(words.IN_YEAR, asked, match.start()):
        return None
    return months(date(int(match["first"]), 1, 1), 12 * count, "stretch")


def _year(match: re.Match[str], asked: Asked) -> Period | None:
    named = preceded(words.IN_YEAR, asked, match.start()) and not words.COUNTED.match(asked.text, match.end())
    return year(int(match["year"])) if named else None


def _decade(match: re.Match[str], asked: Asked) -> Period:
    return months(date(int(match["year"]), 1, 1), 120, "stretch")


def _ago(match: re.Match[str], asked: Asked) -> Period:
    return ago(asked.now, *counted(match))


def _past(match: re.Match[str], asked: Asked) -> Period:
    _, high, unit = counted(match)
    return past(asked.now, high, unit)


def _which_unit(match: re.Match[str], asked: Asked) -> Period | None:
    """ "last week" is the calendar's, "the last week" and "the past week" are seven days up to now."""
    steps, unit, today = _STEPS[match["which"]], match["unit"], asked.now.date()
    rolling = "past" in match["which"] or (match["which"] == "last" and preceded(words.THE, asked, match.start()))
    if rolling and unit in ("hour", "week", "month", "year"):
        return past(asked.now, 1, unit)
    if unit in ("week", "weekend"):
        return (week if unit == "week" else weekend)(today + 7 * steps * ONE_DAY)
    if unit == "quarter":
        return months(later(quarter(today.year, (today.month + 2) // 3).start, 3 * steps), 3, "quarter")
    if unit == "month":
        return months(later(today.replace(day=1), steps))
    return year(today.year + steps) if unit == "year" else None


def _which_weekday(match: re.Match[str], asked: Asked) -> Period | None:
    steps, weekday, today = _STEPS[match["which"]], weekday_number(match["weekday"]), asked.now.date()
    if not _is_weekday(match, asked):
        return None
    if steps < 0:
        return days(latest_weekday(today, weekday).start)
    return days(today + (weekday - today.weekday() + 7 * steps) * ONE_DAY)


def _which_month(match: re.Match[str], asked: Asked) -> Period | None:
    """ "this may" and "this march" are rather no months."""
    sure = match["month"] not in ("may", "march") or match["which"] != "this" or _capital(match, "month", asked)
    return _which_one(_monthly(match), match, asked) if sure or words.ENDS.match(asked.text, match.end()) else None


def _which_season(match: re.Match[str], asked: Asked) -> Period:
    return _which_one(_seasonal(match), match, asked)


def _which_holiday(match: re.Match[str], asked: Asked) -> Period:
    return _which_one(_festive(match), match, asked)


def _which_part(match: re.Match[str], asked: Asked) -> Period:
    return part(days(asked.now.date() + _STEPS[match["which"]] * ONE_DAY), match["part"])


def _weekday(match: re.Match[str], asked: Asked) -> Period | None:
    """A weekday alone is a time where something before or after it says so."""
    if not _is_weekday(match, asked) or words.DATE_FOLLOWS.match(asked.text, match.end()):
        return None
    if preceded(words.SOME, asked, match.start()):
        return None
    said = preceded(words.ON_WEEKDAY, asked, match.start()) or words.ENDS_OR_PART.match(asked.text, match.end())
    return latest_weekday(asked.now.date(), weekday_number(match["weekday"])) if said else None


def _is_weekday(match: re.Match[str], asked: Asked) -> bool:
    """Whether "sat" or "sun" is no other word."""
    if match["weekday"].endswith("day") or _capital(match, "weekday", asked):
        return True
    return words.ENDS_OR_PART.match(asked.text, match.end()) is not None


def _weekday_of(match: re.Match[str], asked: Asked) -> Period:
    monday = week(asked.now.date() + 7 * _STEPS[match["which"]] * ONE_DAY).start
    return days(monday + weekday_number(match["weekday"]) * ONE_DAY)


def _spoken(match: re.Match[str], asked: Asked) -> Period:
    found = days(asked.now.date() + words.SPOKEN_DAYS[match["day"]] * ONE_DAY)
    return part(found, "night") if match["day"] == "tonight" else found


def _before_last(match: re.Match[str], asked: Asked) -> Period:
    unit, today = match["unit"], asked.now.date()
    if unit == "night":
        return part(days(today - 2 * ONE_DAY), "night")
    if unit in ("week", "weekend"):
        return (week if unit == "week" else weekend)(today - 14 * ONE_DAY)
    return months(later(today.replace(day=1), -2)) if unit == "month" else year(today.year - 2)


def _season(match: re.Match[str], asked: Asked) -> Period:
    return _yearly(_seasonal(match), match, asked)


def _quarter(match: re.Match[str], asked: Asked) -> Period | None:
    name = match["quarter"]
    number = int(name[1]) if name[0] == "q" else ("fi", "se", "th", "fo").index(name[:2]) + 1
    if not match["year"] and not preceded(words.IN, asked, match.start()):
        return None
    return _yearly(lambda y: quarter(y, number), match, asked)


def _holiday(match: re.Match[str], asked: Asked) -> Period | None:
    """A holiday is a time where it has a year, or where something before it says so; a Christmas tree is none."""
    chosen = _chosen_year(match, asked)
    if chosen is not None:
        return _festive(match)(chosen)
    if not preceded(words.AT_HOLIDAY, asked, match.start()) or words.FESTIVE.match(asked.text, match.end()):
        return None
    return latest_unless_near(_festive(match), asked.now)


def _rule(pattern: str, build: Build) -> Rule:
    return re.compile(pattern), build


_LONG_YEAR = rf"(?P<year>{words.A_YEAR})"
_DATE_END = r"(?![0-9]|[-/.][0-9])"
RULES: dict[str, tuple[Rule, ...]] = {
    "number": (
        _rule(rf"{words.ALONE}{words.DAY}{words.TO_DAY}(?: of)? {words.MONTH}{words.OF_YEAR}", _date),
        _rule(
            rf"{words.ALONE}{_LONG_YEAR}(?P<mark>[-/.])(?P<month>[0-9]{{1,2}})(?P=mark)(?P<day>[0-9]{{1,2}}){_DATE_END}",
            _iso,
        ),
        _rule(
            rf"{words.ALONE}(?P<a>[0-9]{{1,2}})(?P<mark>[-/.])(?P<b>[0-9]{{1,2}})(?P=mark){_LONG_YEAR}{_DATE_END}",
            _day_first,
        ),
        _rule(rf"{words.ALONE}{_LONG_YEAR}-(?P<month>1[0-2]|0[1-9])(?![0-9-])", _year_month),
        _rule(rf"{words.ALONE}(?P<month>1[0-2]|0?[1-9])/{_LONG_YEAR}(?![0-9/])", _year_month),
        _rule(rf"{words.ALONE}(?P<year>(?:19|20)[0-9]0)'?s\b", _decade),
        _rule(rf"{words.ALONE}{_LONG_YEAR},? (?P<quarter>q[1-4])\b", _quarter),
        _rule(
            rf"{words.ALONE}(?P<first>{words.A_YEAR})(?: ?- ?| to | and | until | through )"
            rf"(?P<last>{words.A_YEAR})(?![0-9.])",
            _years,
        ),
        _rule(rf"{words.ALONE}{_LONG_YEAR}(?![0-9:/]|[.,-][0-9])", _year),
        _rule(rf"{words.ALONE}{words.AGO}", _ago),
    ),
    "month_name": (
        _rule(rf"{words.MONTH} (?:the )?{words.DAY}{words.TO_DAY}(?![0-9%]|[.:/][0-9]){words.OF_YEAR}", _date),
        _rule(rf"{words.MONTH}{words.OF_YEAR}", _month),
    ),
    "which": (
        _rule(rf"(?P<which>last|past|previous) {words.COUNT} {words.UNIT}(?! of\b)", _past),
        _rule(rf"{words.WHICH}(?P<unit>hour|weekend|week|month|quarter|year)\b(?! of\b)", _which_unit),
        _rule(rf"{words.WHICH}{words.WEEKDAY}", _which_weekday),
        _rule(rf"{words.WHICH}{words.MONTH}(?! [0-9])", _which_month),
        _rule(rf"{words.WHICH}{words.SEASON}", _which_season),
        _rule(r"(?P<which>last|this) (?P<part>morning|afternoon|evening|night)\b", _which_part),
        _rule(rf"{words.WHICH}{words.HOLIDAY}", _which_holiday),
    ),
    "weekday_name": (
        _rule(rf"{words.WEEKDAY}(?: of)?,? (?P<which>last|this|next) week\b", _weekday_of),
        _rule(words.WEEKDAY, _weekday),
    ),
    "spoken": (
        _rule(rf"(?P<day>{'|'.join(words.SPOKEN_DAYS)})\b", _spoken),
        _rule(r"(?P<unit>weekend|week|month|year|night) before last\b", _before_last),
        _rule(r"other day\b", lambda match, asked: ago(asked.now, 2, 7, "day")),
        _rule(r"earlier today\b", lambda match, asked: past(asked.now, 0, "day")),
        _rule(r"just now\b", lambda match, asked: past(asked.now, 1, "hour")),
    ),
    "ago": (_rule(words.AGO, _ago),),
    "season_name": (
        _rule(
            rf"{words.SEASON}(?: break| term| semester)?,? ?(?:of |in )?{words.YEAR}(?: ?[-/] ?(?:20)?[0-9]{{2}}\b)?",
            _season,
        ),
    ),
    "quarter_name": (_rule(rf"(?P<quarter>q[1-4]|(?:first|second|third|fourth) quarter)\b{words.OF_YEAR}", _quarter),),
    "holiday_name": (_rule(rf"{words.HOLIDAY}(?: day)?{words.OF_YEAR}", _holiday),),
}
