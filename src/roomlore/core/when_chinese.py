"""Times in Chinese: how one may begin, and what may follow to narrow it, from the year down to the clock.

Read from a text in simplified characters, one for one.
"""

import re
from collections.abc import Callable
from datetime import date
from functools import partial

from roomlore.core.when_holidays import CHINESE as HOLIDAYS
from roomlore.core.when_periods import (
    DAY,
    Period,
    again,
    ago,
    clock,
    coming,
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
    recently,
    season,
    third,
    week,
    weekend,
    year,
)
from roomlore.core.when_rules import Asked, Build, Found, Rule, built, read

_DIGITS = "零一二三四五六七八九"
_CN = "一二两三四五六七八九十"
_N = rf"(?:[0-9]{{1,3}}|[{_CN}]{{1,3}})"
_D = r"(?:3[01]|[12][0-9]|0?[1-9]|三十一?|二十[一二三四五六七八九]?|十[一二三四五六七八九]?|[一二三四五六七八九])"
_M = r"(?:1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])"
_Y = rf"(?:(?:19|20)[0-9]{{2}}|(?:一九|二零)[{_DIGITS}]{{2}})"
_FREE = rf"(?<![0-9.{_DIGITS}十百第每])(?<!每年)(?<!每年的)(?<![农阴旧]历)"
_TO = r" ?(?:-|~|到|至) ?"
_WEEK = r"(?:周|星期|礼拜)"
_WEEKDAY = (
    r"(?P<weekday>一(?!共|直(?!到|接)|起|样|些|个|次|会|定|下(?!午)|点|般|位|条|天|场|名|周|边|旦|切|律|向|度|方|只|件|番|堆|句|家|份"
    r"|遍|块|口|本|围)|[二三四五六](?!个|次|天|位|名|条|场|家|份|件|年|月|十|百|千|万|本|款|部|张|篇|项|届|福)"
    r"|日(?!程|报|常|子|志|记|期|历|本|语|文|均)|天(?!天|气|子|津|空|真|然|台|哪|王))"
)
_COUNT = (
    rf" ?(?:(?P<low>[一二两三四五六七八])(?P<high>[二三四五六七八九])|(?P<from>{_N}){_TO}(?P<till>{_N})|(?P<count>十几|好几|几|半|{_N}))"
    r" ?多?个?(?P<more>半)?(?P<unit>年|月|周(?!年|岁|边|期)|星期|礼拜|天|日|小时|钟头|分钟)(?P<tail>半)?"
)
_UNITS = {
    "年": "year", "月": "month", "周": "week", "星期": "week", "礼拜": "week", "天": "day", "日": "day",
    "小时": "hour", "钟头": "hour", "分钟": "minute",
}  # fmt: skip
_PARTS = {
    "凌晨": "small hours", "清晨": "early morning", "早晨": "morning", "早上": "morning", "一早": "morning",
    "上午": "morning", "早": "morning", "晨": "morning", "中午": "noon", "午后": "afternoon", "下午": "afternoon",
    "傍晚": "evening", "晚上": "night", "夜里": "night", "夜晚": "night", "晚间": "night", "夜间": "night",
    "晚": "night", "夜": "night", "深夜": "midnight", "半夜": "midnight",
}  # fmt: skip
_SEASONS = {"春": "spring", "夏": "summer", "秋": "autumn", "冬": "winter"}
_YEAR_WORDS = {"大前年": -3, "前年": -2, "去年": -1, "今年": 0, "本年": 0, "明年": 1, "后年": 2}
_DAY_WORDS = {"大前": -3, "前": -2, "昨": -1, "今": 0, "明": 1, "后": 2, "大后": 3}
_WHICH = r"(?P<which>上上|上|下下|下|这|本)一?个?"
_STEPS = {"上上": -2, "上": -1, "这": 0, "本": 0, "今": 0, "下": 1, "下下": 2}
_HOLIDAY = (
    r"(?P<holiday>元旦|情人节|妇女节|愚人节|劳动节|五一(?!路|广场|大道|街|村|[零一二三四五六七八九十百千万点两])|儿童节|教师节"
    r"|(?<![李王张刘陈杨赵黄周吴徐孙马朱胡林郭何高罗])国庆|十一(?=假期|长假|期间|黄金周)|万圣节|双十一|双11|双十二|感恩节|平安夜|圣诞"
    r"|跨年|复活节|春节|除夕|年三十|年初一|元宵节|清明(?=节|假|期间|放|那|时|前|后|的|$|[ ?,。!])|端午|七夕|中秋|重阳节)"
    r"(?:劳动节|节|夜)?(?:小?长假|假期|黄金周|期间|当天|那天)?(?!树|老人|礼物|帽|卡|歌|粽|月饼|红包|快乐|档|装|路|服)"
)


