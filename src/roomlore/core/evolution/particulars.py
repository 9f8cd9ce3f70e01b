"""What makes a statement a particular one, in English and Chinese: numbers, days of the week, names and denials."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from roomlore.core.text import HAN, fold

_DAY = re.compile(
    r"(?<![a-z])(?:mon|tues|wednes|thurs|fri|satur|sun)day(?=s?(?![a-z]))|(?<![a-z])weekend(?=s?(?![a-z]))"
    r"|(?:周|週|星期|礼拜|禮拜)(?P<zh>[一二三四五六日天末])(?![次年间間回遍])"
)
_SHORT_DAY = re.compile(r"\b(?:Mon|Tues?|Wed|Thu(?:rs)?|Fri|Sat|Sun)\b")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun", "weekend")
_CHINESE_DAYS = dict(zip("一二三四五六日天末", (*_DAYS[:7], "sun", "weekend"), strict=True))
_DIGITS = re.compile(r"(?<![a-z\d_.:])\d+(?:[.:]\d+)*")
_NUMERALS = {**{digit: at for at, digit in enumerate("零一二三四五六七八九")}, "〇": 0, "两": 2, "兩": 2}
_POWERS = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "萬": 10_000}
_NUMERAL = f"[{''.join(_NUMERALS)}{''.join(_POWERS)}]"
_CHINESE = re.compile(
    # Sixteen: what is longer is no number, and each run is looked at once, whatever a hostile message repeats.
    rf"(?<!{_NUMERAL})(?P<number>{_NUMERAL}{{1,16}})"
    r"(?=[点點时時号號元块塊个個次天周週月年岁歲层層楼樓位名人条條斤里米刻级級])|(?<=[点點])半"
)
_ENGLISH = {
    "half": "half",
    **{
        form: str(number)
        for number, forms in {
            2: "two second twice",
            3: "three third",
            4: "four fourth",
            5: "five fifth",
            6: "six sixth",
            7: "seven seventh",
            8: "eight eighth",
            9: "nine ninth",
            10: "ten tenth",
            11: "eleven eleventh",
            12: "twelve twelfth noon",
            15: "fifteen quarter",
            20: "twenty",
            30: "thirty",
            40: "forty",
            50: "fifty",
            100: "hundred",
        }.items()
        for form in forms.split()
    },
}
_WORD = re.compile(rf"(?<![a-z])(?:{'|'.join(_ENGLISH)})(?![a-z])")
_ONE = re.compile(r"(?<![a-z])(?:one|once|first)(?![a-z])")
_DENIAL = re.compile(
    r"\b(?:not|no|never|cannot|without|neither|nor|nobody|nothing|none|forbid(?:den|s)?|banned|prohibited"
    r"|off[ -]limits|[a-z]+n['’]t|dont|doesnt|cant|wont|isnt)\b"
    r"|不(?!过(?!敏)|過(?!敏)|[错錯仅僅但然少久断斷管论論同])|[没沒](?![错錯])|勿|[无無](?![论論])|[别別](?![人的墅忘])|禁"
)
_REMINDER = re.compile(r"\b(?:do not|don['’]?t|never) forget\b|\bno (?:doubt|problem|worries)\b|\bnot only\b")
_TURN = re.compile(
    r"\b(?:any ?more|instead|chang(?:ed?|es|ing)|mov(?:ed?|es|ing)|cancel(?:l?ed)?|stop(?:ped|s)?|clos(?:ed?|es)|over"
    r"|ended|quit|left|leav(?:es?|ing)|out|postponed|replac(?:ed?|es)|from now on|used to|wrong|only)\b"
    r"|改|换|換|取消|停|关了|關了|退出|离开|離開|搬|以后|以後|从今|只|错了|錯了|结束|結束"
)
_HAN = re.compile(f"[{HAN}]")
_NAME = re.compile(r"(?:(?<=[^\W\d_] )|(?<=[,;)] ))[A-Z][^\W\d_]*[^\W\d_A-Z]+")
_LETTERS = re.compile(r"[^\W\d_]+")
_NO_NAMES = frozenset(("Ok", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"))
_MOST_NAMES = 400


@dataclass(frozen=True, slots=True)
class Particular:
    """`kind`: 'number', 'day' or 'name'. `value`: of numbers and days the same in both languages."""

    kind: str
    value: str


class Names:
    """What is taken for a name: the speakers', and words that a text writes with a capital where no sentence begins."""

    def __init__(self, speakers: Iterable[str], texts: Iterable[str]) -> None:
        own = [name for name in speakers if (len(name) > 1 and name != name.lower()) or _HAN.search(name)]
        found = dict.fromkeys([*own, *(name for text in texts for name in _NAME.findall(text))])
        names = [name for name in found if name not in _NO_NAMES][:_MOST_NAMES]
        self._words = frozenset(name for name in names if _is_word(name))
        self._others = tuple(name for name in names if not _is_word(name))

    def within(self, text: str) -> list[str]:
        """Those that stand in it, the longest first."""
        found = self._words.intersection(_LETTERS.findall(text))
        return sorted([*found, *(name for name in self._others if name in text)], key=lambda one: (-len(one), one))


