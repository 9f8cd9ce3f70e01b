"""Times in English and in figures: where one may begin, and the rules that read on from there."""

import re
from collections.abc import Callable
from datetime import date, timedelta
from functools import partial

from roomlore.core import when_holidays
from roomlore.core.when_periods import (
    DAY,
    SEASONS,
    Period,
    ago,
    again,
    coming,
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
    recently,
    season,
    week,
    weekend,
    year,
)
from roomlore.core.when_rules import Asked, Rule, preceded

_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAY_NAMES = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_NUMBER_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b(?:(?<!may)\.(?= ?[0-9]))?"
)
_NAMELIKE = re.compile(r"(?:april|may|june|august|march)\b|[a-z]{3,4}\b(?<!july)")
WEEKDAY = r"(?P<weekday>mon|tue|wed|thu|fri|sat|sun)(?:day|sday|s|nesday|r|rs|rsday|urday)?\b"
_DAY = r"(?P<day>3[01]|[12][0-9]|0?[1-9])"
_TO_DAY = r"(?: ?(?:-|to|until|through|till) ?(?P<last>3[01]|[12][0-9]|0?[1-9])(?:st|nd|rd|th)?)?"
_YEAR = r"(?P<year>(?:19|20)[0-9]{2}(?![0-9])|(?:last|this|next) year\b)"
_OF_YEAR = rf"(?:,? ?(?:of |in )?{_YEAR})?"
_COUNT = (
    r"(?P<count>[0-9]{1,3}|(?:a )?couple of|(?:a )?couple|a few|few|several|half an?|half|an?"
    rf"|{'|'.join(_NUMBER_WORDS)})"
)
_LOW = rf"(?:(?P<low>[0-9]{{1,3}}|{'|'.join(_NUMBER_WORDS)})(?: or | to |-))?"
UNIT = r"(?P<unit>minute|min|hour|hr|day|week|fortnight|month|year|yr)s?\b"
_AGO = rf"{_LOW}{_COUNT} {UNIT} (?:ago|back)\b"
_UNITS = {"min": "minute", "hr": "hour", "yr": "year"}
_SEASON = r"(?P<season>spring|summer|fall|autumn|winter)\b"
_HOLIDAY = (
    r"(?P<holiday>new year'?s eve|new year'?s day|chinese new year|lunar new year|new year|spring festival"
    r"|mid-autumn festival|dragon boat festival|valentine'?s day|easter|halloween|thanksgiving"
    r"|christmas eve|christmas day|christmas)\b"
)
_SPOKEN_DAYS = {
    "day before yesterday": -2,
    "yesterday": -1,
    "today": 0,
    "tonight": 0,
    "tomorrow": 1,
    "day after tomorrow": 2,
}
_START = re.compile(
    rf"""(?<![a-z0-9_])(?:
    (?P<number>[0-9])
    |(?P<start_month>(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b)
    |(?P<start_which>(?:last|past|previous|this|next|coming)[ ])
    |(?P<start_weekday>(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\b)
    |(?P<start_day>today|yesterday|tomorrow|tonight|day[ ](?:before|after)|other[ ]day|earlier[ ]t|just[ ]now
      |(?:week|month|year|weekend|night)[ ]before[ ]last)
    |(?P<start_ago>{_AGO.replace(" ", "[ ]")})
    |(?P<start_season>spring|summer|fall|autumn|winter)
    |(?P<start_quarter>q[1-4]|(?:first|second|third|fourth)[ ]quarter)
    |(?P<start_holiday>new[ ]|chi|lun|mid-a|dragon|valen|easter|hallow|thanks|chris)
    |(?P<start_soft>recently\b|lately\b|these[ ]days\b)
    )""".replace("?P<low>", "?:").replace("?P<count>", "?:").replace("?P<unit>", "?:"),
    re.VERBOSE,
)

