"""Compare statements by their words: likeness, numbers, days, names, denials, and what an update leaves out; and
recognise two that say the same in other words or in the other language."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from roomlore.core import lexicon
from roomlore.core.evolution.prompt import comparison_form, offered_as
from roomlore.core.patterns import lazy_pattern
from roomlore.core.subjects import FIELDS, subjects
from roomlore.core.text import HAN, fold, language, terms

_OTHERWISE = 0.8
"""The maximum for two statements that each say something that the other does not."""


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of one statement: in order, and as a set."""

    in_order: Sequence[str]
    different: frozenset[str]


def likeness(text: str, other: str) -> float:
    """Return the likeness in [0, 1]; 1 if they differ only in word forms and in words without meaning of their own."""
    short, long = sorted((_words(text), _words(other)), key=lambda words: len(words.in_order))
    if not short.in_order:
        return 0.0
    shared = len(short.different & long.different)
    if shared == len(short.different) and _is_within(short.in_order, iter(long.in_order)):
        return 2 * len(short.in_order) / (len(short.in_order) + len(long.in_order))
    return min(2 * shared / (len(short.different) + len(long.different)), _OTHERWISE)


@lru_cache(maxsize=1 << 12)
def _words(statement: str) -> _Words:
    """Return stems of words, and single Chinese characters, since pairs would change at every insertion."""
    in_order = tuple(term for term in terms(statement) if not _is_pair(term))
    return _Words(in_order, frozenset(in_order))


def _is_pair(term: str) -> bool:
    return len(term) == 2 and all(ord(character) > 0x2E7F for character in term)


def _is_within(short: Sequence[str], long: Iterator[str]) -> bool:
    return all(word in long for word in short)


_WEEKDAY, _WEEK_SIGN = lexicon.forms("weekday", "en"), lexicon.forms("week", "zh")
# A further day in a row, such as 三 in 周一三五; in 周一三点 it is an hour.
_NEXT_DAY = "[一二三四五六日](?![点點时時刻楼樓号號個个月次十百分班人块塊起定般样樣直共天下切些早旦家])"
# A weekday or a weekend, in the plural too; 周一次 and 周年 are none.
_DAY = lazy_pattern(
    rf"(?<![a-z])(?:{_WEEKDAY}|weekend)(?=s?(?![a-z]))"
    rf"|{_WEEK_SIGN}(?P<zh>[一二三四五六日天末](?:{_NEXT_DAY})*)(?![次年间間回遍])"
)
# Which week a day is of, right before the day.
_WEEK_OF_DAY = lazy_pattern(rf"[上下这這本]{{1,2}}[个個]?(?={_WEEK_SIGN})|\b(?:next|last|this)(?= {_WEEKDAY})")
# A weekday cut short, with a capital letter: sun and sat are also other words, and SUN a name.
_SHORT_DAY = lazy_pattern(rf"\b(?=[A-Z][a-z])(?i:{lexicon.forms('weekday_short', 'en')})\b")
_DAYS = (*lexicon.values("weekdays", "en"), "weekend")
_CHINESE_DAYS = dict(zip("一二三四五六日天末", (*_DAYS[:7], "sun", "weekend"), strict=True))
# A number, with its point or colon; 2 in v2 is none.
_DIGITS = lazy_pattern(r"(?<![a-z\d_.:])\d+(?:[.:]\d+)*")
# A number with commas, or with a unit of thousands.
_THOUSANDS = lazy_pattern(
    r"(?<![\d.:])(?P<whole>\d{1,3}(?:,\d{3})+)(?!\d)|(?<![\d.:])(?P<short>\d{1,6}) ?(?P<unit>[万萬k千])(?![a-z])"
)
_UNITS = {"万": 10_000, "萬": 10_000, "千": 1000, "k": 1000}
_NUMERALS = lexicon.values("digits", "zh")
_POWERS = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "萬": 10_000}
_NUMERAL = f"[{''.join(_NUMERALS)}{''.join(_POWERS)}]"
_PER_ONE = lazy_pattern(rf"(?<!{_NUMERAL})(?P<price>{_NUMERAL}{{1,8}})(?=一[斤个個件只次盒箱张張位人杯瓶份米晚天节節])")
"""A price: 二十二一斤 is 22 for one pound."""
# A Chinese number above nine, or one before what it counts. Sixteen: a longer run is not a number, and each run is
# read once, even in hostile messages.
_CHINESE = lazy_pattern(
    rf"(?<!{_NUMERAL})(?P<amount>[一二两兩三四五六七八九][十百千万萬]{_NUMERAL}{{0,14}})(?!{_NUMERAL})"
    rf"|(?<!{_NUMERAL})(?P<number>{_NUMERAL}{{1,16}})"
    r"(?=[点點时時号號元块塊个個次天周週月年岁歲层層楼樓位名人条條斤里米刻级級])|(?<=[点點])半"
)
_MONTHS = lexicon.values("months", "en")
# A month with a capital letter; May only beside a number or after in or of.
_MONTH = lazy_pattern(
    r"\b(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)(?:uary|ruary|ch|il|e|y|ust|ember|ober)?\b|\bMay\b(?= \d)"
    r"|(?<=\d )May\b|(?<=\bin )May\b|(?<=\bof )May\b"
)
_ENGLISH = lexicon.values("counted_words", "en")
# A number above one in words; none in someone is one.
_WORD = lazy_pattern(rf"(?<![a-z])(?:{'|'.join(_ENGLISH)})(?![a-z])")
# The number one, which says nothing.
_ONE = lazy_pattern(r"(?<![a-z])(?:one|once|first)(?![a-z])")
_DENIAL = lexicon.pattern("denial")
_REMINDER = lexicon.pattern("reminder")
_TURN = lexicon.pattern("turn")
_CHANGED = lexicon.pattern("changed")
_UNCHANGED = lexicon.pattern("unchanged")
_PROHIBITION = lexicon.pattern("adverse")
# A Chinese character.
_HAN = lazy_pattern(f"[{HAN}]")
# A word with a capital letter that does not begin a sentence and has small letters, unlike NASA.
_NAME = lazy_pattern(r"(?:(?<=[^\W\d_] )|(?<=[,;)] ))[A-Z][^\W\d_]*[^\W\d_A-Z]+")
# A run of letters.
_LETTERS = lazy_pattern(r"[^\W\d_]+")
_WEEK = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NO_NAMES = frozenset(("Ok", *_WEEK, *(f"{day}s" for day in _WEEK)))
_MAX_NAMES = 400


