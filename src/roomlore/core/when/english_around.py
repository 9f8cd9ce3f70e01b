"""English words around a period that move or narrow it: "early", "the first week of", "at 5pm", "the day before"."""

import re
from collections.abc import Callable

from roomlore.core.when import english_words as words
from roomlore.core.when.english import counted, weekday_number
from roomlore.core.when.periods import ONE_DAY, Period, ago, beside, clock, days, edge, nth, part, third, week
from roomlore.core.when.rules import Asked, Found, built, preceded

_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": -1, "final": -1}
_ORDINAL = r"(?P<ordinal>first|second|third|fourth|last|final|1st|2nd|3rd|4th)"
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


def _part_of(match: re.Match[str], period: Period) -> Period | None:
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


def _counted_off(match: re.Match[str], period: Period) -> Period:
    low, high, unit = counted(match)
    if match["side"] == "before":
        return ago(period.start, low, high, unit)
    return ago(period.end - ONE_DAY, -low, -low, unit)


def _clock(match: re.Match[str], period: Period) -> Period | None:
    """A clock's time needs a day, and "pm", a minute or a part of the day that says which half is meant."""
    hour, minute, first_half = int(match["hour"]), match["minute"], match["half"]
    if period.unit not in ("day", "part") or not (minute or first_half):
        return None
    if hour < 12 and (first_half == "p" or (not first_half and period.unit == "part" and period.start.hour >= 12)):
        hour += 12
    elif hour == 12 and first_half == "a":
        hour = 0
    return clock(period, hour, int(minute) if minute else None)


Narrow = Callable[[re.Match[str], Period], Period | None]
_AFTER: tuple[tuple[re.Pattern[str], Narrow], ...] = (
    (
        re.compile(r",?(?: in the| at)? (?:early |late )?(?P<part>morning|noon|afternoon|evening|night|midnight)\b"),
        _part_of,
    ),
    (re.compile(rf"(?:,? (?:at )?|t){_CLOCK}(?![0-9:/.-]?[0-9])"), _clock),
)
_BEFORE: tuple[tuple[re.Pattern[str], Narrow], ...] = (
    (re.compile(r"\b(?P<which>early|mid|middle|late)(?: of| in)?(?: the)?[ -]$"), _early),
    (re.compile(r"\b(?P<which>end|start|beginning)(?: of)(?: the)? $"), _edge),
    (
        re.compile(
            rf"\b{_ORDINAL} (?:(?P<what>day|week|weekend|month|quarter|half)|{words.WEEKDAY}) (?:of|in)(?: the)? $"
        ),
        _nth,
    ),
    (re.compile(r"\b(?P<day>[0-9]{1,2})(?:st|nd|rd|th) (?:day )?of (?:the )?$"), _day_of),
    (re.compile(r"\b(?P<part>morning|afternoon|evening|night) (?:of|on) (?:the )?$"), _part_of),
    (re.compile(rf"\b(?:at )?{_CLOCK} (?:on )?$"), _clock),
    (re.compile(r"\bweek of (?:the )?$"), _week_of),
    (re.compile(r"\b(?:shortly|right|just|soon|immediately) (?P<side>before|after) (?:the )?$"), _shortly),
    (re.compile(rf"\b{words.COUNT} {words.UNIT} (?P<side>before|after) (?:the )?$"), _counted_off),
    (
        re.compile(
            rf"\b(?:(?P<what>day|night|week|weekend|month|year)|{words.WEEKDAY}) (?P<side>before|after) (?:the )?$"
        ),
        _beside,
    ),
)


def narrowed(found: Found, asked: Asked) -> Found:
    """What was found, together with the words right after and right before it that say more."""
    for pattern, narrow in _AFTER:
        match = pattern.match(asked.text, found.to)
        if match and (period := _tried(narrow, match, found.period, asked)):
            found = Found(found.at, match.end(), period)
    for pattern, narrow in _BEFORE:
        match = preceded(pattern, asked, found.at)
        if match and (period := _tried(narrow, match, found.period, asked)):
            found = Found(match.start(), found.to, period)
    return found


def _tried(narrow: Narrow, match: re.Match[str], period: Period, asked: Asked) -> Period | None:
    return built(lambda match, asked: narrow(match, period), match, asked)
