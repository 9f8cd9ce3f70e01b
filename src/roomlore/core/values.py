"""The values that a message tells - days, times, numbered places, amounts - each with the words of its own clause."""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from roomlore.core import lexicon
from roomlore.core.patterns import lazy_pattern
from roomlore.core.text import ENGLISH, HAN, head, segment, terms, words

DAY, CLOCK, NUMBER = "day", "clock", "number"
"""Kinds of values: a number is an amount without a unit."""
NUMBERED = "numbered "
"""What the kind of a numbered place begins with."""
SELF = "我"
"""The word by which a clause tells of the speaker."""
_PLACES, _PLACES_HAN = lexicon.forms("numbered_place", "en"), lexicon.forms("numbered_place", "zh")
_NUMERAL = "半一二两兩三四五六七八九十廿百千"
_MEASURE = lexicon.forms("measure", "zh")
_WORD, _DOSE, _PART = (lexicon.forms(name, "en") for name in ("number_word", "counted_dose", "fraction"))
_AFTER = lexicon.alternatives("number_after")
# A value that a later one may replace, by its kind: a day, a time, a numbered place, an amount with what may be a unit.
_VALUE = lazy_pattern(
    rf"(?P<day>{lexicon.alternatives('value_day')})|(?P<clock>{lexicon.alternatives('value_clock')})"
    rf"|(?P<numbered>\b{_PLACES} \d{{1,4}}[a-z]?\b|(?:\d{{1,4}}|[{_NUMERAL}]{{1,4}})[号號]?{_PLACES_HAN})"
    rf"|(?P<amount>(?P<currency>{lexicon.forms('currency', 'en')} ?)?(?<![A-Za-z\d.+<])\d{{1,12}}(?:[.,/]\d{{1,6}})*"
    rf"(?: ?[%°℃](?: ?[CF]\b)?|[万萬千](?:\d+千?)?(?:{_MEASURE})?|k\b| ?{_MEASURE}| ?(?P<unit>[a-z]{{1,12}})\b(?!['’])"
    rf"|(?P<han>[{HAN}]{{1,4}})|(?![A-Za-z\d_:]))"
    rf"|\b(?:(?:one|{_WORD}|\d{{1,2}}) and )?(?:an? )?{_PART}(?: of)?(?: an? [a-z]{{2,12}}| (?:an? )?{_DOSE})\b"
    rf"|\b(?:an?|one)[ -]{_DOSE}\b|\b{_WORD}[ -](?P<counted>[a-z]{{2,12}})\b|{_AFTER}(?:one|{_WORD})\b"
    rf"|{_AFTER}[{_NUMERAL}]{{1,4}}(?=[\s，。！,.!了吧]|\Z)"
    rf"|(?![一1](?:[个個](?![半小月])|[天张張节節年份位人]))[{_NUMERAL}]{{1,4}}(?:分之[一二三四])?{_MEASURE})",
    re.IGNORECASE,
)
# What a text must contain for a value to be found: looking for it is many times as fast.
_HINT = lazy_pattern(
    rf"[\d{_NUMERAL}明今后後周週]|星期|[礼禮]拜"
    r"|\b(?:mon|tue|wed|thu|fri|sat|sun|tonight|tomorrow|noon|midnight|(?:an? )?(?:half|quarter|third|eighth)"
    rf"|{_WORD}|(?:it|to) one|an? {_DOSE}|one {_DOSE})",
    re.IGNORECASE,
)
# The number of an amount; what is left is its unit.
_NUMBER = lazy_pattern(
    rf"[\d.,/\s-]+(?:[万萬千](?:\d+千?)?)?|[{_NUMERAL}]+(?:分之[{_NUMERAL}]+)?|半\Z|\b(?:{_PART}|{_WORD}|and|one|of|an?)\b",
    re.IGNORECASE,
)
# A value after one of these is the old one.
_DENIED = lazy_pattern(rf"{lexicon.alternatives('old_value')}\s?\Z", re.IGNORECASE)
# A value before one of these cannot be had any longer.
_UNUSABLE = lexicon.pattern("unusable", re.IGNORECASE)
# Before the old value, and between the old one and the new.
_FROM, _TO = (
    lazy_pattern(rf"{lexicon.alternatives('value_from')}\s?\Z", re.IGNORECASE),
    lazy_pattern(rf"\s?{lexicon.alternatives('value_to')}", re.IGNORECASE),
)
# What stands before a time of day.
_AT = lazy_pattern(rf"{lexicon.alternatives('before_time')}\s?\Z", re.IGNORECASE)
# What a time of day may leave out.
_HOUR = lazy_pattern(r"(?::00|(?::00)?[ap]m)\Z")
# Where a clause ends; a comma inside a number and the point of an abbreviation end none.
CLAUSE_END = lexicon.pattern("clause_end", re.IGNORECASE)
# What follows a value belongs to it, as in "8 at night".
_AFTER_VALUE = lexicon.pattern("after_value", re.IGNORECASE)
_SAME_UNIT = {form: unit for language in ("en", "zh") for form, unit in lexicon.values("unit_forms", language).items()}
_NO_SUBJECT = lexicon.words("no_value_subject")
_LETTERS = lexicon.words("unit_letter")
_NEVER_UNITS = lexicon.words("no_unit")
_SIDES = {word: side for language in ("en", "zh") for word, side in lexicon.values("sides", language).items()}
# A word that says which of two or three is meant, such as the morning or the left one.
_SIDE = lazy_pattern(
    "|".join(
        rf"\b{word}s?\b" if word.isascii() else word
        for word in sorted(_SIDES, key=lambda word: (-len(word), word))
        if len(word) > 1 and word not in ("left", "right")
    )
    + rf"|{lexicon.alternatives('hand_side')}|{lexicon.alternatives('bare_side')}"
)
# The whole of an amount.
_TOTAL, _ALL = lexicon.pattern("total_amount", re.IGNORECASE), "total"
# The speaker.
_SELF = lazy_pattern(r"\b(?:i|my|mine|me)\b|我", re.IGNORECASE)
# A thing of which there are several, with its number.
_PLACE = lazy_pattern(rf"\b[a-z]{{3,12}} \d{{1,4}}\b(?![.:,/]\d)|\d{{1,4}}[号號]?{_PLACES_HAN}", re.IGNORECASE)
# A letter that is the name of one of several, such as incubator B.
_LETTER = lazy_pattern(
    rf"(?<![A-Za-z\d])[B-HJ-Z](?![A-Za-z\d'’])|(?<=[a-z] )A\b(?! [a-z]+ [a-z]+ing\b)|(?<![A-Za-z\d])A(?=[{HAN}])"
)
# The comma between thousands.
_THOUSANDS = lazy_pattern(r",(?=\d{3}(?!\d))")
# A Chinese number below a hundred.
_TENS = lazy_pattern(r"(?:(?P<tens>[一二两兩三四五六七八九])?(?P<ten>十))?(?P<ones>[一二两兩三四五六七八九])?")
# The words and figures of a time of day.
_CLOCK_WORDS = lazy_pattern(r"\d+|[a-z]+|[一二两兩三四五六七八九十]+")
_FRACTIONS = {part: value for language in ("en", "zh") for part, value in lexicon.values("fractions", language).items()}
# What a Chinese weekday begins with.
_WEEK = lazy_pattern(lexicon.alternatives("week"))
# A day of the week before a date.
_DAY_BEFORE = lazy_pattern(rf"\A{lexicon.forms('weekday', 'en')},?(?:the)?(?=[a-z]*\d)")
# A day of the week in Chinese.
_HAN_WEEKDAY = lazy_pattern(lexicon.forms("weekday", "zh"))
# A day of the week, or the beginning of its name.
_WEEKDAY = lazy_pattern(f"{lexicon.forms('weekday', 'en')}|{lexicon.forms('weekday_short', 'en')}")
_IN_FIGURES = {**lexicon.values("counted_words", "en"), "one": "1"}
_DIGITS = lexicon.values("digits", "zh")
_PARTS_OF_HOUR = {**lexicon.values("part_of_hour", "en"), **lexicon.values("part_of_hour", "zh")}
_WEEKDAYS = lexicon.values("weekdays", "en")
_HALVES = {"morning": "am", "afternoon": "pm", "evening": "pm"}
_READ = 1_000
_LONGEST_UNIT = 2
_SINGLE = 0.3
"""What a single Chinese character is worth beside a longer word."""
_NAME = 1.5
"""What the name of one of several is worth, such as B, L1 or Sunday."""
_PREFIX, _SUFFIX = 4, 3
"""A word that is another with at most some letters more is the same, as heal and healer."""


