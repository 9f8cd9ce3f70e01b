"""Times in Chinese: how one may begin, and what may follow to narrow it, from the year down to the clock."""

import re
from collections.abc import Callable
from datetime import date
from functools import partial

from roomlore.core.when import chinese_words as words
from roomlore.core.when.holidays import CHINESE as HOLIDAYS
from roomlore.core.when.holidays import latest_unless_near
from roomlore.core.when.periods import (
    ONE_DAY,
    Period,
    again,
    ago,
    clock,
    current,
    days,
    edge,
    half,
    later,
    latest,
    latest_over,
    latest_weekday,
    month,
    months,
    next_one,
    nth,
    part,
    past,
    quarter,
    season,
    third,
    week,
    weekend,
    year,
)
from roomlore.core.when.rules import Asked, Build, Found, Rule, built, read

_VAGUE = {"几": (2.0, 7.0), "好几": (3.0, 9.0), "十几": (11.0, 19.0), "半": (0.5, 0.5)}
# From the words of what comes once a year a maker, from the maker and a year the period.
Maker = Callable[[int], Period]
Make = Callable[[re.Match[str]], Maker]
Narrow = Callable[[re.Match[str], Period], Period | None]
_Narrower = tuple[re.Pattern[str], Narrow]


def numeral(word: str) -> int:
    """42 from 42, 四十二 or 四二; 两 is two."""
    if word.isascii():
        return int(word)
    word = word.replace("两", "二")
    if "十" not in word:
        return int("".join(str(words.DIGITS.index(digit)) for digit in word))
    tens, ones = word.split("十", 1)
    return 10 * (words.DIGITS.index(tens) if tens else 1) + (words.DIGITS.index(ones) if ones else 0)


def _counted(match: re.Match[str]) -> tuple[float, float, str]:
    """The least and the greatest number of units meant, and the unit."""
    unit, low, high = words.UNITS[match["unit"]], match["low"] or match["from"], match["high"] or match["till"]
    if low:
        return float(numeral(low)), float(numeral(high)), unit
    if match["count"] in _VAGUE:
        return *_VAGUE[match["count"]], unit
    count = numeral(match["count"]) + (0.5 if match["more"] or match["tail"] else 0.0)
    return count, count, unit


def _ago(match: re.Match[str], asked: Asked) -> Period | None:
    """三月前 is before March; three months ago is 三个月前."""
    return None if match["unit"] == "月" and not match["of"] else ago(asked.now, *_counted(match))


def _past(match: re.Match[str], asked: Asked) -> Period | None:
    _, high, unit = _counted(match)
    return None if match["which"] == "这" and (high, unit) == (1, "day") else past(asked.now, high, unit)


def _day(match: re.Match[str], asked: Asked) -> Period:
    found = days(asked.now.date() + words.DAYS[match["day"]] * ONE_DAY)
    name = words.PARTS.get(match["part"])
    return part(found, name) if name else found


def _weekday_number(match: re.Match[str]) -> int:
    return "一二三四五六日天".index(match["weekday"]) - (match["weekday"] == "天")


def _weekday(match: re.Match[str], asked: Asked) -> Period:
    return latest_weekday(asked.now.date(), _weekday_number(match))


def _which_week(match: re.Match[str], asked: Asked) -> Period:
    return week(asked.now.date() + 7 * words.STEPS[match["which"]] * ONE_DAY)


def _which_month(match: re.Match[str], asked: Asked) -> Period:
    return months(later(asked.now.replace(day=1), words.STEPS[match["which"]]))


