"""Read times in English and in figures."""

import re
from collections.abc import Callable
from datetime import date

from roomlore.core import lexicon
from roomlore.core.dates.calendar import ENGLISH as HOLIDAYS
from roomlore.core.dates.calendar import (
    ONE_DAY,
    Build,
    NamedPeriod,
    Period,
    Rule,
    TimeQuestion,
    ago,
    beside,
    built,
    clock,
    current,
    days,
    edge,
    later,
    latest_over,
    latest_weekday,
    month,
    months,
    next_one,
    nth,
    part,
    past,
    preceded,
    quarter,
    recurring,
    recurring_unless_near,
    recurring_weekday,
    season,
    third,
    week,
    weekend,
    year,
)
from roomlore.core.patterns import lazy_pattern

MONTHS = lexicon.values("months", "en")
_MONTH_IN_FULL = lexicon.forms("month_full", "en") + "|may"
WEEKDAYS = lexicon.values("weekdays", "en")
NUMBERS = lexicon.values("numbers", "en")
# April, June and August are also names, "may" and "march" are verbs, and "sat" and "dec" are ambiguous.
SURE_MONTHS = frozenset(("january", "february", "july", "september", "october", "november", "december"))
SPOKEN_DAYS = lexicon.values("spoken_days", "en")
_UNITS = lexicon.values("units", "en")
_VAGUE = lexicon.values("vague_counts", "en")
_STEPS = lexicon.values("steps", "en")
_ORDINALS = lexicon.values("ordinals", "en")
_SEASONS = lexicon.values("seasons", "en")
_NAMED_SEASON = "|".join(_SEASONS)

# The full stop of a month that is cut short; May is not.
MONTH = rf"(?P<month>{lexicon.forms('month', 'en')})\b(?:(?<!may)\.(?= ?[0-9]))?"
WEEKDAY = rf"(?P<weekday>{lexicon.forms('weekday_any', 'en')})\b"
DAY = r"(?P<day>3[01]|[12][0-9]|0?[1-9])(?P<suffix>st|nd|rd|th)?"
TO_DAY = r"(?: ?(?:-|to|until|through|till|and) ?(?P<last>3[01]|[12][0-9]|0?[1-9])(?:st|nd|rd|th)?)?"
A_YEAR = r"(?:19|20)[0-9]{2}"
YEAR = rf"(?P<year>{A_YEAR}(?![0-9])|(?:last|this|next) year\b)"
OF_YEAR = rf"(?:,? ?(?:of the |of |in )?{YEAR})?"
COUNT = (
    rf"(?P<count>[0-9]{{1,3}}|(?:a )?couple of|(?:a )?couple|a few|few|several|half an?|half|an?|{'|'.join(NUMBERS)})"
)
LOW = rf"(?:(?P<low>[0-9]{{1,3}}|{'|'.join(NUMBERS)})(?: or | to |-))?"
UNIT = rf"(?P<unit>{'|'.join(_UNITS)})s?\b"
AGO = rf"{LOW}{COUNT} {UNIT} (?:ago|back)\b(?: today\b)?"
SEASON = rf"(?P<season>{_NAMED_SEASON})\b"
HOLIDAY = (
    r"(?P<holiday>new year'?s (?:eve|day)|(?:chinese |lunar )?new year|spring festival|mid-autumn festival"
    r"|dragon boat festival|valentine'?s day|easter|halloween|thanksgiving|christmas(?: eve| day)?)\b"
)
WHICH = r"(?P<which>this past|this coming|last|past|previous|this|next|coming) "
# A number that is no part of a version, a price, an address or a fraction.
ALONE = r"(?<![.,/:$#@+])(?<![0-9]-)"