def numeral(word: str) -> int:
    """42 from 42, 四十二 or 四二; 两 is two."""
    if word.isascii():
        return int(word)
    word = word.replace("两", "二")
    if "十" not in word:
        return int("".join(str(_DIGITS.index(digit)) for digit in word))
    tens, ones = word.split("十", 1)
    return 10 * (_DIGITS.index(tens) if tens else 1) + (_DIGITS.index(ones) if ones else 0)


def _counted(match: re.Match[str]) -> tuple[float, float, str]:
    """The least and the greatest number of units meant, and the unit."""
    unit = _UNITS[match["unit"]]
    low, high = match["low"] or match["from"], match["high"] or match["till"]
    if low:
        return float(numeral(low)), float(numeral(high)), unit
    vague = {"几": (2.0, 7.0), "好几": (3.0, 9.0), "十几": (11.0, 19.0), "半": (0.5, 0.5)}
    if match["count"] in vague:
        return *vague[match["count"]], unit
    count = numeral(match["count"]) + (0.5 if match["more"] or match["tail"] else 0.0)
    return count, count, unit


def _ago(match: re.Match[str], asked: Asked) -> Period | None:
    """三月前 is before March; three months ago is 三个月前."""
    month_name = match["unit"] == "月" and "个" not in match[0]
    return None if month_name else ago(asked.now, *_counted(match))


def _past(match: re.Match[str], asked: Asked) -> Period | None:
    _, high, unit = _counted(match)
    if match["which"] == "这" and high == 1 and unit == "day":
        return None
    return (coming if match["which"] in ("未来", "接下来") else past)(asked.now, high, unit)


def _day(match: re.Match[str], asked: Asked) -> Period:
    found = days(asked.now.date() + _DAY_WORDS[match["day"]] * DAY)
    name = _PARTS.get(match["part"])
    return part(found, name) if name else found


def _weekday(match: re.Match[str], asked: Asked) -> Period:
    return latest_weekday(asked.now.date(), _weekday_number(match))


def _weekday_number(match: re.Match[str]) -> int:
    return "一二三四五六日天".index(match["weekday"]) - (match["weekday"] == "天")


def _which_week(match: re.Match[str], asked: Asked) -> Period:
    return week(asked.now.date() + 7 * _STEPS[match["which"]] * DAY)


def _which_month(match: re.Match[str], asked: Asked) -> Period:
    return months(later(asked.now.replace(day=1), _STEPS[match["which"]]))