@dataclass(frozen=True, slots=True)
class Detail:
    """A particular. `kind`: 'number', 'day' or 'name'. `value`: for numbers and days the same in both languages."""

    kind: str
    value: str


class Names:
    """Names: those of the speakers, and words with a capital letter that do not begin a sentence."""

    def __init__(self, speakers: Iterable[str], texts: Iterable[str]) -> None:
        own = [name for name in speakers if (len(name) > 1 and name != name.lower()) or _HAN.search(name)]
        own_names = dict.fromkeys([*own, *(name for text in texts for name in _NAME.findall(text))])
        names = [name for name in own_names if name not in _NO_NAMES][:_MAX_NAMES]
        self._words = frozenset(name for name in names if _is_word(name))
        self._others = tuple(name for name in names if not _is_word(name))

    def within(self, text: str) -> list[str]:
        """Return the names that occur in the text, the longest first."""
        known_names = self._words.intersection(_LETTERS.findall(text))
        return sorted(
            [*known_names, *(name for name in self._others if name in text)], key=lambda name: (-len(name), name)
        )


def details(text: str, names: Names) -> frozenset[Detail]:
    """Return its numbers above one, its days of the week, and its names.

    The number one is omitted: 'a', 'one of them' and 一起 carry no information.
    """
    return _counted(text).union(Detail("name", name) for name in names.within(text))


def without_details(text: str, names: Names) -> str:
    """Return the text without its particulars, folded."""
    for name in names.within(text):
        text = text.replace(name, " ")
    rest = fold(text)
    for pattern in (_WEEK_OF_DAY, _DAY, _CHINESE, _DIGITS, _WORD, _ONE):
        rest = pattern.sub(" ", rest)
    return rest