# The beginning of a time, by the kind of its first word; not inside a longer word.
START = lazy_pattern(
    rf"""(?<![a-z0-9_])(?:
    (?P<number>[0-9])
    |(?P<month_name>(?:{"|".join(MONTHS)})[a-z]*\b)
    |(?P<which>(?:last|past|previous|this|next|coming)[ ])
    |(?P<weekday_name>(?:{"|".join(WEEKDAYS)})[a-z]*\b)
    |(?P<spoken>today|yesterday|tomorrow|tonight|day[ ](?:before|after)[ ]|other[ ]day|earlier[ ]today|just[ ]now
      |(?:week|month|year|weekend|night)[ ]before[ ]last)
    |(?P<ago>{re.sub(r"[?]P<[a-z]+>", "?:", AGO).replace(" ", "[ ]")})
    |(?P<season_name>{_NAMED_SEASON})
    |(?P<quarter_name>q[1-4]|(?:first|second|third|fourth)[ ]quarter)
    |(?P<holiday_name>new[ ]year|chinese[ ]n|lunar[ ]n|mid-a|dragon[ ]b|valen|easter|hallow|thanksg|christm)
    )""",
    re.VERBOSE,
)

_PIECE_OF = (
    r"(?:end|start|beginning|middle|half|quarters?|weeks?|weekends?|months?|days?|rest|part|night|morning) (?:of|in)"
)
# The end of a clause; the full stop of 1.5 is none.
ENDS = lazy_pattern(r" ?(?:[?!,;:)\"]|\.(?![0-9])|$)")
# The end of a clause, or a part of the day.
ENDS_OR_PART = lazy_pattern(rf",? (?:morning|afternoon|evening|night)\b|{ENDS.pattern}")
# A date after a weekday, which says which one is meant.
DATE_FOLLOWS = lazy_pattern(rf",? (?:{'|'.join(MONTHS)}|[0-9])")
# What makes a month or a quarter a time: in May; not of itself: May I.
IN = lazy_pattern(
    r"(?:\b(?:in|during|since|throughout|until|till|early|late|mid|middle|through|[a-z]+day (?:of|in)"
    rf"|{_PIECE_OF})[ -]|\b(?:{_MONTH_IN_FULL})(?: and | or | to | ?- ?))$"
)
# Words beside which a month is a time only if nothing else follows.
AROUND = lazy_pattern(r"\b(?:before|after|between|around|about|by) $")
# A month after from is a time if the range goes on.
FROM = lazy_pattern(r"\bfrom $")
# Nothing follows that would make the word before it a verb.
LONE = lazy_pattern(rf"{ENDS.pattern}| (?:and|or|to|until|till|through)\b| ?-")
# The second half of a range follows.
RANGE_GOES_ON = lazy_pattern(r" (?:to|until|till|through|and|onwards?)\b| ?-")
# What makes a month beside a number a date: on 5 may; not they may 5.
ON_DATE = lazy_pattern(
    r"\b(?:on|since|before|after|by|until|till|from|to|of|through|between|around|last|this|next|[a-z]+day,?) $"
)
# What makes a weekday a time; the monday meeting is none.
ON_WEEKDAY = lazy_pattern(
    r"\b(?:(?:on|since|before|after|until|till|from|between|by) (?:the )?"
    r"|(?:(?<!every )[a-z]+day|week|month|morning|evening|night|[0-9](?:st|nd|rd|th)?)"
    r"(?: and | or | to | until | through | ?- ?|, ?))$"
)
# The last week, unlike last week, is seven days.
THE = lazy_pattern(r"\bthe $")
# A weekday of no week: every Monday, Black Friday.
SOME = lazy_pattern(r"\b(?:every|each|a|any|black|good|most|some) $")
# What makes four figures a year: in 2023; not room 2023.
IN_YEAR = lazy_pattern(
    r"\b(?:(?:in|during|since|throughout|before|after|by|until|till|through|from|between|early|late|mid|around"
    rf"|{_PIECE_OF})[ -](?:the )?(?:year )?|(?:in|during|from|between) {A_YEAR} (?:and|or|to) )$"
)
# What four figures count, so that they are no year: 2000 words.
COUNTED = lazy_pattern(
    r" ?(?:[a-z]+ )?(?:words?|steps?|met(?:er|re)s?|miles?|km|kg|dollars?|euros?|yuan|people|users?|lines?|rows?"
    r"|char(?:acter)?s?|tokens?|messages?|pieces?|calories|kcal|points?|times|hours?|minutes?|seconds?|feet|bytes"
    r"|requests?|items?|units?)\b|[%$€]"
)
# What makes a holiday a time: at Christmas; not Christmas.
AT_HOLIDAY = lazy_pattern(
    r"\b(?:on|at|over|during|since|before|after|until|till|by|around|from|to|between|and|celebrated?|spen[dt]"
    r"|(?:day|night|week|weekend|end|morning|evening) (?:of|before|after)) (?:the )?$"
)
# What a holiday only describes: Christmas tree.
FESTIVE = lazy_pattern(
    r"[ -](?:trees?|gifts?|presents?|part(?:y|ies)|cards?|carols?|dinner|cake|cookies?|songs?|movies?|films?|shopping"
    r"|decorations?|lights?|markets?|island|resolutions?|costumes?|eggs?|bunny|menu|plans?|sales?|concert|show"
    r"|special)\b|'s"
)
# What makes 2023.05.07 a version.
VERSION = lazy_pattern(r"(?:\bv|version |release |build )$")