def _which_quarter(match: re.Match[str], asked: Asked) -> Period:
    start = quarter(asked.now.year, (asked.now.month + 2) // 3).start
    return months(later(start, 3 * _STEPS[match["which"]]), 3, "quarter")


def _which_season(match: re.Match[str], asked: Asked) -> Period:
    find = {-1: latest_over, 0: current, 1: next_one}[_STEPS[match["which"]]]
    return find(_season(match), asked.now)


def _edge_of_month(match: re.Match[str], asked: Asked) -> Period:
    this = edge(months(asked.now.replace(day=1)), 1 if match["edge"] == "初" else 3)
    return this if this.start <= asked.now else edge(months(later(asked.now.replace(day=1), -1)), 3)


def _this_year(match: re.Match[str], asked: Asked) -> Period:
    return year(asked.now.year + _YEAR_WORDS[match["word"]])


def _year(match: re.Match[str], asked: Asked) -> Period:
    return year(numeral(match["year"]))


def _short_year(match: re.Match[str], asked: Asked) -> Period:
    return year(2000 + int(match["year"]))


def _decade(match: re.Match[str], asked: Asked) -> Period:
    return months(date(numeral(match["year"]), 1, 1), 120, "stretch")


def _years(match: re.Match[str], asked: Asked) -> Period | None:
    first, last = numeral(match["first"]), numeral(match["last"])
    return months(date(first, 1, 1), 12 * (last - first + 1), "stretch") if first < last else None


# What comes once a year: from the words a maker, from the maker and a year the period.
Maker = Callable[[int], Period]


def _date(match: re.Match[str]) -> Maker:
    number, first = numeral(match["month"]), numeral(match["day"])
    count = numeral(match["last"]) - first + 1 if match["last"] else 1
    return lambda y: days(date(y, number, first), count, "day" if count == 1 else "stretch")


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
    return lambda y: season(y, _SEASONS[match["season"]])


def _school_break(match: re.Match[str]) -> Maker:
    return lambda y: months(date(y, 7, 1), 2, "season") if match["holidays"] == "暑" else months(date(y, 1, 1), 2, "season")


def _edge_of_year(match: re.Match[str]) -> Maker:
    number = {"初": 1, "中": 2}.get(match["edge"], 3)
    return lambda y: third(year(y), 2) if number == 2 else edge(year(y), number)


def _holiday(match: re.Match[str]) -> Maker:
    return HOLIDAYS[match["holiday"]]


def _latest(make: Callable[[re.Match[str]], Maker]) -> Build:
    return lambda match, asked: latest(make(match), asked.now)


def _not_near(match: re.Match[str], asked: Asked) -> Period | None:
    """A holiday that is near may be meant as well as the one a year ago: neither is taken."""
    found = latest(_holiday(match), asked.now)
    return None if again(found, 1).start - asked.now < 30 * DAY else found


def _rule(pattern: str, build: Build) -> Rule:
    return re.compile(pattern), build


_DATE = rf"(?P<month>{_M}) ?月 ?(?P<day>{_D}) ?(?:(?:日|号)?{_TO}(?P<last>{_D}) ?)?(?:日|号(?!楼|线|店|门|机))"
_MONTHS = rf"(?P<first>{_M}){_TO}(?P<last>{_M}) ?月份?"
_MONTH = rf"(?P<month>{_M}) ?月份?(?!天(?!气)|饼|卡|嫂|初[{_CN}]|廿|[{_CN}]次)"
_HALF = r"(?P<half>[上下])半年"
_EDGE = r"(?P<edge>初(?![一二三四中级恋次始期吻夏春秋冬雪])|底(?![下部层线特薪片])|末(?![班日期世尾])|(?<=年)中(?![国秋学考旬午文心超间]))"
_YEARLY: tuple[tuple[str, str, Callable[[re.Match[str]], Maker]], ...] = (
    (f"0123456789{_CN}", _DATE, _date),
    (f"0123456789{_CN}", _MONTHS, _months),
    (f"0123456789{_CN}", _MONTH, _month),
    ("第一二三四1234", r"第?(?P<quarter>[一二三四1-4]) ?季度", _quarter),
    ("上下", rf"{_HALF}", _half),
    ("年", rf"年{_EDGE}", _edge_of_year),
)
_RULES: tuple[tuple[str, Rule], ...] = (
    ("12一二", _rule(rf"{_FREE}(?P<first>{_Y}) ?年?{_TO}(?P<last>{_Y}) ?年", _years)),
    ("12一二", _rule(rf"{_FREE}(?P<year>{_Y}) ?年代", _decade)),
    ("12一二", _rule(rf"{_FREE}(?P<year>{_Y}) ?年(?!级)度?", _year)),
    ("0123456789", _rule(rf"{_FREE}(?P<year>[0-9]{{2}})年(?={_M}月)", _short_year)),
    ("大前去今本明后", _rule(
        r"(?<![过如之以目当年月天日周后然证声])(?P<word>大前年|前年|去年|今年(?!轻)|本年(?!级)|明年|后年)度?", _this_year)),
    *((chars, _rule(_FREE + pattern, _latest(make))) for chars, pattern, make in _YEARLY),
    (f"0123456789{_CN}几好半", _rule(rf"(?<![第0-9.{_CN}]){_COUNT}(?:之前|以前|前)(?!后|面|台|夕|景|提|辈|途)", _ago)),
    ("最过近这未接", _rule(
        rf"(?<![附将接靠临])(?P<which>最近|过去|近|这|未来|接下来)的?这?{_COUNT}(?:以来|之内|以内|内|里|中|间)?", _past)),
    ("前", _rule(r"(?<!之)前(?:几天|些天|些日子|几日)", lambda match, asked: ago(asked.now, 2, 7, "day"))),
    ("前", _rule(r"(?<!之)前(?:两天|两日)", lambda match, asked: ago(asked.now, 2, 3, "day"))),
    ("前", _rule(r"(?<!之)前(?:几周|几个星期|一?段时间|一?阵子|一阵)", lambda match, asked: ago(asked.now, 2, 7, "week"))),
    ("前", _rule(r"(?<!之)前几个月", lambda match, asked: ago(asked.now, 2, 7, "month"))),
    ("前", _rule(r"(?<!之)前几年", lambda match, asked: ago(asked.now, 2, 7, "year"))),
    ("大前昨今明后", _rule(
        r"(?<![如当目之以周年月日期前先午然最证声聪])(?P<day>大前|大后|前|昨|今|明|后)(?P<part>天|日|儿个?|晚|夜|早|晨)"
        r"(?<!后[日晚夜早晨])(?<!前[夜早晨])(?!头条|方舟|气(?!温|象)|才|性|努力|培养|形成|期)", _day)),
    ("刚方", _rule(r"(?:刚|方)才", lambda match, asked: past(asked.now, 1, "hour"))),
    ("上下这本", _rule(
        rf"(?<![晚早马网线路街赶加天地以]){_WHICH}{_WEEK}(?![边岁年长围刊转到身]|期(?![中末])|报)", _which_week)),
    ("上下这本", _rule(rf"(?<![天地晚登马]){_WHICH}月(?![球亮光台老饼牙色圆嫂])份?", _which_month)),
    ("上下这本", _rule(rf"{_WHICH}季度", _which_quarter)),
    ("上下这本今", _rule(r"(?P<which>上|下|这|今)个?(?P<season>[春夏秋冬])(?:天|季)?(?<![上下这][春夏秋冬])", _which_season)),
    ("周星礼", _rule(rf"(?<![0-9{_CN}几每个半整逢满隔双单老小]){_WEEK}{_WEEKDAY}", _weekday)),
    ("月", _rule(r"(?<![每蜜满腊正个])月(?P<edge>[初底末])(?![一二三四五六七八九十])", _edge_of_month)),
    ("元情妇愚劳五儿教国十万双感平圣跨复春除年清端七中重", _rule(_HOLIDAY, _not_near)),
    ("最近这", _rule(r"(?<![附将接靠临])(?:最近(?![的一距邻])|近来|近期|近日|这段时间|这阵子|这些天)", lambda match, asked: recently(asked.now))),
)  # fmt: skip
_FIRST = "".join({char: "" for chars, _ in _RULES for char in chars})
_START = re.compile(f"[{_FIRST}]")
_BY_FIRST = {char: tuple(rule for chars, rule in _RULES if char in chars) for char in _FIRST}

Narrow = Callable[[re.Match[str], Period], Period | None]
_Narrower = tuple[re.Pattern[str], Narrow]


def _of_year(make: Callable[[re.Match[str]], Maker]) -> Narrow:
    return lambda match, period: make(match)(period.start.year)


def _day_of_month(match: re.Match[str], period: Period) -> Period:
    first = numeral(match["day"])
    last = numeral(match["last"]) if match["last"] else first
    start = date(period.start.year, period.start.month, first)
    end = date(period.start.year, period.start.month, last)
    return days(start, (end - start).days + 1, "day" if first == last else "stretch")


def _third_of_month(match: re.Match[str], period: Period) -> Period:
    return third(period, {"初": 1, "上旬": 1, "中旬": 2}.get(match["third"], 3))


def _half_of_month(match: re.Match[str], period: Period) -> Period:
    middle = period.start + 15 * DAY
    ends = (period.start, middle) if match["half"] == "上" else (middle, period.end)
    return Period(*ends, "stretch", period.every)


def _nth(match: re.Match[str], period: Period) -> Period:
    what = {"周末": "weekend", "天": "day", "个月": "month"}.get(match["what"], "week")
    return nth(period, numeral(match["nth"]) if match["nth"] else -1, what)


def _weekday_of(match: re.Match[str], period: Period) -> Period:
    return days(period.start + _weekday_number(match) * DAY)


def _part(match: re.Match[str], period: Period) -> Period:
    return part(period, _PARTS[match["part"]])


def _clock(match: re.Match[str], period: Period) -> Period | None:
    """三点 needs a part of the day before it; 15点 and 9:30 do not."""
    hour, word = numeral(match["hour"]), match["minute"]
    minute = {None: None, "半": 30, "一刻": 15, "三刻": 45}[word] if word in (None, "半", "一刻", "三刻") else numeral(word)
    opening = period.start.hour if period.unit == "part" else -1
    if opening < 0 and hour < 13 and match["mark"] != ":":
        return None
    if opening >= 17:
        hour += 24 if hour < 5 else 12 if hour <= 12 else 0
    elif opening >= 11 and hour < 11:
        hour += 12
    return clock(period, 0 if opening == 0 and hour == 12 else hour, minute)


def _narrower(pattern: str, narrow: Narrow) -> _Narrower:
    return re.compile(r"(?:的|里|份)? ?" + pattern), narrow


_NTH = rf"(?:第(?P<nth>[一二三四五1-5])|最后一?)个?(?P<what>周末|周|星期|礼拜|天|个?月)(?![一二三四五六日](?![个次天位]))"
_PART = (
    r"(?P<part>凌晨|清晨|早晨|早上|一早|上午|中午|午后|下午|傍晚|晚上|夜里|夜晚|晚间|夜间|深夜|半夜"
    r"|晚(?![饭餐会点安宴年期辈自了间])|早(?![餐饭点就已期年教恋安]))"
)
_NARROWERS: dict[str, tuple[_Narrower, ...]] = {
    "year": (
        *(_narrower(pattern, _of_year(make)) for _, pattern, make in _YEARLY),
        _narrower(_HOLIDAY, _of_year(_holiday)),
        _narrower(r"(?P<season>[春夏秋冬])[天季]", _of_year(_season)),
        _narrower(r"(?P<holidays>[暑寒])假", _of_year(_school_break)),
        _narrower(r"q(?P<quarter>[1-4])", _of_year(_quarter)),
        _narrower(_EDGE, _of_year(_edge_of_year)),
        _narrower(_NTH, _nth),
    ),
    "month": (
        _narrower(rf"(?P<day>{_D}) ?(?:(?:日|号)?{_TO}(?P<last>{_D}) ?)?(?:日|号(?![楼线店门机]))", _day_of_month),
        _narrower(rf"月?(?P<third>初(?![{_CN}])|上旬|中旬|下旬|底(?![下部层线特薪])|末)", _third_of_month),
        _narrower(r"(?P<half>[上下])半月", _half_of_month),
        _narrower(_NTH, _nth),
    ),
    "week": (
        _narrower(r"(?<=周)末|周末", lambda match, period: weekend(period.start)),
        _narrower(rf"{_WEEK}?{_WEEKDAY}", _weekday_of),
    ),
    "day": (_narrower(_PART, _part),),
    "part": (),
}
_CLOCK = _narrower(
    rf"(?P<hour>2[0-4]|1[0-9]|0?[0-9]|{_M})(?P<mark>点|时(?![候间刻代常期尚])|:)"
    r"(?P<minute>半|一刻|三刻|(?<=点)[0-5]?[0-9](?=分)|(?<=:)[0-5][0-9])?(?:分|钟)?(?!都|也|儿|没|不|小|了|击|评|赞|餐)",
    _clock,
)
_JOIN = re.compile(_TO)


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
    other = _step(whole, joint.end(), asked) if joint and whole is not found else None
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
    unit = found.period.unit
    rules = _NARROWERS.get(unit, ()) + ((_CLOCK,) if unit in ("day", "part") else ())
    for pattern, narrow in rules:
        match = pattern.match(asked.text, position)
        if match and (period := built(partial(_narrowed, narrow, found.period), match, asked)):
            return Found(found.at, match.end(), period)
    return None


def _narrowed(narrow: Narrow, period: Period, match: re.Match[str], asked: Asked) -> Period | None:
    return narrow(match, period)


def _begun(period: Period, asked: Asked) -> Period:
    """The end of May, asked for early in May, is last year's."""
    return again(period, -1) if period.every == "year" and period.start > asked.now else period