def negations(text: str) -> int:
    """Return the number of denials and prohibitions."""
    return len(_DENIAL.findall(_REMINDER.sub(" ", fold(text))))


def signals_change(text: str) -> bool:
    """Return True if it denies, or says that something is no longer as it was."""
    return bool(negations(text) or _TURN.search(fold(text)))


def says_change(text: str) -> bool:
    """Return True if it says that something is no longer as it was."""
    return bool(_CHANGED.search(fold(text)))


def refuses_change(text: str) -> bool:
    """Return True if it says that something stays as it is."""
    return bool(_UNCHANGED.search(fold(text)))


def adverse(text: str) -> frozenset[str]:
    """Return the words by which it forbids, ends or warns of something without a denial."""
    return frozenset(_PROHIBITION.findall(fold(text)))


def forbids(text: str) -> bool:
    """Return True if it denies, forbids or ends something, or warns of it."""
    return bool(negations(text) or _PROHIBITION.search(fold(text)))


# A name that begins a statement, by the verb after it.
_FIRST_NAME = lazy_pattern(rf"\A(?P<en>[A-Z][a-z]+)(?=['’]s |,? {lexicon.forms('after_name', 'en')}\b)")
_COMMON_SUBJECTS = lexicon.words("common_subject")
_SURNAMES = "".join(sorted(lexicon.words("surname")))
# A surname and a name, by what follows; not in the middle of a run.
_CHINESE_NAME = lazy_pattern(
    rf"(?<![{HAN}])(?P<name>[{_SURNAMES}][{HAN}]{{1,2}}?|[老小阿][{HAN}])(?={lexicon.forms('after_name', 'zh')})"
)


def new_names(text: str) -> Iterator[str]:
    """Yield the names that its grammar shows, of people who may have said nothing."""
    if (first := _FIRST_NAME.match(text)) and fold(first["en"]) not in _COMMON_SUBJECTS:
        yield first["en"]
    yield from (match["name"] for match in _CHINESE_NAME.finditer(text))


@lru_cache(maxsize=1 << 12)
def _counted(text: str) -> frozenset[Detail]:
    folded = _THOUSANDS.sub(_written_out, fold(text))
    days = {name for day in _DAY.finditer(folded) for name in _day_names(day)}
    days |= {_short(day.lower()) for day in _SHORT_DAY.findall(text)}
    rest = _DAY.sub(" ", folded)
    numbers = {str(_MONTHS[month[:3].lower()]) for month in _MONTH.findall(text)}
    numbers |= {part for run in _DIGITS.findall(rest) for part in _parts(run)}
    numbers |= {_ENGLISH[word] for word in _WORD.findall(rest)}
    prices = [match["price"] for match in _PER_ONE.finditer(rest)]
    numbers |= {str(_value(price)) for price in prices}
    rest = _PER_ONE.sub(" ", rest) if prices else rest
    numbers |= {_chinese_number(match) for match in _CHINESE.finditer(rest)}
    number_details = {Detail("number", number) for number in numbers - {"0", "1"}}
    return frozenset(number_details | {Detail("day", day) for day in days})


def _written_out(number: re.Match[str]) -> str:
    """Return 50000 for '50,000', '50k' and '5万'."""
    whole = number["whole"]
    return whole.replace(",", "") if whole else str(int(number["short"]) * _UNITS[number["unit"]])


def _day_names(day: re.Match[str]) -> list[str]:
    """Return one name, or several of a list such as 周一三五."""
    return [_CHINESE_DAYS[numeral] for numeral in day["zh"]] if day["zh"] else [_short(day[0])]


def _short(day: str) -> str:
    return day if day == "weekend" else day[:3]


def _parts(run: str) -> list[str]:
    """Split a run: 9:30 becomes nine and half an hour; 1.5 is one number."""
    return [("half" if at and part == "30" else part.lstrip("0") or "0") for at, part in enumerate(run.split(":"))]


def _chinese_number(match: re.Match[str]) -> str:
    numerals = match["amount"] or match["number"]
    return str(_value(numerals)) if numerals else "half"