def particulars(text: str, names: Names) -> frozenset[Particular]:
    """Its numbers above one, its days of the week, and its names.

    One is left out: 'a', 'one of them' and 一起 tell nothing.
    """
    return _counted(text).union(Particular("name", name) for name in names.within(text))


def without_particulars(text: str, names: Names) -> str:
    """What is left of it, folded."""
    for name in names.within(text):
        text = text.replace(name, " ")
    rest = fold(text)
    for pattern in (_DAY, _CHINESE, _DIGITS, _WORD, _ONE):
        rest = pattern.sub(" ", rest)
    return rest


def denials(text: str) -> int:
    """How often it denies or forbids."""
    return len(_DENIAL.findall(_REMINDER.sub(" ", fold(text))))


def turns(text: str) -> bool:
    """Whether it denies, or says that something is no longer as it was."""
    return bool(denials(text) or _TURN.search(fold(text)))


@lru_cache(maxsize=1 << 12)
def _counted(text: str) -> frozenset[Particular]:
    folded = fold(text)
    days = {_CHINESE_DAYS[day["zh"]] if day["zh"] else _short(day[0]) for day in _DAY.finditer(folded)}
    days |= {_short(day.lower()) for day in _SHORT_DAY.findall(text)}
    rest = _DAY.sub(" ", folded)
    numbers = {part for run in _DIGITS.findall(rest) for part in _parts(run)}
    numbers |= {_ENGLISH[word] for word in _WORD.findall(rest)}
    numbers |= {str(_value(found["number"])) if found["number"] else "half" for found in _CHINESE.finditer(rest)}
    told = {Particular("number", one) for one in numbers - {"0", "1"}}
    return frozenset(told | {Particular("day", day) for day in days})


def _short(day: str) -> str:
    return day if day == "weekend" else day[:3]


def _parts(run: str) -> list[str]:
    """9:30 is nine and half an hour; 1.5 is one number."""
    return [("half" if at and part == "30" else part.lstrip("0") or "0") for at, part in enumerate(run.split(":"))]


def _value(numerals: str) -> int:
    """150 of 一百五十; of 二零二六 2026."""
    if not any(power in numerals for power in _POWERS):
        return int("".join(str(_NUMERALS[one]) for one in numerals))
    total, part, digit = 0, 0, 0
    for one in numerals:
        if one in _NUMERALS:
            digit = _NUMERALS[one]
        elif (power := _POWERS[one]) == 10_000:
            total, part, digit = (total + part + digit) * power, 0, 0
        else:
            part, digit = part + (digit or 1) * power, 0
    return total + part + digit


def _is_word(name: str) -> bool:
    return bool(_LETTERS.fullmatch(name)) and not _HAN.search(name)