@dataclass(frozen=True, slots=True)
class Value:
    """`kind`: day, clock, number, a numbered place, or the unit of an amount. `text`: the value as compared with others
    of its kind. `denied`: the text says that it is the old one. `clause`: the words of its own clause. `sides`: which
    of several is meant, such as the morning or the left one, as (which kind of side, which side). `timed`: it is a
    number after a word such as at, which may be a time of day."""

    kind: str
    text: str
    span: tuple[int, int]
    denied: bool
    clause: frozenset[str]
    sides: frozenset[tuple[str, str]]
    timed: bool = False

    @property
    def half(self) -> str:
        """Return the half of the day that a time of day is in, am or pm, '' if it says neither."""
        if self.kind != CLOCK:
            return ""
        if self.text[-2:] in ("am", "pm"):
            return self.text[-2:]
        return next((_HALVES[side] for kind, side in self.sides if kind == "time" and side in _HALVES), "")

    @property
    def is_amount(self) -> bool:
        return self.kind not in (DAY, CLOCK) and not self.kind.startswith(NUMBERED)

    def is_of_kind(self, other: "Value") -> bool:
        """Return True if one may stand in place of the other: both of one kind, or one without a unit and the other an
        amount or a numbered place."""
        if self.kind == other.kind:
            return True
        kinds = {self.kind, other.kind}
        if kinds == {NUMBER, CLOCK}:
            return self.timed or other.timed
        return NUMBER in kinds and DAY not in kinds and CLOCK not in kinds

    def is_same(self, other: "Value") -> bool:
        """Return True if both are one value; a time of day may leave out whether it is before noon."""
        if not self.is_of_kind(other) or self.text == other.text:
            return self.is_of_kind(other)
        if CLOCK not in (self.kind, other.kind):
            return False
        hours = {_HOUR.sub("", value.text) for value in (self, other)}
        return len(hours) == 1 and not all(value.text.endswith(("am", "pm")) for value in (self, other))

    def contradicts(self, other: "Value") -> bool:
        """Return True if the clauses are of two sides: one of the morning, the other of the evening."""
        mine, others = _by_kind(self.sides), _by_kind(other.sides)
        return any(kind in others and not sides & others[kind] for kind, sides in mine.items())

    def covers(self, other: "Value") -> float:
        """Return the share of the words of the other's clause that this clause has too, in [0, 1]. A side counts as a
        word."""
        size = weight(other.clause) + len(other.sides)
        held = weight(shared(other.clause, self.clause)) + len(self.sides & other.sides)
        return min(1.0, held / size) if size else 0.0