def _value(numerals: str) -> int:
    """Return the value: 150 of 一百五十; 2026 of 二零二六."""
    if not any(power in numerals for power in _POWERS):
        return int("".join(str(_NUMERALS[sign]) for sign in numerals))
    total, part, digit, least = 0, 0, 0, 1
    for sign in numerals:
        if sign in _NUMERALS:
            digit = _NUMERALS[sign]
            least = 1 if digit == 0 else least
        elif (power := _POWERS[sign]) == 10_000:
            total, part, digit, least = (total + part + digit) * power, 0, 0, power // 10
        else:
            part, digit, least = part + (digit or 1) * power, 0, power // 10
    # 四千五 is 4500, but 一百零五 is 105.
    return total + part + digit * least


def _is_word(name: str) -> bool:
    return bool(_LETTERS.fullmatch(name)) and not _HAN.search(name)


_RELATED = 1 / 3
"""Least share of the shorter statement's words in both, if they have the same subject."""
_STILL = 0.7
"""Least share of a memory's words in a message that says it."""
_HAN_WORD = 3
"""Chinese characters that may be one word or name."""
_GENERAL = lexicon.words("general_term")


class ParsedText:
    """A parsed text. `words`: its content words, without names, numbers, days and common words; in Chinese single
    characters. `pairs`: neighbouring Chinese characters."""

    def __init__(self, text: str, names: Names) -> None:
        self.text = text
        self._names = names

    @cached_property
    def details(self) -> frozenset[Detail]:
        return details(self.text, self._names)

    @cached_property
    def named(self) -> frozenset[Detail]:
        return frozenset(detail for detail in self.details if detail.kind == "name")

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(term for term in self._terms if not _is_pair(term))

    @cached_property
    def distinctive(self) -> frozenset[str]:
        """Return the stems and the pairs of Chinese characters; single characters are too frequent."""
        return frozenset(term for term in self._terms if _is_pair(term) or term[0] < "\u2e80")

    @cached_property
    def negations(self) -> int:
        return negations(self.text)

    @cached_property
    def signals_change(self) -> bool:
        return signals_change(self.text)

    @cached_property
    def _terms(self) -> list[str]:
        return [term for term in terms(without_details(self.text, self._names)) if term not in _GENERAL]


class ParsedMaterial:
    """The messages by handle, as 'name: text', and the memories. Each text is parsed once."""

    def __init__(self, lines: Mapping[str, str], statements: Sequence[str]) -> None:
        speakers = {line.partition(": ")[0].partition(" (re ")[0] for line in lines.values()}
        self._names = Names(sorted(speakers), [*lines.values(), *statements])
        self._found: dict[str, ParsedText] = {}
        self._lines = lines

    @property
    def every(self) -> list[ParsedText]:
        return [self.of(line) for line in self._lines.values()]

    def cited(self, handles: Sequence[str]) -> list[ParsedText]:
        """Return the wordings of the messages with these handles."""
        return [self.of(line) for handle in handles if (line := offered_as(handle, self._lines))]

    def of(self, text: str) -> ParsedText:
        if text not in self._found:
            self._found[text] = ParsedText(text, self._names)
        return self._found[text]


def is_related(memory: ParsedText, statement: ParsedText) -> bool:
    """Return True if both have the same subject."""
    if not memory.words or not statement.words:
        return bool(set(terms(memory.text)) & set(terms(statement.text)))
    return len(memory.words & statement.words) >= _RELATED * min(len(memory.words), len(statement.words))


def is_mentioned(wording: ParsedText, messages: Sequence[ParsedText]) -> bool:
    """Return True if a message has a word or a name of it, in Chinese two neighbouring characters."""
    return any(wording.distinctive & message.distinctive or wording.named & message.named for message in messages)


def still_says(memory: ParsedText, messages: Sequence[ParsedText]) -> bool:
    """Return True if a message says what the memory says and no message about it withdraws it."""
    shares = [(_share(memory, message), message) for message in messages]
    same = any(share >= _STILL and _same_polarity(memory, message) for share, message in shares)
    return same and all(
        _same_polarity(memory, message) or not message.signals_change for share, message in shares if share
    )