def _which_quarter(match: re.Match[str], asked: Asked) -> Period:
    start = quarter(asked.now.year, (asked.now.month + 2) // 3).start
    return months(later(start, 3 * words.STEPS[match["which"]]), 3, "quarter")


def _which_season(match: re.Match[str], asked: Asked) -> Period:
    return (current, next_one, latest_over)[words.STEPS[match["which"]]](_season(match), asked.now)


def _edge_of_this_month(match: re.Match[str], asked: Asked) -> Period:
    this = edge(months(asked.now.replace(day=1)), 1 if match["edge"] == "初" else 3)
    return this if this.start <= asked.now else edge(months(later(asked.now.replace(day=1), -1)), 3)


def _year_word(match: re.Match[str], asked: Asked) -> Period:
    return year(asked.now.year + words.YEARS[match["word"]])


def _year(match: re.Match[str], asked: Asked) -> Period:
    return year(numeral(match["year"]) + (2000 if len(match["year"]) == 2 else 0))


def _decade(match: re.Match[str], asked: Asked) -> Period:
    return months(date(numeral(match["year"]), 1, 1), 120, "stretch")


def _years(match: re.Match[str], asked: Asked) -> Period | None:
    first, last = numeral(match["first"]), numeral(match["last"])
    return months(date(first, 1, 1), 12 * (last - first + 1), "stretch") if first < last else None


def _some(low: float, high: float, unit: str) -> Build:
    return lambda match, asked: ago(asked.now, low, high, unit)


def _date(match: re.Match[str]) -> Maker:
    return lambda y: _day_of_month(match, month(y, numeral(match["month"])))


def _month(match: re.Match[str]) -> Maker:
    return lambda y: month(y, numeral(match["month"]))


def _months(match: re.Match[str]) -> Maker:
    first, last = numeral(match["first"]), numeral(match["last"])
    return lambda y: months(date(y, first, 1), (last - first) % 12 + 1, "stretch")


def _quarter(match: re.Match[str]) -> Maker:
    return lambda y: quarter(y, numeral(match["quarter"]))


def _half(match: re.Match[str]) -> Maker:
    return lambda y: half(y, 1 if match["half"] == "上" else 2)


def _season(match: re.Match[str]) -> Maker:
    return lambda y: season(y, words.SEASONS[match["season"]])


def _school_break(match: re.Match[str]) -> Maker:
    return lambda y: months(date(y, 7 if match["break"] == "暑" else 1, 1), 2, "season")


def _edge_of_year(match: re.Match[str]) -> Maker:
    if match["edge"] == "中":
        return lambda y: third(year(y), 2)
    return lambda y: edge(year(y), 1 if match["edge"] == "初" else 3)


def _holiday(match: re.Match[str]) -> Maker:
    return HOLIDAYS[match["holiday"]]


def _latest(make: Make) -> Build:
    return lambda match, asked: latest(make(match), asked.now)


def _of_year(make: Make) -> Narrow:
    return lambda match, period: make(match)(period.start.year)


def _day_of_month(match: re.Match[str], period: Period) -> Period:
    first = numeral(match["day"])
    count = numeral(match["last"]) - first + 1 if match["last"] else 1
    return days(date(period.start.year, period.start.month, first), count, "day" if count == 1 else "stretch")


def _third_of_month(match: re.Match[str], period: Period) -> Period:
    return third(period, {"初": 1, "上旬": 1, "中旬": 2}.get(match["third"], 3))


def _half_of_month(match: re.Match[str], period: Period) -> Period:
    middle = period.start + 15 * ONE_DAY
    ends = (period.start, middle) if match["half"] == "上" else (middle, period.end)
    return Period(*ends, "stretch", period.every)


def _nth(match: re.Match[str], period: Period) -> Period:
    what = {"周末": "weekend", "天": "day", "月": "month"}.get(match["what"], "week")
    return nth(period, numeral(match["nth"]) if match["nth"] else -1, what)


def _weekend(match: re.Match[str], period: Period) -> Period:
    return weekend(period.start)


def _weekday_of(match: re.Match[str], period: Period) -> Period:
    return days(period.start + _weekday_number(match) * ONE_DAY)


def _part(match: re.Match[str], period: Period) -> Period:
    return part(period, words.PARTS[match["part"]])


def _clock(match: re.Match[str], period: Period) -> Period | None:
    """三点 needs a part of the day before it; 15点 and 9:30 do not. At night 两点 is past midnight."""
    hour, word = numeral(match["hour"]), match["minute"]
    minute = {"半": 30, "一刻": 15, "三刻": 45}.get(word) or (int(word) if word else None)
    opening = period.start.hour if period.unit == "part" else -1
    if opening < 0 and hour < 13 and not (word or "").isdigit():
        return None
    if opening >= 17:
        hour += 24 if hour < 5 else 12 if hour <= 12 else 0
    elif opening >= 11 and hour < 11:
        hour += 12
    return clock(period, 0 if opening == 0 and hour == 12 else hour, minute)


def _rule(pattern: str, build: Build) -> Rule:
    return re.compile(pattern), build


def _narrower(pattern: str, narrow: Narrow) -> _Narrower:
    return re.compile(r"(?:的|里|份)? ?" + pattern), narrow


_FIGURES = "0123456789"
_ONES = f"12{words.NUMERALS}"
_YEARLY: tuple[tuple[str, str, Make], ...] = (
    (_FIGURES + words.NUMERALS, words.DATE, _date),
    (_FIGURES, words.BARE_DATE, _date),
    (_FIGURES + words.NUMERALS, words.MONTHS, _months),
    (words.NUMERALS, words.TWO_MONTHS, _months),
    (_FIGURES + words.NUMERALS, words.MONTH, _month),
    ("第一二三四1234", words.QUARTER, _quarter),
    ("上下", words.HALF, _half),
    ("年", rf"年{words.EDGE_OF_YEAR}", _edge_of_year),
)
# The characters a rule may begin with, and the rule; the first that fits is taken.
_RULES: tuple[tuple[str, Rule], ...] = (
    (_ONES, _rule(rf"{words.FREE}(?P<first>{words.A_YEAR}) ?年?{words.TO}(?P<last>{words.A_YEAR}) ?年", _years)),
    (_ONES, _rule(rf"{words.FREE}(?P<year>{words.A_YEAR}) ?年代", _decade)),
    (_ONES, _rule(rf"{words.FREE}(?P<year>{words.A_YEAR})(?: ?年(?!级)度?|(?=[上下]半年|[春夏秋冬][天季]))", _year)),
    (_FIGURES, _rule(rf"{words.FREE}(?P<year>[0-9]{{2}}(?=年{words.A_MONTH}月)|0[0-9])年(?!前|级)", _year)),
    ("大前去今本明后", _rule(words.YEAR_WORD, _year_word)),
    *((first, _rule(words.FREE + pattern, _latest(make))) for first, pattern, make in _YEARLY),
    (_FIGURES + words.NUMERALS + "几好半", _rule(words.AGO, _ago)),
    ("最过近这", _rule(words.PAST, _past)),
    ("前", _rule(r"(?<!之)前(?:几天|些天|些日子|几日)", _some(2, 7, "day"))),
    ("前", _rule(r"(?<!之)前两[天日]", _some(2, 3, "day"))),
    ("前", _rule(r"(?<!之)前(?:几周|几个星期|一?段时间|一?阵子|一阵)", _some(2, 7, "week"))),
    ("前", _rule(r"(?<!之)前几个月", _some(2, 7, "month"))),
    ("前", _rule(r"(?<!之)前几年", _some(2, 7, "year"))),
    ("大前昨今明后", _rule(words.DAY_WORD, _day)),
    ("刚方", _rule(r"[刚方]才", lambda match, asked: past(asked.now, 1, "hour"))),
    ("上下这本", _rule(words.WHICH_WEEK, _which_week)),
    ("上下这本", _rule(words.WHICH_MONTH, _which_month)),
    ("上下这本", _rule(rf"{words.WHICH}季度", _which_quarter)),
    ("上下这今", _rule(words.WHICH_SEASON, _which_season)),
    ("周星礼", _rule(words.ANY_WEEKDAY, _weekday)),
    ("月", _rule(rf"(?<![每蜜满腊正个])月(?P<edge>[初底末])(?![{words.NUMERALS}])", _edge_of_this_month)),
    (
        "大元情妇愚劳五儿三六青教国十万双感平圣跨复春除年清端七中重",
        _rule(words.HOLIDAY, lambda match, asked: latest_unless_near(_holiday(match), asked.now)),
    ),
)
_FIRST = "".join(dict.fromkeys("".join(first for first, _ in _RULES)))
_START = re.compile(f"[{_FIRST}]")
_BY_FIRST = {one: tuple(rule for first, rule in _RULES if one in first) for one in _FIRST}
_NARROWERS: dict[str, tuple[_Narrower, ...]] = {
    "year": (
        *(_narrower(pattern, _of_year(make)) for _, pattern, make in _YEARLY),
        _narrower(words.HOLIDAY, _of_year(_holiday)),
        _narrower(r"(?P<season>[春夏秋冬])[天季]", _of_year(_season)),
        _narrower(r"(?P<break>[暑寒])假", _of_year(_school_break)),
        _narrower(r"q(?P<quarter>[1-4])", _of_year(_quarter)),
        _narrower(words.EDGE_OF_YEAR, _of_year(_edge_of_year)),
        _narrower(words.NTH, _nth),
    ),
    "month": (
        _narrower(words.DAY_OF_MONTH, _day_of_month),
        _narrower(words.THIRD_OF_MONTH, _third_of_month),
        _narrower(r"(?P<half>[上下])半月", _half_of_month),
        _narrower(words.NTH, _nth),
    ),
    "week": (
        _narrower(r"(?:(?<=周)末|周末|周?六日)", _weekend),
        _narrower(rf"{words.WEEK}?{words.WEEKDAY}", _weekday_of),
    ),
    "day": (_narrower(words.PART, _part), _narrower(words.CLOCK, _clock)),
    "part": (_narrower(words.CLOCK, _clock),),
}
_JOIN = re.compile(words.TO)


def start(text: str, position: int) -> int:
    """The next place at which a time may begin, or -1."""
    match = _START.search(text, position)
    return match.start() if match else -1


def read_chinese(asked: Asked, position: int) -> list[Found]:
    """The time that begins at a position, narrowed as far as the text does, and one joined to it that needs it to be
    understood: 上周一到周三."""
    found = read(_BY_FIRST[asked.text[position]], asked, position)
    if found is None:
        return []
    whole, found = _steps(found, asked)
    found = Found(found.at, found.to, _begun(found.period, asked))
    joint = _JOIN.match(asked.text, found.to)
    other = _step(whole, joint.end(), asked) if joint and whole.to < found.to else None
    return [found, Found(joint.end(), other.to, other.period)] if joint and other else [found]


def narrowed(found: Found, asked: Asked) -> Found:
    """What was found, narrowed by the Chinese words that follow it: 2023-05-07下午."""
    return found if asked.text.isascii() else _steps(found, asked)[1]


def _steps(found: Found, asked: Asked) -> tuple[Found, Found]:
    """The last but one and the last step of the way down, which may be the same."""
    whole = found
    while step := _step(found, found.to, asked):
        whole, found = found, step
    return whole, found


def _step(found: Found, position: int, asked: Asked) -> Found | None:
    for pattern, narrow in _NARROWERS.get(found.period.unit, ()):
        match = pattern.match(asked.text, position)
        if match and (period := built(partial(_narrow, narrow, found.period), match, asked)):
            return Found(found.at, match.end(), period)
    return None


def _narrow(narrow: Narrow, period: Period, match: re.Match[str], asked: Asked) -> Period | None:
    return narrow(match, period)


def _begun(period: Period, asked: Asked) -> Period:
    """The end of May, asked for early in May, is last year's."""
    return again(period, -1) if period.every == "year" and period.start > asked.now else period