Maker = Callable[[int], Period]


def counted(match: re.Match[str]) -> tuple[float, float, str]:
    """Return the least and the greatest number of units meant, and the unit."""
    word, unit = match["count"], _UNITS[match["unit"]]
    low, high = next((range_ for key, range_ in _VAGUE.items() if key in word), (_number(word), _number(word)))
    if match.groupdict().get("low"):
        low = min(high, _number(match["low"]))
    return (2 * low, 2 * high, "week") if unit == "fortnight" else (low, high, unit)


def _number(word: str) -> float:
    if word.isdigit():
        return float(word)
    return float(NUMBERS.get(word, 1))


def weekday_number(word: str) -> int:
    return int(WEEKDAYS[word[:3]])


def _month_number(match: re.Match[str]) -> int:
    return int(MONTHS[match["month"][:3]])


def _capital(match: re.Match[str], group: str, question: TimeQuestion) -> bool:
    """Return True if the group has a capital letter and does not begin the question."""
    return bool(match.start(group)) and question.written[match.start(group)].isupper()


def _chosen_year(match: re.Match[str], question: TimeQuestion) -> int | None:
    word = match["year"]
    if not word:
        return None
    return int(word) if word.isdigit() else question.now.year + _STEPS[word.split()[0]]


def _yearly(make: Maker, match: re.Match[str], question: TimeQuestion) -> Period:
    """Return the event in the year named, or the latest one."""
    chosen = _chosen_year(match, question)
    return recurring(make, question) if chosen is None else make(chosen)


def _which_one(make: Maker, match: re.Match[str], question: TimeQuestion) -> Period:
    """Return the last, this or the next of a yearly event."""
    return (current, next_one, latest_over)[_STEPS[match["which"]]](make, question.now)


def _monthly(match: re.Match[str]) -> Maker:
    return lambda y: month(y, _month_number(match))


def _seasonal(match: re.Match[str]) -> Maker:
    return lambda y: season(y, _SEASONS[match["season"]])


def _holiday_maker(match: re.Match[str]) -> Maker:
    return HOLIDAYS[match["holiday"].replace("'", "")]


def _date(match: re.Match[str], question: TimeQuestion) -> Period | None:
    number, first, last = _month_number(match), int(match["day"]), int(match["last"] or match["day"])
    if last < first or not _is_date(match, question):
        return None
    count = last - first + 1
    return _yearly(lambda y: days(date(y, number, first), count, "day" if count == 1 else "stretch"), match, question)


def _is_date(match: re.Match[str], question: TimeQuestion) -> bool:
    """Return True if "may" or "march" beside a number is not a verb."""
    if match["month"] not in ("may", "march", "mar") or match["year"] or match["suffix"]:
        return True
    if _capital(match, "month", question) or LONE.match(question.text, match.end()):
        return True
    return preceded(ON_DATE, question, match.start()) is not None


def _month(match: re.Match[str], question: TimeQuestion) -> Period | None:
    return _yearly(_monthly(match), match, question) if match["year"] or _is_month(match, question) else None