def loss_reason(
    memory: ParsedText, statement: ParsedText, messages: Sequence[ParsedText], *, merged: bool = False
) -> str:
    """Return the reason why the statement must not replace the memory, though both have the same subject; '' if it may.

    `merged`: it replaces other memories too, so it may say more.
    """
    if comparison_form(memory.text) == comparison_form(statement.text):
        return ""
    lost = _lost_detail(memory, statement, messages) or _lost_negation(memory, statement, messages)
    return (
        lost
        if lost or merged
        else _added_negation(memory, statement, messages) or _lost_words(memory, statement, messages)
    )


def _share(memory: ParsedText, message: ParsedText) -> float:
    return len(memory.words & message.words) / len(memory.words) if memory.words else 0.0


def _same_polarity(wording: ParsedText, other: ParsedText) -> bool:
    return bool(wording.negations) == bool(other.negations)


def _lost_detail(memory: ParsedText, statement: ParsedText, messages: Sequence[ParsedText]) -> str:
    """Return the reason for a lost particular. One that a message withdraws or replaces may be dropped."""
    off = {detail for message in messages if message.signals_change for detail in message.details}
    named = {detail for message in messages for detail in message.details}
    new = {detail.kind for detail in (statement.details - memory.details) & named}
    gone = [detail for detail in memory.details - statement.details - off if detail.kind not in new]
    first = min(((detail.kind, detail.value) for detail in gone), default=None)
    return f"It drops the {first[0]} {first[1]!r}, and no message gives another or calls it off." if first else ""


def _lost_negation(memory: ParsedText, statement: ParsedText, messages: Sequence[ParsedText]) -> str:
    about = _about(memory, statement, messages)
    if statement.negations < memory.negations and all(message.negations for message in about):
        return "It no longer denies what the memory denies, and no message says so."
    return ""


def _added_negation(memory: ParsedText, statement: ParsedText, messages: Sequence[ParsedText]) -> str:
    about = _about(memory, statement, messages)
    if statement.negations > memory.negations and not any(message.negations for message in about):
        return "It denies what the memory says, and no message does."
    return ""


def _about(memory: ParsedText, statement: ParsedText, messages: Sequence[ParsedText]) -> list[ParsedText]:
    return [message for message in messages if message.words & (memory.words | statement.words)]


def _lost_words(memory: ParsedText, statement: ParsedText, messages: Sequence[ParsedText]) -> str:
    """Return the reason for lost words. A statement that only leaves words out, or replaces several by one, needs a
    message that does so."""
    put = statement.words - memory.words
    if not memory.words - statement.words:
        return ""
    counted = statement.details - memory.details - statement.named
    if not put and not counted and not any(message.signals_change for message in messages):
        return "It only leaves out a part of the memory."
    if put and _is_a_word(put) and not any(put & message.words for message in messages):
        return "It differs from the memory in a word that no message says."
    return ""


def _is_a_word(put: frozenset[str]) -> bool:
    return len(put) <= (1 if any(term[0] < "\u2e80" for term in put) else _HAN_WORD)


# Words of two letters and more.
_WORDS = lazy_pattern(r"[^\W_]{2,}")
REPEATED = 0.8
"""The least likeness of two messages that say one thing again."""
SAME = 0.9
"""The similarity of two statements that say the same in other words."""
_SHARE, _FEWEST = 0.75, 3
"""The least that statements without numbers and days share: a part of the shorter one's words, and a number of
words."""
_SHARE_COUNTED, _FEWEST_COUNTED = 0.5, 2
"""The same if their numbers and days are equal."""


def similarity(text: str, other: str) -> float:
    """Return how much two statements say the same, in [0, 1]: their likeness, or more if only the wording differs."""
    like = likeness(text, other)
    return SAME if like < SAME and says_the_same(text, other) else like


def says_the_same(text: str, other: str) -> bool:
    """Return True if two statements have the same numbers, days and names, the same polarity, and enough words in
    common; in two languages the same numbers or days, and a subject that both name. Without embeddings nothing more is
    known of words in two languages."""
    first, second = _read(text), _read(other)
    if _counted_alike(first) != _counted_alike(second) or bool(first.negations) != bool(second.negations):
        return False
    if language(text) != language(other):
        return (
            bool(_counted_alike(first))
            and _names(first) <= _names(second) | set(other.split())
            and _meets(first, second)
        )
    share, fewest = (_SHARE_COUNTED, _FEWEST_COUNTED) if _counted_alike(first) else (_SHARE, _FEWEST)
    return _overlaps(first, second, share=share, fewest=fewest)