_ENDS = r"(?= ?(?:[?!,;:)\"]|\.(?![0-9])|$))"
_PERIOD_OF = r"(?:end|start|beginning|middle|half|quarters?|weeks?|weekends?|months?|days?|rest|part|night|morning) (?:of|in)"
_IN = re.compile(
    rf"(?:\b(?:in|during|since|throughout|until|till|early|late|mid|middle|through|{_PERIOD_OF}|[a-z]+day (?:of|in))[ -]"
    r"|\b(?:january|february|march|april|may|june|july|august|september|october|november|december)(?: and | or | to | ?- ?))$"
)
_AROUND = re.compile(r"\b(?:before|after|between|around|about|by)[ ]$")
_FROM = re.compile(r"\bfrom[ ]$")
_LONE = re.compile(rf"{_ENDS}| (?:and|or|to|until|till|through)\b| ?-")
_RANGE_ON = re.compile(r" (?:to|until|till|through|and|onwards?)\b| ?-")
_ON = re.compile(r"\b(?:on|since|before|after|by|until|till|from|to|of|through|between|around|last|this|next|[a-z]+day,?)[ ]$")
_ON_WEEKDAY = re.compile(
    r"\b(?:(?:on|since|before|after|until|till|from|between|by)[ ](?:the[ ])?"
    r"|(?:(?<!every )[a-z]+day|week|month|morning|evening|night|[0-9](?:st|nd|rd|th)?)(?: and | or | to | until | through | ?- ?|, ?))$"
)
_THE = re.compile(r"\bthe $")
_EVERY = re.compile(r"\b(?:every|each|a|any|black|good|most|some)[ ]$")
_HABIT = re.compile(r"s\b")
_YEAR_CUE = re.compile(
    rf"\b(?:in|during|since|throughout|before|after|by|until|till|through|from|early|late|mid|around|all|and|to|{_PERIOD_OF})[ -](?:the )?(?:year )?$"
)
_COUNTED = re.compile(
    r" ?(?:[a-z]+ )?(?:words?|steps?|met(?:er|re)s?|miles?|km|kg|dollars?|euros?|yuan|people|users?|lines?|rows?|characters?|chars"
    r"|tokens?|messages?|pieces?|calories|kcal|points?|times|hours?|minutes?|seconds?|feet|bytes|requests?|items?|units?)\b|[%$€]"
)
_HOLIDAY_CUE = re.compile(
    r"\b(?:on|at|over|during|since|before|after|until|till|by|around|from|to|between|and|celebrated?|spen[dt]"
    r"|(?:day|night|week|weekend|end|morning|evening) (?:of|before|after))[ ](?:the )?$"
)
_FESTIVE = re.compile(
    r"[ -](?:trees?|gifts?|presents?|part(?:y|ies)|cards?|carols?|dinner|cake|cookies?|songs?|movies?|films?|shopping"
    r"|decorations?|lights?|markets?|island|resolutions?|costumes?|eggs?|bunny|menu|plans?|sales?|concert|show|special)\b|'s"
)
_VERSION = re.compile(r"(?:\bv|version |release |build )$")


def start(text: str, position: int) -> re.Match[str] | None:
    """The next place at which a time may begin; the group that matched names the rules."""
    return _START.search(text, position)


def number(word: str) -> int:
    return int(word) if word.isdigit() else _NUMBER_WORDS.index(word) + 1


def weekday_number(word: str) -> int:
    return _WEEKDAY_NAMES.index(word[:3])


def counted(match: re.Match[str]) -> tuple[float, float, str]:
    """The least and the greatest number of units meant, and the unit."""
    word, unit = match["count"], _UNITS.get(match["unit"], match["unit"])
    vague = {"couple": (2.0, 3.0), "few": (2.0, 7.0), "several": (2.0, 7.0), "half": (0.5, 0.5), "a": (1.0, 1.0)}
    key = next((key for key in ("couple", "few", "several", "half") if key in word), "a" if word in ("a", "an") else "")
    low, high = vague[key] if key else (float(number(word)), float(number(word)))
    if match.groupdict().get("low"):
        low = min(high, float(number(match["low"])))
    return (2 * low, 2 * high, "week") if unit == "fortnight" else (low, high, unit)


def _the_year(match: re.Match[str], asked: Asked) -> int | None:
    word = match["year"]
    if not word:
        return None
    return int(word) if word.isdigit() else asked.now.year + ("last", "this", "next").index(word[:4]) - 1


def _yearly(make: Callable[[int], Period], match: re.Match[str], asked: Asked) -> Period:
    chosen = _the_year(match, asked)
    return latest(make, asked.now) if chosen is None else make(chosen)


def _month_number(match: re.Match[str]) -> int:
    return _MONTH_NAMES.index(match["month"][:3]) + 1


def _is_named(match: re.Match[str], asked: Asked) -> bool:
    """Whether "May" or "March" before or after a number is no verb."""
    name = match["month"]
    if name not in ("may", "march", "mar", "sun") or match["year"] or "th" in match[0].replace("march", ""):
        return True
    at = match.start("month")
    if asked.written[at].isupper() and at:
        return True
    return bool(re.match(_ENDS, asked.text[match.end() : match.end() + 4]) or preceded(_ON, asked, match.start()))