def weight(clause: Collection[str]) -> float:
    """Return how much words tell together: a single Chinese character tells little, a name of one of several and a
    weekday much."""
    return math.fsum(map(_word_weight, clause))


def _word_weight(word: str) -> float:
    if not word.isascii():
        return _SINGLE if len(word) == 1 else _NAME if _HAN_WEEKDAY.fullmatch(word) else 1.0
    return _NAME if word in _WEEKDAYS or len(word) == 1 or any(map(str.isdigit, word)) else 1.0


def shared(some: Collection[str], others: Collection[str]) -> set[str]:
    """Return those of some words that others have too, as the same word or with another ending."""
    held = {word for word in some if word in others}
    long = [word for word in others if len(word) >= _PREFIX and word.isascii()]
    if long:
        held.update(
            word
            for word in some
            if len(word) >= _PREFIX and word not in held and any(_is_form(word, other) for other in long)
        )
    return held


def _is_form(word: str, other: str) -> bool:
    return abs(len(word) - len(other)) <= _SUFFIX and (word.startswith(other) or other.startswith(word))


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text that may name a subject: also pairs of Chinese characters, and letters that are
    names."""
    found = set(words(text))
    if not text.isascii():
        found.update(term for term in terms(text) if len(term) > 1)
    found.update(letter for letter in _LETTER.findall(text))
    found = {word for word in found - _NEVER_UNITS - _NO_SUBJECT if not word.isdigit()}
    found = {word[:3] if _is_weekday(word) else word for word in found}
    found.update("".join(match[0].casefold().split()) for match in _PLACE.finditer(text))
    if _TOTAL.search(text):
        found.add(_ALL)
    return frozenset(found | {SELF} if _SELF.search(text) else found)


@dataclass(frozen=True, slots=True)
class _Match:
    kind: str
    text: str
    span: tuple[int, int]


def values_in(text: str) -> list[Value]:
    """Return the values of a text, in its order. A clause has the words beside the value up to the next value of its
    kind, with the values of other kinds but times. Reads the first 1,000 characters."""
    text = text[:_READ]
    found = list(_matches(text)) if _HINT.search(text) else []
    if not found:
        return []
    by_kind: dict[str, list[_Match]] = {}
    for match in found:
        by_kind.setdefault(match.kind, []).append(match)
    own: dict[_Match, str] = {}
    timeless = _blank(text, [match.span for match in by_kind.get(CLOCK, ())])
    for matches in by_kind.values():
        own.update(zip(matches, _clauses(timeless, [match.span for match in matches]), strict=True))
    return [
        Value(
            match.kind,
            match.text,
            match.span,
            _is_denied(text, match.span),
            words_of(own[match]),
            _sides(head(own[match] if len(by_kind[match.kind]) > 1 else text)),
            match.kind == NUMBER and _AT.search(text, max(0, match.span[0] - 12), match.span[0]) is not None,
        )
        for match in found
    ]


def _blank(text: str, spans: Sequence[tuple[int, int]]) -> str:
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def clause_around(text: str, span: tuple[int, int]) -> tuple[int, int]:
    """Return where the clause around a span begins and ends."""
    ends = [end.end() for end in CLAUSE_END.finditer(text) if not span[0] < end.end() <= span[1]]
    before, after = (end for end in ends if end <= span[0]), (end for end in ends if end >= span[1])
    return max(before, default=0), min(after, default=len(text))


def without_values(text: str, values: Sequence[Value], since: int = 0) -> str:
    """Return the text from a place on with a blank in place of the values."""
    parts, at = [], since
    for value in values:
        if value.span[0] < since:
            continue
        parts.append(text[at : value.span[0]])
        at = value.span[1]
    return " ".join((*parts, text[at:]))


def _matches(text: str) -> Iterator[_Match]:
    for match in _VALUE.finditer(text):
        start, end = match.span()
        kind = next(name for name in (DAY, CLOCK, "numbered", "amount") if match[name] is not None)
        shown = match[0]
        if kind == "numbered":
            place = shown.split()[0].casefold() if shown[0].isalpha() and shown[0].isascii() else shown[-1]
            kind, normal = f"{NUMBERED}{place}", _number(shown)
        elif kind == "amount":
            unit = match["unit"] or match["counted"]
            if unit and (match["currency"] or _is_no_unit(unit.casefold())):
                if match["counted"]:
                    continue
                end = match.start("unit")
            elif match["han"]:
                end = match.start("han") + _unit_length(match["han"])
            end -= len(text[start:end]) - len(text[start:end].rstrip())
            shown = text[start:end]
            kind, normal = _unit(match["currency"] or shown), _number(shown)
        else:
            normal = _time(shown) if kind == CLOCK else _day(shown)
        yield _Match(kind, normal, (start, end))


def _is_no_unit(word: str) -> bool:
    return word not in _LETTERS and (word in ENGLISH or word in _NEVER_UNITS)


def _unit_length(run: str) -> int:
    """Return the length of the whole word at the beginning of a run of Chinese, 0 if it is no unit."""
    word = segment(run)[0]
    return 0 if word in _NEVER_UNITS or len(word) > _LONGEST_UNIT else len(word)


def _unit(amount: str) -> str:
    unit = _NUMBER.sub("", amount).strip(" .").casefold()
    unit = "".join(unit.split())
    return _SAME_UNIT.get(unit) or _SAME_UNIT.get(unit.rstrip("s"), unit.rstrip("s")) or NUMBER


def _number(amount: str) -> str:
    """Return the number of an amount, in figures where it is a small one."""
    found = " ".join(match[0] for match in _NUMBER.finditer(amount.casefold())).split()
    parts = [in_figures(part.strip(".,")) for part in found if part not in ("a", "an", "and", "of")]
    return "+".join(part for part in parts if part).replace("+0.", ".") or "1"


def in_figures(number: str) -> str:
    """Return a number in figures if it is a small one, else as it is written."""
    if number in _FRACTIONS:
        return str(_FRACTIONS[number])
    if number.isascii():
        return _THOUSANDS.sub("", str(_IN_FIGURES.get(number, number)))
    small = _TENS.fullmatch(number)
    if not small:
        return number
    tens = _DIGITS.get(small["tens"], 1) if small["ten"] else 0
    return str(10 * tens + _DIGITS.get(small["ones"], 0))


def _day(shown: str) -> str:
    day = _WEEK.sub("周", "".join(shown.casefold().split())).removesuffix("s")
    if _is_weekday(day):
        return day[:3]
    return _DAY_BEFORE.sub("", day)


def _is_weekday(word: str) -> bool:
    """Return True if a word is the name of a day of the week, or the beginning of one."""
    return word[:3] in _WEEKDAYS and _WEEKDAY.fullmatch(word) is not None


def _time(shown: str) -> str:
    """Return a time of day as hours and minutes, with am or pm where it says so."""
    folded = shown.casefold()
    numbers = [figures for word in _CLOCK_WORDS.findall(folded) if (figures := in_figures(word)).isdigit()]
    if not numbers:
        return folded
    part = next((minutes for word, minutes in _PARTS_OF_HOUR.items() if word in folded), None)
    half = "am" if "am" in folded else "pm" if "pm" in folded else ""
    hour, minutes = int(numbers[0]), part or (numbers[1] if len(numbers) > 1 else "00")
    if minutes.startswith("-"):  # before the hour
        hour, minutes = hour - 1 if hour > 1 else 12, str(60 + int(minutes))
    return f"{hour}:{minutes}{half}"


def _is_denied(text: str, span: tuple[int, int]) -> bool:
    """Return True if the text says that a value of it is the old one."""
    before = max(0, span[0] - 12), span[0]
    if _DENIED.search(text, *before) or _UNUSABLE.match(text, span[1]):
        return True
    return bool(_FROM.search(text, *before) and _TO.match(text, span[1]))


def _sides(folded: str) -> frozenset[tuple[str, str]]:
    found = (match[0] for match in _SIDE.finditer(folded))
    named = (_SIDES.get(word) or _SIDES[word.removesuffix("s")] for word in found)
    return frozenset((kind, side) for kind, _, side in (each.partition(" ") for each in named))


def _by_kind(sides: Collection[tuple[str, str]]) -> dict[str, set[str]]:
    kinds: dict[str, set[str]] = {}
    for kind, side in sides:
        kinds.setdefault(kind, set()).add(side)
    return kinds


def _clauses(text: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    """Return for each value the words of its own clause: what stands between two values belongs to one of them."""
    opening = text[: spans[0][0]]
    before = bool(words_of(opening))
    clauses = [_last_clause(opening), *("" for _ in spans[1:])]
    starts = [start for start, _ in spans[1:]]
    for at, (_, end) in enumerate(spans):
        last = at == len(starts)
        gap = text[end : len(text) if last else starts[at]]
        own = _own(gap, before=before, last=last)
        clauses[at] += f" {gap[:own]}"
        if not last:
            clauses[at + 1] += gap[own:]
    return clauses


def _last_clause(opening: str) -> str:
    """Return the end of what stands before a value, from the last clause on that has a word."""
    starts = [0, *(end.end() for end in CLAUSE_END.finditer(opening) if not any(map(str.isalpha, end[0])))]
    return next((opening[start:] for start in reversed(starts) if words_of(opening[start:])), opening)


def _own(gap: str, *, before: bool, last: bool) -> int:
    """Return how much of what stands after a value, up to the next, belongs to it. `before`: the words of a value stand
    before it in this text."""
    ends = list(CLAUSE_END.finditer(gap))
    if ends:
        return (ends[0] if before or last else ends[-1]).start()
    return len(gap) if last or not before or _AFTER_VALUE.match(gap) else 0


GONE = "[...]"
"""The mark in place of a value that was corrected."""


def cut_out(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return the text with a mark in place of the values, '' if nothing else is left."""
    text_left, at = "", 0
    for start, end in sorted(set(spans)):
        between = text[at:start]
        text_left = text_left + between + GONE if between.strip() or not text_left.endswith(GONE) else text_left
        at = end
    text_left += text[at:]
    return text_left if terms(text_left) else ""