def is_one_subject(text: str, other: str) -> bool:
    """Return True if two statements of one language speak of one subject: they have numbers or days, the same names and
    polarity, and enough words in common. What they say of it may differ."""
    first, second = _read(text), _read(other)
    if not _counted_alike(first) or not _counted_alike(second) or language(text) != language(other):
        return False
    same = bool(first.negations) == bool(second.negations)
    return same and _overlaps(first, second, share=_SHARE_COUNTED, fewest=_FEWEST_COUNTED)


@dataclass(frozen=True, slots=True)
class ParsedMessage:
    """A message on which a statement rests. `speaker`: their name."""

    speaker: str
    text: str


def rests_on_the_same(
    statement: str, utterances: Sequence[ParsedMessage], other: str, heard: Sequence[ParsedMessage]
) -> bool:
    """Return True if a statement says of one matter what another says or said, in any wording or language: they have
    the same polarity, and messages of `utterances`, which supports the first, repeat messages of `heard`, which
    supports the other.

    Their numbers and days are the same, or the message says that they changed. A statement that names its speaker rests
    on what that person says.
    """
    first, second = _read(statement), _read(other)
    if not _counted_alike(first) or not _counted_alike(second) or bool(first.negations) != bool(second.negations):
        return False
    if language(statement) == language(other) and _names(first) != _names(second):
        return False
    both, same = f"{statement}\n{other}", _counted_alike(first) == _counted_alike(second)
    return any(
        (utterance.speaker == two.speaker or not (_is_named(utterance.speaker, both) or _is_named(two.speaker, both)))
        and (_repeats(utterance.text, two.text) if same else _says_anew(utterance.text, two.text, first, second))
        for utterance in utterances
        for two in heard
    )


def _is_named(speaker: str, text: str) -> bool:
    """Return True if a text has the name, or a word of it."""
    name, folded = fold(speaker), fold(text)
    return (language(name) == "zh" and name in folded) or not {*_WORDS.findall(name)}.isdisjoint(_WORDS.findall(folded))


def _repeats(text: str, other: str) -> bool:
    return _counted_alike(_read(text)) == _counted_alike(_read(other)) and likeness(text, other) >= REPEATED


def _says_anew(text: str, other: str, statement: ParsedText, earlier: ParsedText) -> bool:
    """Return True if two messages differ only in their numbers and days, those of the statements, and the first says
    that something changed."""
    values = _counted_alike(_read(text)), _counted_alike(_read(other))
    if not says_change(text) or not (_counted_alike(statement) <= values[0] and _counted_alike(earlier) <= values[1]):
        return False
    bare = [without_details(text, Names((), (text,))) for text in (text, other)]
    return likeness(*bare) >= REPEATED


def _overlaps(wording: ParsedText, other: ParsedText, *, share: float, fewest: int) -> bool:
    common = len(wording.distinctive & other.distinctive)
    fewest += language(wording.text) == "zh"  # the pairs of one word overlap
    enough = common >= fewest and common >= share * min(len(wording.distinctive), len(other.distinctive))
    return enough and _names(wording) == _names(other)


@lru_cache(maxsize=1 << 12)
def _read(statement: str) -> ParsedText:
    return ParsedText(statement, Names((), (statement,)))


def _counted_alike(wording: ParsedText) -> frozenset[object]:
    return frozenset(wording.details - wording.named)


def _names(wording: ParsedText) -> set[str]:
    return {detail.value for detail in wording.named}.union(new_names(wording.text))


def _meets(wording: ParsedText, other: ParsedText) -> bool:
    """Return True if both name the same subject, or share a word that is written alike."""
    shared = {word for word in wording.words & other.words if word.isascii() and len(word) > 2}
    return bool(shared) or bool((subjects(wording.text) & subjects(other.text)) - FIELDS)
