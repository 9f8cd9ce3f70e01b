"""The vocabulary of times in Chinese, as patterns of simplified characters.

Most look-arounds resolve ambiguous text: 上周一共 (last week altogether) is not 上周一 (Monday of last week), 五月天 is
a band, 马上周末了 is not about a last weekend.
"""

import re
from collections.abc import Callable
from datetime import date
from functools import partial

from roomlore.core import lexicon
from roomlore.core.dates.calendar import CHINESE as HOLIDAYS
from roomlore.core.dates.calendar import (
    ONE_DAY,
    Build,
    NamedPeriod,
    Period,
    Rule,
    TimeQuestion,
    again,
    ago,
    built,
    clock,
    current,
    days,
    edge,
    half,
    later,
    latest_over,
    month,
    months,
    next_one,
    nth,
    part,
    past,
    quarter,
    read,
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

DIGITS = "零一二三四五六七八九"
NUMERALS = "一二两三四五六七八九十"
STEPS = lexicon.values("steps", "zh")
YEARS = lexicon.values("spoken_years", "zh")
DAYS = lexicon.values("spoken_days", "zh")
WEEKDAYS = lexicon.values("weekdays", "zh")
SEASONS = lexicon.values("seasons", "zh")
UNITS = lexicon.values("units", "zh")
PARTS = lexicon.values("parts_of_day", "zh")

TO = r" ?(?:-|~|到|至) ?"
# Not inside a longer number, nor "every year" or a date of the Chinese calendar.
FREE = rf"(?<![0-9.{DIGITS}十百第每])(?<!每年)(?<!每年的)(?<![农阴旧]历)"
NUMBER = rf"(?:[0-9]{{1,3}}|[{NUMERALS}]{{1,3}})"
A_YEAR = rf"(?:(?:19|20)[0-9]{{2}}|(?:一九|二零)[{DIGITS}]{{2}})"
A_MONTH = r"(?:1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])"
A_DAY = r"(?:3[01]|[12][0-9]|0?[1-9]|三十一?|二十[一二三四五六七八九]?|十[一二三四五六七八九]?|[一二三四五六七八九])"
DAY_OF_MONTH = rf"(?P<day>{A_DAY}) ?(?:[日号]?(?:{TO}|[、和及])(?P<last>{A_DAY}) ?)?(?:日|号(?![楼线店门机]))"
DATE = rf"(?P<month>{A_MONTH}) ?月 ?{DAY_OF_MONTH}"
BARE_DATE = (
    r"(?P<month>1[0-2]|0?[1-9]) ?月 ?(?P<day>3[01]|[12][0-9]|0?[1-9])(?P<last>)(?=[那这当]天|[早晚上中下 ?,，。!]|$)"
)
MONTHS = rf"(?P<first>{A_MONTH})(?:{TO}|、)(?P<last>{A_MONTH}) ?月份?"
TWO_MONTHS = r"(?P<first>[一二三四五六七八])(?P<last>[二三四五六七八九])月份?"
MONTH = rf"(?P<month>{A_MONTH}) ?月份?(?!天(?!气)|饼|卡|嫂|龄|十五(?![日号])|初[{NUMERALS}]|廿|[{NUMERALS}]次)"
THIRD_OF_MONTH = rf"月?(?P<third>初(?![{NUMERALS}])|上旬|中旬|下旬|底(?![下部层线特薪])|末)"
QUARTER = r"第?(?P<quarter>[一二三四1-4]) ?季度"
HALF = r"(?P<half>[上下])半年"
EDGE_OF_YEAR = (
    r"(?P<edge>初(?![一二三四中级恋次始期吻夏春秋冬雪])|底(?![下部层线特薪片])|末(?![班日期世尾])"
    r"|(?<=年)中(?![国秋学考旬午文心超间]))"
)
WEEK = lexicon.forms("week", "zh")
WHICH = r"(?P<which>上上|上|下下|下|这|本)一?个?"
WHICH_WEEK = rf"(?<![晚早马网线路街赶加天地以]){WHICH}{WEEK}(?![边岁年长围刊转到身报]|期(?![中末]))"
WHICH_MONTH = rf"(?<![天地晚登马]){WHICH}月(?![球亮光台老饼牙色圆嫂])份?"
WHICH_SEASON = r"(?P<which>上|下|这|今)个?(?P<season>[春夏秋冬])[天季]?(?<![上下这][春夏秋冬])"
WEEKDAY = (
    r"(?P<weekday>一(?!直(?!到|接)|下(?!午)|[共起样些个次会定点般位条天场名周边旦切律向度方只件番堆句家份遍块口本围])"
    r"|[二三四五六](?![个次天位名条场家份件年月十百千万本款部张篇项届]|(?<=六)福)"
    r"|日(?![程报常子志记期历本语文均])|天(?![天气子津空真然台哪王]))"
)
ANY_WEEKDAY = rf"(?<![0-9{NUMERALS}几每个半整逢满隔双单老小]){WEEK}{WEEKDAY}"
NTH = r"(?:第(?P<nth>[一二三四五1-5])|最后一?)个?(?P<what>周末|周|星期|礼拜|天|月)"
YEAR_WORD = r"(?<![过如之以目当年月天日周后然证声])(?P<word>大前年|前年|去年|今年(?!轻)|本年(?!级)|明年|后年)度?"
DAY_WORD = (
    r"(?<![如当目之以周年月日期前先午然最证声聪])(?<!年的)(?P<day>大前|大后|前|昨|今|明|后)(?P<part>天|日|儿个?|晚|夜|早|晨)"
    r"(?<!后[日晚夜早晨])(?<!前[夜早晨])(?!头条|方舟|气(?!温|象)|才|性|努力|培养|形成|期)"
)
PART = (
    r"(?P<part>凌晨|清晨|早晨|早上|一早|上午|中午|午后|下午|傍晚|晚上|夜里|夜晚|晚间|夜间|深夜|半夜"
    r"|晚(?![饭餐会点安宴年期辈自了间])|早(?![餐饭点就已期年教恋安]))"
)
CLOCK = (
    rf"(?P<hour>2[0-4]|1[0-9]|0?[0-9]|{A_MONTH}|两)(?P<mark>点|时(?![候间刻代常期尚])|:)"
    r"(?P<minute>半|一刻|三刻|(?<=点)[0-5]?[0-9](?=分)|(?<=:)[0-5][0-9])?[分钟]?(?![都也儿没不小了击评赞餐])"
)
COUNT = (
    r" ?(?:(?P<low>[一二两三四五六七八])(?P<high>[二三四五六七八九])"
    rf"|(?P<from>{NUMBER}){TO}(?P<till>{NUMBER})|(?P<count>十几|好几|几|半|{NUMBER}))"
    r" ?多?(?P<of>个)?多?(?P<more>半)?(?P<unit>年|月|周(?![年岁边期])|星期|礼拜|天|日|小时|钟头|分钟)(?P<tail>半)?多?"
)
AGO = rf"(?<![第0-9.{NUMERALS}]){COUNT}(?:之前|以前|前)(?![后面台夕景提辈途])"
PAST = rf"(?<![附将接靠临])(?P<which>最近|过去|近|这)的?这?{COUNT}(?:以来|之内|以内|内|里|中|间)?"
HOLIDAY = (
    rf"大?(?P<holiday>元旦|情人节|妇女节|愚人节|劳动节|五一(?!路|广场|大道|街|村|[{NUMERALS}零百千万点])|儿童节|三八(?=妇女|节)|六一(?=儿童|节)|青年节"
    r"|教师节|(?<![李王张刘陈杨赵黄周吴徐孙马朱胡林郭何高罗])国庆|十一(?=假期|长假|期间|黄金周)|万圣节"
    r"|双十一|双11|双十二|双12|感恩节|平安夜|圣诞|跨年|复活节|春节|除夕|年三十|年初一|元宵节"
    r"|清明(?=[节假期放那时前后的 ?,。!]|$)|端午|七夕|中秋|重阳节)"
    r"(?:(?:劳动|妇女|儿童)?节|夜)?(?:小?长假|假期|黄金周|期间|当天|那天)?(?![树帽卡歌粽档装路服]|老人|礼物|月饼|红包|快乐)"
)


_VAGUE = lexicon.values("vague_counts", "zh")
# From the names of yearly events to a maker, which gives the period of a year.
Maker = Callable[[int], Period]
Make = Callable[[re.Match[str]], Maker]
Narrow = Callable[[re.Match[str], Period], Period | None]
_Narrower = tuple[re.Pattern[str], Narrow]


def numeral(word: str) -> int:
    """Return the value: 42 from 42, 四十二 or 四二; 两 is two."""
    if word.isascii():
        return int(word)
    word = word.replace("两", "二")
    if "十" not in word:
        return int("".join(str(DIGITS.index(digit)) for digit in word))
    tens, ones = word.split("十", 1)
    return 10 * (DIGITS.index(tens) if tens else 1) + (DIGITS.index(ones) if ones else 0)


def _counted(match: re.Match[str]) -> tuple[float, float, str]:
    """Return the least and the greatest number of units meant, and the unit."""
    unit, low, high = UNITS[match["unit"]], match["low"] or match["from"], match["high"] or match["till"]
    if low:
        return float(numeral(low)), float(numeral(high)), unit
    if match["count"] in _VAGUE:
        return *_VAGUE[match["count"]], unit
    count = numeral(match["count"]) + (0.5 if match["more"] or match["tail"] else 0.0)
    return count, count, unit


def _ago(match: re.Match[str], question: TimeQuestion) -> Period | None:
    """Return the period some time ago. 三月前 is before March; three months ago is 三个月前."""
    return None if match["unit"] == "月" and not match["of"] else ago(question.now, *_counted(match))


def _past(match: re.Match[str], question: TimeQuestion) -> Period | None:
    _, high, unit = _counted(match)
    return None if match["which"] == "这" and (high, unit) == (1, "day") else past(question.now, high, unit)


def _day(match: re.Match[str], question: TimeQuestion) -> Period:
    day_period = days(question.now.date() + DAYS[match["day"]] * ONE_DAY)
    name = PARTS.get(match["part"])
    return part(day_period, name) if name else day_period


def _weekday_number(match: re.Match[str]) -> int:
    return int(WEEKDAYS[match["weekday"]])


def _which_week(match: re.Match[str], question: TimeQuestion) -> Period:
    return week(question.now.date() + 7 * STEPS[match["which"]] * ONE_DAY)


def _which_month(match: re.Match[str], question: TimeQuestion) -> Period:
    return months(later(question.now.replace(day=1), STEPS[match["which"]]))


def _which_quarter(match: re.Match[str], question: TimeQuestion) -> Period:
    start = quarter(question.now.year, (question.now.month + 2) // 3).start
    return months(later(start, 3 * STEPS[match["which"]]), 3, "quarter")


def _which_season(match: re.Match[str], question: TimeQuestion) -> Period:
    return (current, next_one, latest_over)[STEPS[match["which"]]](_season(match), question.now)


def _edge_of_this_month(match: re.Match[str], question: TimeQuestion) -> Period:
    first, number = question.now.replace(day=1), 1 if match["edge"] == "初" else 3
    this = edge(months(first), number)
    if question.ahead:
        return this if this.end > question.now else edge(months(later(first, 1)), number)
    return this if this.start <= question.now else edge(months(later(first, -1)), 3)


def _year(match: re.Match[str], question: TimeQuestion) -> Period:
    return year(numeral(match["year"]) + (2000 if len(match["year"]) == 2 else 0))


def _decade(match: re.Match[str], question: TimeQuestion) -> Period:
    return months(date(numeral(match["year"]), 1, 1), 120, "stretch")


def _years(match: re.Match[str], question: TimeQuestion) -> Period | None:
    first, last = numeral(match["first"]), numeral(match["last"])
    return months(date(first, 1, 1), 12 * (last - first + 1), "stretch") if first < last else None


def _units_ago(low: float, high: float, unit: str) -> Build:
    return lambda match, question: ago(question.now, low, high, unit)


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
    return lambda y: season(y, SEASONS[match["season"]])


def _school_break(match: re.Match[str]) -> Maker:
    return lambda y: months(date(y, 7 if match["break"] == "暑" else 1, 1), 2, "season")


def _edge_of_year(match: re.Match[str]) -> Maker:
    if match["edge"] == "中":
        return lambda y: third(year(y), 2)
    return lambda y: edge(year(y), 1 if match["edge"] == "初" else 3)


def _holiday(match: re.Match[str]) -> Maker:
    return HOLIDAYS[match["holiday"]]


def _latest(make: Make) -> Build:
    return lambda match, question: recurring(make(match), question)


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


def _part(match: re.Match[str], period: Period) -> Period:
    return part(period, PARTS[match["part"]])


def _clock(match: re.Match[str], period: Period) -> Period | None:
    """Return the clock time. 三点 needs a part of the day before it; 15点 and 9:30 do not. At night 两点 is past
    midnight."""
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
    return lazy_pattern(pattern), build


def _narrower(pattern: str, narrow: Narrow) -> _Narrower:
    return lazy_pattern(r"(?:的|里|份)? ?" + pattern), narrow


_FIGURES = "0123456789"
_ONES = f"12{NUMERALS}"
_YEARLY: tuple[tuple[str, str, Make], ...] = (
    (_FIGURES + NUMERALS, DATE, _date),
    (_FIGURES, BARE_DATE, _date),
    (_FIGURES + NUMERALS, MONTHS, _months),
    (NUMERALS, TWO_MONTHS, _months),
    (_FIGURES + NUMERALS, MONTH, _month),
    ("第一二三四1234", QUARTER, _quarter),
    ("上下", HALF, _half),
    ("年", rf"年{EDGE_OF_YEAR}", _edge_of_year),
)
# The characters a rule may begin with, and the rule; the first match is used.
_RULES: tuple[tuple[str, Rule], ...] = (
    (_ONES, _rule(rf"{FREE}(?P<first>{A_YEAR}) ?年?{TO}(?P<last>{A_YEAR}) ?年", _years)),
    (_ONES, _rule(rf"{FREE}(?P<year>{A_YEAR}) ?年代", _decade)),
    (_ONES, _rule(rf"{FREE}(?P<year>{A_YEAR})(?: ?年(?!级)度?|(?=[上下]半年|[春夏秋冬][天季]))", _year)),
    (_FIGURES, _rule(rf"{FREE}(?P<year>[0-9]{{2}}(?=年{A_MONTH}月)|0[0-9])年(?!前|级)", _year)),
    ("大前去今本明后", _rule(YEAR_WORD, lambda match, question: year(question.now.year + YEARS[match["word"]]))),
    *((first, _rule(FREE + pattern, _latest(make))) for first, pattern, make in _YEARLY),
    (_FIGURES + NUMERALS + "几好半", _rule(AGO, _ago)),
    ("最过近这", _rule(PAST, _past)),
    ("前", _rule(r"(?<!之)前(?:几天|些天|些日子|几日)", _units_ago(2, 7, "day"))),
    ("前", _rule(r"(?<!之)前两[天日]", _units_ago(2, 3, "day"))),
    ("前", _rule(r"(?<!之)前(?:几周|几个星期|一?段时间|一?阵子|一阵)", _units_ago(2, 7, "week"))),
    ("前", _rule(r"(?<!之)前几个月", _units_ago(2, 7, "month"))),
    ("前", _rule(r"(?<!之)前几年", _units_ago(2, 7, "year"))),
    ("大前昨今明后", _rule(DAY_WORD, _day)),
    ("刚方", _rule(r"[刚方]才", lambda match, question: past(question.now, 1, "hour"))),
    ("上下这本", _rule(WHICH_WEEK, _which_week)),
    ("上下这本", _rule(WHICH_MONTH, _which_month)),
    ("上下这本", _rule(rf"{WHICH}季度", _which_quarter)),
    ("上下这今", _rule(WHICH_SEASON, _which_season)),
    ("周星礼", _rule(ANY_WEEKDAY, lambda match, question: recurring_weekday(question, _weekday_number(match)))),
    ("月", _rule(rf"(?<![每蜜满腊正个])月(?P<edge>[初底末])(?![{NUMERALS}])", _edge_of_this_month)),
    (
        "大元情妇愚劳五儿三六青教国十万双感平圣跨复春除年清端七中重",
        _rule(HOLIDAY, lambda match, question: recurring_unless_near(_holiday(match), question)),
    ),
)
_FIRST = "".join(dict.fromkeys("".join(first for first, _ in _RULES)))
# A character with which a time may begin; the rules of the others are not tried.
_START = lazy_pattern(f"[{_FIRST}]")
_BY_FIRST = {character: tuple(rule for first, rule in _RULES if character in first) for character in _FIRST}
_NARROWERS: dict[str, tuple[_Narrower, ...]] = {
    "year": (
        *(_narrower(pattern, _of_year(make)) for _, pattern, make in _YEARLY),
        _narrower(HOLIDAY, _of_year(_holiday)),
        _narrower(r"(?P<season>[春夏秋冬])[天季]", _of_year(_season)),
        _narrower(r"(?P<break>[暑寒])假", _of_year(_school_break)),
        _narrower(r"q(?P<quarter>[1-4])", _of_year(_quarter)),
        _narrower(EDGE_OF_YEAR, _of_year(_edge_of_year)),
        _narrower(NTH, _nth),
    ),
    "month": (
        _narrower(DAY_OF_MONTH, _day_of_month),
        _narrower(THIRD_OF_MONTH, _third_of_month),
        _narrower(r"(?P<half>[上下])半月", _half_of_month),
        _narrower(NTH, _nth),
    ),
    "week": (
        _narrower(r"(?:(?<=周)末|周末|周?六日)", lambda match, period: weekend(period.start)),
        _narrower(rf"{WEEK}?{WEEKDAY}", lambda match, period: days(period.start + _weekday_number(match) * ONE_DAY)),
    ),
    "day": (_narrower(PART, _part), _narrower(CLOCK, _clock)),
    "part": (_narrower(CLOCK, _clock),),
}
# What joins two times: 上周一到周三.
_JOIN = lazy_pattern(TO)


def start(text: str, position: int) -> int:
    """Return the next position at which a time may begin, or -1."""
    match = _START.search(text, position)
    return match.start() if match else -1


def read_chinese(question: TimeQuestion, position: int) -> list[NamedPeriod]:
    """Return the time that begins at a position, narrowed as far as possible, joined with a second one that depends on
    it: 上周一到周三."""
    hit = read(_BY_FIRST[question.text[position]], question, position)
    if hit is None:
        return []
    whole, hit = _steps(hit, question)
    hit = NamedPeriod(hit.at, hit.to, _begun(hit.period, question))
    joint = _JOIN.match(question.text, hit.to)
    other = _step(whole, joint.end(), question) if joint and whole.to < hit.to else None
    return [hit, NamedPeriod(joint.end(), other.to, other.period)] if joint and other else [hit]


def narrowed(hit: NamedPeriod, question: TimeQuestion) -> NamedPeriod:
    """Return the period narrowed by the Chinese words that follow it: 2023-05-07下午."""
    return hit if question.text.isascii() else _steps(hit, question)[1]


def _steps(hit: NamedPeriod, question: TimeQuestion) -> tuple[NamedPeriod, NamedPeriod]:
    """Return the last but one and the last step of narrowing, which may be the same."""
    whole = hit
    while step := _step(hit, hit.to, question):
        whole, hit = hit, step
    return whole, hit


def _step(hit: NamedPeriod, position: int, question: TimeQuestion) -> NamedPeriod | None:
    for pattern, narrow in _NARROWERS.get(hit.period.unit, ()):
        match = pattern.match(question.text, position)
        if match and (period := built(partial(_narrow, narrow, hit.period), match, question)):
            return NamedPeriod(hit.at, match.end(), period)
    return None


def _narrow(narrow: Narrow, period: Period, match: re.Match[str], question: TimeQuestion) -> Period | None:
    return narrow(match, period)


def _begun(period: Period, question: TimeQuestion) -> Period:
    """Return the latest period that has begun: the end of May, asked for early in May, is last year's; or the next that
    has not ended."""
    if period.every != "year":
        return period
    if question.ahead:
        return again(period, 1) if period.end <= question.now else period
    return again(period, -1) if period.start > question.now else period