def _is_month(match: re.Match[str], question: TimeQuestion) -> bool:
    """Return True if a month's name alone means the month."""
    if match["month"] in SURE_MONTHS or preceded(IN, question, match.start()):
        return True
    if preceded(AROUND, question, match.start()):
        return LONE.match(question.text, match.end()) is not None
    return bool(preceded(FROM, question, match.start()) and RANGE_GOES_ON.match(question.text, match.end()))


def _iso(match: re.Match[str], question: TimeQuestion) -> Period | None:
    if match["mark"] == "." and preceded(VERSION, question, match.start()):
        return None
    return days(date(int(match["year"]), int(match["month"]), int(match["day"])))


def _day_first(match: re.Match[str], question: TimeQuestion) -> Period | None:
    """Return the date of figures. Dots separate day.month.year. Slashes may mean either order; only unambiguous dates
    are read."""
    a, b, number = int(match["a"]), int(match["b"]), int(match["year"])
    if b > 12:
        return days(date(number, a, b))
    return days(date(number, b, a)) if match["mark"] == "." or a > 12 or a == b else None


def _year_month(match: re.Match[str], question: TimeQuestion) -> Period:
    return month(int(match["year"]), int(match["month"]))


def _years(match: re.Match[str], question: TimeQuestion) -> Period | None:
    count = int(match["last"]) - int(match["first"]) + 1
    if count < 2 or not preceded(IN_YEAR, question, match.start()):
        return None
    return months(date(int(match["first"]), 1, 1), 12 * count, "stretch")


def _year(match: re.Match[str], question: TimeQuestion) -> Period | None:
    named = preceded(IN_YEAR, question, match.start()) and not COUNTED.match(question.text, match.end())
    return year(int(match["year"])) if named else None


def _decade(match: re.Match[str], question: TimeQuestion) -> Period:
    return months(date(int(match["year"]), 1, 1), 120, "stretch")


def _ago(match: re.Match[str], question: TimeQuestion) -> Period:
    return ago(question.now, *counted(match))


def _past(match: re.Match[str], question: TimeQuestion) -> Period:
    _, high, unit = counted(match)
    return past(question.now, high, unit)