def _dated(match: re.Match[str], asked: Asked) -> Period | None:
    if not _is_named(match, asked):
        return None
    number, first, last = _month_number(match), int(match["day"]), int(match["last"] or match["day"])
    return None if last < first else _yearly(lambda y: _from_to(date(y, number, first), date(y, number, last)), match, asked)


def _from_to(first: date, last: date) -> Period:
    return days(first, (last - first).days + 1, "day" if first == last else "stretch")


def _monthly(match: re.Match[str], asked: Asked) -> Period | None:
    if not match["year"] and not _is_month(match, asked):
        return None
    return _yearly(lambda y: month(y, _month_number(match)), match, asked)


def _is_month(match: re.Match[str], asked: Asked) -> bool:
    """Whether a month's name alone is one: April, May, June and August are people too, and "may" is a verb."""
    if not _NAMELIKE.match(match["month"]) or preceded(_IN, asked, match.start()):
        return True
    rest = asked.text[match.end() : match.end() + 12]
    if preceded(_AROUND, asked, match.start()):
        return bool(_LONE.match(rest))
    return bool(preceded(_FROM, asked, match.start()) and _RANGE_ON.match(rest))


def _iso(match: re.Match[str], asked: Asked) -> Period | None:
    if match["mark"] == "." and preceded(_VERSION, asked, match.start()):
        return None
    return days(date(int(match["year"]), int(match["month"]), int(match["day"])))


def _day_first(match: re.Match[str], asked: Asked) -> Period | None:
    """Dots stand for day.month.year. Strokes may be either: only what can be read in one way is."""
    a, b, number = int(match["a"]), int(match["b"]), int(match["year"])
    if b > 12:
        return days(date(number, a, b))
    if match["mark"] == "." or a > 12 or a == b:
        return days(date(number, b, a))
    return None


def _year_month(match: re.Match[str], asked: Asked) -> Period:
    return month(int(match["year"]), int(match["month"]))


def _years(match: re.Match[str], asked: Asked) -> Period | None:
    first, last = int(match["first"]), int(match["final"])
    if first >= last or not preceded(_YEAR_CUE, asked, match.start()) and not re.search(r"between $", asked.text[: match.start()][-8:]):
        return None
    return months(date(first, 1, 1), 12 * (last - first + 1), "stretch")


def _one_year(match: re.Match[str], asked: Asked) -> Period | None:
    cued = preceded(_YEAR_CUE, asked, match.start())
    return year(int(match["year"])) if cued and not _COUNTED.match(asked.text, match.end()) else None


def _decade(match: re.Match[str], asked: Asked) -> Period:
    return months(date(int(match["year"]), 1, 1), 120, "stretch")


def _ago(match: re.Match[str], asked: Asked) -> Period:
    return ago(asked.now, *counted(match))


def _stretch(match: re.Match[str], asked: Asked) -> Period:
    _, high, unit = counted(match)
    return (coming if match["which"] in ("next", "coming") else past)(asked.now, high, unit)


def _which(match: re.Match[str]) -> int:
    return {"last": -1, "previous": -1, "past": -1, "this past": -1, "next": 1, "coming": 1, "this coming": 1}.get(match["which"], 0)