def _which_unit(match: re.Match[str], question: TimeQuestion) -> Period | None:
    """Return the unit: "last week" is the calendar's, "the last week" and "the past week" are seven days up to now."""
    steps, unit, today = _STEPS[match["which"]], match["unit"], question.now.date()
    rolling = "past" in match["which"] or (match["which"] == "last" and preceded(THE, question, match.start()))
    if rolling and unit in ("hour", "week", "month", "year"):
        return past(question.now, 1, unit)
    if unit in ("week", "weekend"):
        return (week if unit == "week" else weekend)(today + 7 * steps * ONE_DAY)
    if unit == "quarter":
        return months(later(quarter(today.year, (today.month + 2) // 3).start, 3 * steps), 3, "quarter")
    if unit == "month":
        return months(later(today.replace(day=1), steps))
    return year(today.year + steps) if unit == "year" else None


def _which_weekday(match: re.Match[str], question: TimeQuestion) -> Period | None:
    steps, weekday, today = _STEPS[match["which"]], weekday_number(match["weekday"]), question.now.date()
    if not _is_weekday(match, question):
        return None
    if steps < 0:
        return days(latest_weekday(today, weekday).start)
    return days(today + (weekday - today.weekday() + 7 * steps) * ONE_DAY)


def _which_month(match: re.Match[str], question: TimeQuestion) -> Period | None:
    """Return the month; "this may" and "this march" are rather no months."""
    sure = match["month"] not in ("may", "march") or match["which"] != "this" or _capital(match, "month", question)
    return _which_one(_monthly(match), match, question) if sure or ENDS.match(question.text, match.end()) else None


def _which_part(match: re.Match[str], question: TimeQuestion) -> Period:
    return part(days(question.now.date() + _STEPS[match["which"]] * ONE_DAY), match["part"])


def _weekday(match: re.Match[str], question: TimeQuestion) -> Period | None:
    """Return the weekday; a weekday alone is a time only if a word before or after it indicates so."""
    if not _is_weekday(match, question) or DATE_FOLLOWS.match(question.text, match.end()):
        return None
    if preceded(SOME, question, match.start()):
        return None
    on_weekday = preceded(ON_WEEKDAY, question, match.start()) or ENDS_OR_PART.match(question.text, match.end())
    return recurring_weekday(question, weekday_number(match["weekday"])) if on_weekday else None


def _is_weekday(match: re.Match[str], question: TimeQuestion) -> bool:
    """Return True if "sat" or "sun" is not another word."""
    if match["weekday"].endswith("day") or _capital(match, "weekday", question):
        return True
    return ENDS_OR_PART.match(question.text, match.end()) is not None


def _weekday_of(match: re.Match[str], question: TimeQuestion) -> Period:
    monday = week(question.now.date() + 7 * _STEPS[match["which"]] * ONE_DAY).start
    return days(monday + weekday_number(match["weekday"]) * ONE_DAY)


def _spoken(match: re.Match[str], question: TimeQuestion) -> Period:
    day_period = days(question.now.date() + SPOKEN_DAYS[match["day"]] * ONE_DAY)
    return part(day_period, "night") if match["day"] == "tonight" else day_period


def _before_last(match: re.Match[str], question: TimeQuestion) -> Period:
    unit, today = match["unit"], question.now.date()
    if unit == "night":
        return part(days(today - 2 * ONE_DAY), "night")
    if unit in ("week", "weekend"):
        return (week if unit == "week" else weekend)(today - 14 * ONE_DAY)
    return months(later(today.replace(day=1), -2)) if unit == "month" else year(today.year - 2)


def _season(match: re.Match[str], question: TimeQuestion) -> Period:
    return _yearly(_seasonal(match), match, question)


def _quarter(match: re.Match[str], question: TimeQuestion) -> Period | None:
    name = match["quarter"]
    number = int(name[1]) if name[0] == "q" else ("fi", "se", "th", "fo").index(name[:2]) + 1
    if not match["year"] and not preceded(IN, question, match.start()):
        return None
    return _yearly(lambda y: quarter(y, number), match, question)


def _holiday(match: re.Match[str], question: TimeQuestion) -> Period | None:
    """Return the holiday, if it has a year or a word before it indicates a time; "Christmas tree" is not one."""
    chosen = _chosen_year(match, question)
    if chosen is not None:
        return _holiday_maker(match)(chosen)
    if not preceded(AT_HOLIDAY, question, match.start()) or FESTIVE.match(question.text, match.end()):
        return None
    return recurring_unless_near(_holiday_maker(match), question)


def _rule(pattern: str, build: Build) -> Rule:
    return lazy_pattern(pattern), build


_LONG_YEAR = rf"(?P<year>{A_YEAR})"
_DATE_END = r"(?![0-9]|[-/.][0-9])"
RULES: dict[str, tuple[Rule, ...]] = {
    "number": (
        _rule(rf"{ALONE}{DAY}{TO_DAY}(?: of)? {MONTH}{OF_YEAR}", _date),
        _rule(
            rf"{ALONE}{_LONG_YEAR}(?P<mark>[-/.])(?P<month>[0-9]{{1,2}})(?P=mark)(?P<day>[0-9]{{1,2}}){_DATE_END}",
            _iso,
        ),
        _rule(
            rf"{ALONE}(?P<a>[0-9]{{1,2}})(?P<mark>[-/.])(?P<b>[0-9]{{1,2}})(?P=mark){_LONG_YEAR}{_DATE_END}",
            _day_first,
        ),
        _rule(rf"{ALONE}{_LONG_YEAR}-(?P<month>1[0-2]|0[1-9])(?![0-9-])", _year_month),
        _rule(rf"{ALONE}(?P<month>1[0-2]|0?[1-9])/{_LONG_YEAR}(?![0-9/])", _year_month),
        _rule(rf"{ALONE}(?P<year>(?:19|20)[0-9]0)'?s\b", _decade),
        _rule(rf"{ALONE}{_LONG_YEAR},? (?P<quarter>q[1-4])\b", _quarter),
        _rule(
            rf"{ALONE}(?P<first>{A_YEAR})(?: ?- ?| to | and | until | through )"
            rf"(?P<last>{A_YEAR})(?![0-9.])",
            _years,
        ),
        _rule(rf"{ALONE}{_LONG_YEAR}(?![0-9:/]|[.,-][0-9])", _year),
        _rule(rf"{ALONE}{AGO}", _ago),
    ),
    "month_name": (
        _rule(rf"{MONTH} (?:the )?{DAY}{TO_DAY}(?![0-9%]|[.:/][0-9]){OF_YEAR}", _date),
        _rule(rf"{MONTH}{OF_YEAR}", _month),
    ),
    "which": (
        _rule(rf"(?P<which>last|past|previous) {COUNT} {UNIT}(?! of\b)", _past),
        _rule(rf"{WHICH}(?P<unit>hour|weekend|week|month|quarter|year)\b(?! of\b)", _which_unit),
        _rule(rf"{WHICH}{WEEKDAY}", _which_weekday),
        _rule(rf"{WHICH}{MONTH}(?! [0-9])", _which_month),
        _rule(rf"{WHICH}{SEASON}", lambda match, question: _which_one(_seasonal(match), match, question)),
        _rule(r"(?P<which>last|this) (?P<part>morning|afternoon|evening|night)\b", _which_part),
        _rule(rf"{WHICH}{HOLIDAY}", lambda match, question: _which_one(_holiday_maker(match), match, question)),
    ),
    "weekday_name": (
        _rule(rf"{WEEKDAY}(?: of)?,? (?P<which>last|this|next) week\b", _weekday_of),
        _rule(WEEKDAY, _weekday),
    ),
    "spoken": (
        _rule(rf"(?P<day>{'|'.join(SPOKEN_DAYS)})\b", _spoken),
        _rule(r"(?P<unit>weekend|week|month|year|night) before last\b", _before_last),
        _rule(r"other day\b", lambda match, question: ago(question.now, 2, 7, "day")),
        _rule(r"earlier today\b", lambda match, question: past(question.now, 0, "day")),
        _rule(r"just now\b", lambda match, question: past(question.now, 1, "hour")),
    ),
    "ago": (_rule(AGO, _ago),),
    "season_name": (
        _rule(
            rf"{SEASON}(?: break| term| semester)?,? ?(?:of |in )?{YEAR}(?: ?[-/] ?(?:20)?[0-9]{{2}}\b)?",
            _season,
        ),
    ),
    "quarter_name": (_rule(rf"(?P<quarter>q[1-4]|(?:first|second|third|fourth) quarter)\b{OF_YEAR}", _quarter),),
    "holiday_name": (_rule(rf"{HOLIDAY}(?: day)?{OF_YEAR}", _holiday),),
}


_ORDINAL = rf"(?P<ordinal>{'|'.join(_ORDINALS)}|1st|2nd|3rd|4th)"
_CLOCK = r"(?P<hour>1[0-9]|2[0-3]|0?[0-9])(?::(?P<minute>[0-5][0-9])(?::[0-5][0-9])?)?(?: ?(?P<half>[ap])\.?m\b\.?)?"
_LARGE = ("week", "month", "season", "quarter", "half", "year", "stretch")


def _early(match: re.Match[str], period: Period) -> Period | None:
    number = {"early": 1, "late": 3}.get(match["which"], 2)
    return third(period, number) if period.unit in _LARGE else None


def _edge(match: re.Match[str], period: Period) -> Period | None:
    return edge(period, 3 if match["which"] == "end" else 1) if period.unit in _LARGE else None


def _nth(match: re.Match[str], period: Period) -> Period | None:
    word = match["ordinal"]
    number = int(word[0]) if word[0].isdigit() else _ORDINALS[word]
    what = weekday_number(match["weekday"]) if match["weekday"] else match["what"]
    return nth(period, number, what) if period.unit in _LARGE else None


def _day_of(match: re.Match[str], period: Period) -> Period | None:
    return nth(period, int(match["day"]), "day") if period.unit == "month" else None


def _part_of_day(match: re.Match[str], period: Period) -> Period | None:
    return part(period, match["part"]) if period.unit == "day" else None


def _week_of(match: re.Match[str], period: Period) -> Period | None:
    return week(period.start.date()) if period.unit in ("day", "stretch") else None


def _beside(match: re.Match[str], period: Period) -> Period | None:
    what = weekday_number(match["weekday"]) if match["weekday"] else match["what"]
    return beside(period, what, after=match["side"] == "after")


def _shortly(match: re.Match[str], period: Period) -> Period:
    if match["side"] == "after":
        return days(period.end, 7, "stretch")
    return days(period.start - 7 * ONE_DAY, 7, "stretch")


def _offset(match: re.Match[str], period: Period) -> Period:
    low, high, unit = counted(match)
    if match["side"] == "before":
        return ago(period.start, low, high, unit)
    return ago(period.end - ONE_DAY, -low, -low, unit)


def _clock(match: re.Match[str], period: Period) -> Period | None:
    """Return the clock time, which needs a day, and "pm", a minute or a part of the day that tells the half."""
    hour, minute, first_half = int(match["hour"]), match["minute"], match["half"]
    if period.unit not in ("day", "part") or not (minute or first_half):
        return None
    if hour < 12 and (first_half == "p" or (not first_half and period.unit == "part" and period.start.hour >= 12)):
        hour += 12
    elif hour == 12 and first_half == "a":
        hour = 0
    return clock(period, hour, int(minute) if minute else None)


Narrow = Callable[[re.Match[str], Period], Period | None]
# What narrows the period before it: a part of the day, a time of day.
_AFTER: tuple[tuple[re.Pattern[str], Narrow], ...] = (
    (
        lazy_pattern(r",?(?: in the| at)? (?:early |late )?(?P<part>morning|noon|afternoon|evening|night|midnight)\b"),
        _part_of_day,
    ),
    (lazy_pattern(rf"(?:,? (?:at )?|t){_CLOCK}(?![0-9:/.-]?[0-9])"), _clock),
)
# What narrows the period after it: early, the end of, the first week of.
_BEFORE: tuple[tuple[re.Pattern[str], Narrow], ...] = (
    (lazy_pattern(r"\b(?P<which>early|mid|middle|late)(?: of| in)?(?: the)?[ -]$"), _early),
    (lazy_pattern(r"\b(?P<which>end|start|beginning)(?: of)(?: the)? $"), _edge),
    (
        lazy_pattern(rf"\b{_ORDINAL} (?:(?P<what>day|week|weekend|month|quarter|half)|{WEEKDAY}) (?:of|in)(?: the)? $"),
        _nth,
    ),
    (lazy_pattern(r"\b(?P<day>[0-9]{1,2})(?:st|nd|rd|th) (?:day )?of (?:the )?$"), _day_of),
    (lazy_pattern(r"\b(?P<part>morning|afternoon|evening|night) (?:of|on) (?:the )?$"), _part_of_day),
    (lazy_pattern(rf"\b(?:at )?{_CLOCK} (?:on )?$"), _clock),
    (lazy_pattern(r"\bweek of (?:the )?$"), _week_of),
    (lazy_pattern(r"\b(?:shortly|right|just|soon|immediately) (?P<side>before|after) (?:the )?$"), _shortly),
    (lazy_pattern(rf"\b{COUNT} {UNIT} (?P<side>before|after) (?:the )?$"), _offset),
    (
        lazy_pattern(rf"\b(?:(?P<what>day|night|week|weekend|month|year)|{WEEKDAY}) (?P<side>before|after) (?:the )?$"),
        _beside,
    ),
)


def narrowed(hit: NamedPeriod, question: TimeQuestion) -> NamedPeriod:
    """Return the period, with the words right after and right before it that narrow it."""
    for pattern, narrow in _AFTER:
        match = pattern.match(question.text, hit.to)
        if match and (period := _narrowed_or_none(narrow, match, hit.period, question)):
            hit = NamedPeriod(hit.at, match.end(), period)
    for pattern, narrow in _BEFORE:
        match = preceded(pattern, question, hit.at)
        if match and (period := _narrowed_or_none(narrow, match, hit.period, question)):
            hit = NamedPeriod(match.start(), hit.to, period)
    return hit


def _narrowed_or_none(narrow: Narrow, match: re.Match[str], period: Period, question: TimeQuestion) -> Period | None:
    return built(lambda match, query: narrow(match, period), match, question)