def _which_unit(match: re.Match[str], asked: Asked) -> Period | None:
    steps, unit, today = _which(match), match["unit"], asked.now.date()
    rolling = "past" in match["which"] or (match["which"] == "last" and preceded(_THE, asked, match.start()))
    if rolling and unit in ("hour", "week", "month", "year"):
        return past(asked.now, 1, unit)
    if unit == "week":
        return week(today + 7 * steps * DAY)
    if unit == "weekend":
        return weekend(today + 7 * steps * DAY)
    if unit == "month":
        return months(later(today.replace(day=1), steps))
    if unit == "quarter":
        return months(later(quarter(today.year, (today.month + 2) // 3).start, 3 * steps), 3, "quarter")
    return year(today.year + steps) if unit == "year" else None


def _which_weekday(match: re.Match[str], asked: Asked) -> Period:
    steps, weekday, today = _which(match), weekday_number(match["weekday"]), asked.now.date()
    if steps < 0:
        return days(latest_weekday(today, weekday).start)
    return days(today + (weekday - today.weekday() + 7 * steps) * DAY)


def _which_one(make: Callable[[int], Period], match: re.Match[str], asked: Asked) -> Period:
    steps = _which(match)
    return (latest_over, current, next_one)[steps + 1](make, asked.now)


def _which_month(match: re.Match[str], asked: Asked) -> Period | None:
    verb = match["which"] == "this" and match["month"] in ("may", "march") and not asked.written[match.start("month")].isupper()
    if verb and not re.match(_ENDS, asked.text[match.end() : match.end() + 4]):
        return None
    return _which_one(lambda y: month(y, _month_number(match)), match, asked)


def _which_season(match: re.Match[str], asked: Asked) -> Period:
    return _which_one(_season(match), match, asked)


def _which_part(match: re.Match[str], asked: Asked) -> Period:
    return part(days(asked.now.date() + _which(match) * DAY), match["part"])


def _which_holiday(match: re.Match[str], asked: Asked) -> Period:
    return _which_one(_holiday(match), match, asked)


def _season(match: re.Match[str]) -> Callable[[int], Period]:
    name = match["season"]
    return lambda y: season(y, "autumn" if name == "fall" else name)


def _holiday(match: re.Match[str]) -> Callable[[int], Period]:
    name = match["holiday"]
    return when_holidays.ENGLISH[name if "year'" in name or "valentine'" in name else name.replace("years", "year's").replace("valentines", "valentine's")]


def _day(match: re.Match[str], asked: Asked) -> Period:
    found = days(asked.now.date() + _SPOKEN_DAYS[match["spoken"]] * DAY)
    return part(found, "night") if match["spoken"] == "tonight" else found


def _before_last(match: re.Match[str], asked: Asked) -> Period:
    unit, today = match["unit"], asked.now.date()
    if unit == "night":
        return part(days(today - 2 * DAY), "night")
    if unit in ("week", "weekend"):
        return (week if unit == "week" else weekend)(today - 14 * DAY)
    return months(later(today.replace(day=1), -2)) if unit == "month" else year(today.year - 2)


def _weekday(match: re.Match[str], asked: Asked) -> Period | None:
    """A weekday is one of last week's or this week's where something before or after it says that it is a time."""
    spelled = match[0].endswith("day")
    if _HABIT.match(asked.text, match.end()) or preceded(_EVERY, asked, match.start()):
        return None
    cued = preceded(_ON_WEEKDAY, asked, match.start())
    return latest_weekday(asked.now.date(), weekday_number(match["weekday"])) if cued or (spelled and match["tail"] is not None) else None


def _weekday_of(match: re.Match[str], asked: Asked) -> Period:
    steps = ("last", "this", "next").index(match["which"]) - 1
    monday = week(asked.now.date() + 7 * steps * DAY).start
    return days(monday + weekday_number(match["weekday"]) * DAY)


def _seasonal(match: re.Match[str], asked: Asked) -> Period:
    return _yearly(_season(match), match, asked)


def _quarterly(match: re.Match[str], asked: Asked) -> Period | None:
    name = match["quarter"]
    number = int(name[1]) if name[0] == "q" else ("fir", "sec", "thi", "fou").index(name[:3]) + 1
    if not match["year"] and not preceded(_IN, asked, match.start()):
        return None
    return _yearly(lambda y: quarter(y, number), match, asked)


def _festive(match: re.Match[str], asked: Asked) -> Period | None:
    """A holiday is a time where it has a year, or where something before it says so; a Christmas tree is none. A
    holiday that is near may be meant as well as the one a year ago: neither is taken."""
    if match["year"]:
        return _holiday(match)(_the_year(match, asked) or asked.now.year)
    if not preceded(_HOLIDAY_CUE, asked, match.start()) or _FESTIVE.match(asked.text, match.end()):
        return None
    found = latest(_holiday(match), asked.now)
    return None if again(found, 1).start - asked.now < 30 * DAY else found


def _rule(pattern: str, build: Callable[[re.Match[str], Asked], Period | None]) -> Rule:
    return re.compile(pattern), build


_WHICH = r"(?P<which>this past|this coming|last|past|previous|this|next|coming) "
_MARKED = r"(?<![.,/:$#@+])(?<![0-9]-)"
_AFTER_WEEKDAY = rf"(?P<tail>(?: |,)?(?= ?(?:morning|afternoon|evening|night)\b)|{_ENDS})?(?!,? (?:{_MONTH.replace('?P<month>', '?:')}|[0-9]))"
RULES: dict[str, tuple[Rule, ...]] = {
    "number": (
        _rule(rf"{_MARKED}{_DAY}(?:st|nd|rd|th)?{_TO_DAY}(?: of)? {_MONTH}{_OF_YEAR}", _dated),
        _rule(
            rf"{_MARKED}(?P<year>(?:19|20)[0-9]{{2}})(?P<mark>[-/.])(?P<month>1[0-2]|0?[1-9])(?P=mark)(?P<day>3[01]|[12][0-9]|0?[1-9])(?![0-9]|[-/.][0-9])",
            _iso,
        ),
        _rule(
            rf"{_MARKED}(?P<a>[0-9]{{1,2}})(?P<mark>[-/.])(?P<b>[0-9]{{1,2}})(?P=mark)(?P<year>(?:19|20)[0-9]{{2}})(?![0-9]|[-/.][0-9])",
            _day_first,
        ),
        _rule(rf"{_MARKED}(?P<year>(?:19|20)[0-9]{{2}})-(?P<month>1[0-2]|0[1-9])(?![0-9-])", _year_month),
        _rule(rf"{_MARKED}(?P<month>1[0-2]|0?[1-9])/(?P<year>(?:19|20)[0-9]{{2}})(?![0-9/])", _year_month),
        _rule(rf"{_MARKED}(?P<year>(?:19|20)[0-9]0)'?s\b", _decade),
        _rule(rf"{_MARKED}{_YEAR},? (?P<quarter>q[1-4])\b", _quarterly),
        _rule(
            rf"{_MARKED}(?P<first>(?:19|20)[0-9]{{2}})(?: ?- ?| to | and | until | through )(?P<final>(?:19|20)[0-9]{{2}})(?![0-9.])",
            _years,
        ),
        _rule(rf"{_MARKED}(?P<year>(?:19[6-9]|20[0-9])[0-9])(?![0-9:/]|[.,-][0-9])", _one_year),
        _rule(rf"{_MARKED}{_AGO}", _ago),
    ),
    "start_month": (
        _rule(rf"{_MONTH} (?:the )?{_DAY}(?:st|nd|rd|th)?{_TO_DAY}(?![0-9%]|[.:/][0-9]){_OF_YEAR}", _dated),
        _rule(rf"{_MONTH}{_OF_YEAR}", _monthly),
    ),
    "start_which": (
        _rule(rf"{_WHICH}{_COUNT} {UNIT}(?! of\b)", _stretch),
        _rule(rf"{_WHICH}(?P<unit>hour|weekend|week|month|quarter|year)\b(?! of\b)", _which_unit),
        _rule(rf"{_WHICH}{WEEKDAY}", _which_weekday),
        _rule(rf"{_WHICH}{_MONTH}(?! [0-9])", _which_month),
        _rule(rf"{_WHICH}{_SEASON}", _which_season),
        _rule(r"(?P<which>last|this) (?P<part>morning|afternoon|evening|night)\b", _which_part),
        _rule(rf"{_WHICH}{_HOLIDAY}", _which_holiday),
    ),
    "start_weekday": (
        _rule(rf"{WEEKDAY}(?: of)?,? (?P<which>last|this|next) week\b", _weekday_of),
        _rule(rf"{WEEKDAY}{_AFTER_WEEKDAY}", _weekday),
    ),
    "start_day": (
        _rule(rf"(?P<spoken>{'|'.join(_SPOKEN_DAYS)})\b", _day),
        _rule(r"(?P<unit>weekend|week|month|year|night) before last\b", _before_last),
        _rule(r"other day\b", lambda match, asked: ago(asked.now, 2, 7, "day")),
        _rule(r"earlier today\b", lambda match, asked: past(asked.now, 0, "day")),
        _rule(r"just now\b", lambda match, asked: past(asked.now, 1, "hour")),
    ),
    "start_ago": (_rule(_AGO, _ago),),
    "start_season": (_rule(rf"{_SEASON}(?: break| term| semester)?,? ?(?:of |in )?{_YEAR}", _seasonal),),
    "start_quarter": (
        _rule(rf"(?P<quarter>q[1-4]|(?:first|second|third|fourth) quarter)\b{_OF_YEAR.replace('(?:of |in )', '(?:of the |of |in )')}", _quarterly),
    ),
    "start_holiday": (_rule(rf"{_HOLIDAY}(?: day)?{_OF_YEAR}", _festive),),
    "start_soft": (_rule(r"recently|lately|these days", lambda match, asked: recently(asked.now)),),
}
