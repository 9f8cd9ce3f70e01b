"""Read times in the languages whose words and shapes are tables of the lexicon, beside English and Chinese.

The entry `times` of a language has `shapes`, patterns in which `{name}` stands for a table of words, a number, or a
macro of the language. What a shape means follows from the tables of which it has a word, whatever their order.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache, partial
from typing import Any
from unicodedata import normalize

from roomlore.core import lexicon
from roomlore.core.dates.calendar import (
    FOLD,
    ONE_DAY,
    NamedPeriod,
    Period,
    TimeQuestion,
    again,
    ago,
    back,
    built,
    clock,
    current,
    days,
    later,
    latest_over,
    latest_weekday,
    midnight,
    month,
    months,
    next_one,
    part,
    past,
    preceded,
    recurring,
    recurring_weekday,
    third,
    week,
    weekend,
    year,
)
from roomlore.core.dates.chinese import numeral
from roomlore.core.patterns import lazy_pattern
from roomlore.core.text import HAN

_NUMBERS = {
    "day": r"(?:3[01]|[12][0-9]|0?[1-9])",
    "last": r"(?:3[01]|[12][0-9]|0?[1-9])",
    "numbered_month": r"(?:1[0-2]|0?[1-9])",
    "year": r"(?:19|20)[0-9]{2}(?![0-9])",
    "long_year": r"(?:19|20)[0-9]{2}(?![0-9])",
    "short_year": r"(?:(?:19|20)[0-9]{2}|[0-9]{2})(?![0-9])",
    "hour": r"(?:2[0-4]|1[0-9]|0?[0-9])",
    "minute": r"[0-5][0-9](?![0-9])",
    "number": r"[0-9]{1,3}",
}
_HAN_NUMBER = "[一二三四五六七八九十]{1,3}"
# The name of a table in a shape.
_REFERENCE = lazy_pattern(r"\{([a-z_]+)\}")
# The name of a group, which gets a number, since several shapes have the same.
_GROUP = lazy_pattern(r"\(\?P<([a-z_]+)>")
# A Chinese character.
_HAN = lazy_pattern(f"[{HAN}]")
# A word of the Latin script.
_WORD = lazy_pattern(r"[a-z]+")
# Usual words of English and of Dutch, which has French and German words with other meanings: what is read here must not
# be rarer by far.
_OTHERS = tuple(
    frozenset(usual.split())
    for usual in (
        "the and of to is it you for with this that have are i what did when we my he she they",
        "het een ik je dat van niet maar ook voor zijn met wel nog als op aan heb dan ga de en er te",
    )
)
# A letter without its mark, and small: café, Ёлка.
_PLAIN = {
    code: base
    for code in (*range(0xC0, 0x180), *range(0x410, 0x430), ord("ё"), ord("Ё"))
    if (base := normalize("NFD", chr(code))[0].lower() if chr(code) not in "Йй" else "й") != chr(code)
} | {ord("ß"): "s", ord("œ"): "o", ord("æ"): "a"}
# A pattern keeps its capital letters, which have a meaning in it.
_FOLD_FORMS = {code: folded for code, folded in FOLD.items() if not chr(code).isascii()}
_MOST_WORDS = 6
_ANY_DAY = date(2024, 1, 1)
_STEPS = {"last": -1, "this": 0, "coming": 1, "next": 1}


@dataclass(frozen=True, slots=True)
class _Language:
    """The tables of a language, the pattern of its shapes and that of what narrows them, and further patterns of it."""

    tables: Mapping[str, Mapping[str, Any]]
    shapes: re.Pattern[str]
    narrower: re.Pattern[str]
    habit: re.Pattern[str]
    coming: re.Pattern[str]
    capital: re.Pattern[str]


@cache
def _hints() -> Mapping[str, frozenset[str]]:
    return {language: frozenset(usual.split()) for language, usual in lexicon.values("time_hint", "signs").items()}


@cache
def _scripts() -> Mapping[str, re.Pattern[str]]:
    scripts = lexicon.values("time_script", "signs")
    return {language: lazy_pattern(_plain(script)) for language, script in scripts.items()}


@cache
def _language(name: str) -> _Language:
    entry = lexicon.values("times", name)
    starts = _plain(entry["starts"]) if "starts" in entry else ""
    opening = rf"(?={starts})" if starts else r"(?<!\w)(?<![0-9][.,:/-])"
    closing = "" if name in ("ja", "ko") else r"(?![\w%€$£])(?!['-]\w)"
    tables = {table: words for table, words in entry.items() if isinstance(words, Mapping) and table != "macros"}
    if name == "ja":
        opening += r"(?<![0-9][0-9.])(?<![0-9])(?<![0-9.][一二三四五六七八九十])"
    number = iter(range(10_000))
    shape = partial(_expanded, entry=entry, tables=tables, number=number, han=name == "ja")
    return _Language(
        tables=tables,
        shapes=lazy_pattern(rf"{opening}(?:{'|'.join(f'(?:{shape(form)}){closing}' for form in entry['shapes'])})"),
        narrower=lazy_pattern("|".join(f"(?:{shape(form)}){closing}" for form in entry["narrower"])),
        habit=lazy_pattern(r"(?<!\w)" * (name != "ja") + _plain(entry["habit"])),
        coming=lazy_pattern(_plain(entry["coming"])),
        capital=lazy_pattern(_plain(entry.get("capital", "(?!)"))),
    )


def _expanded(
    shape: str, *, entry: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]], number: Iterator[int], han: bool
) -> str:
    """Return the pattern of a shape, with a number of its own behind the name of each group."""

    def forms(reference: re.Match[str]) -> str:
        name = reference[1]
        if name in entry.get("macros", {}):
            return _REFERENCE.sub(forms, entry["macros"][name])
        choices = [*sorted(tables.get(name, ()), key=len, reverse=True)]
        choices += [_NUMBERS[name]] if name in _NUMBERS else []
        choices += [_HAN_NUMBER] if han and name in ("number", "hour", "minute") else []
        return f"(?P<{name}>{'|'.join(choices)})"

    pattern = _plain(_REFERENCE.sub(forms, shape))
    return _GROUP.sub(lambda group: f"(?P<{group[1]}_{next(number)}>", pattern)


def _plain(pattern: str) -> str:
    """Return a pattern of texts that are folded; in German "ae" stands for ä, and "ss" for ß."""
    for letter, either in (("ä", "ae?"), ("ö", "oe?"), ("ü", "ue?"), ("ß", "ss?")):
        pattern = pattern.replace(letter, either)
    return pattern.translate(_FOLD_FORMS).translate(_PLAIN)


def languages_in(text: str) -> tuple[str, ...]:
    """Return the languages of a text that are read here; those of the Latin script by their usual words. A few words
    that are usual in none may be of any."""
    named = [language for language, script in _scripts().items() if not text.isascii() and script.search(text)]
    words = _WORD.findall(text)
    known = set(words)
    counts = {language: len(known & hints) for language, hints in _hints().items()}
    most = max(*counts.values(), *(len(known & usual) for usual in _OTHERS))
    if not most:
        return tuple(named) or (tuple(counts) if 0 < len(words) <= _MOST_WORDS else ())
    return (*named, *(language for language, count in counts.items() if count and 2 * count >= most))


def is_japanese(text: str) -> bool:
    """Return True if a text has Japanese letters, one to ten Chinese characters or more; の is also in Chinese ones."""
    return not text.isascii() and 10 * len(_scripts()["ja"].findall(text)) > len(_HAN.findall(text))


def read_languages(question: TimeQuestion) -> Iterator[NamedPeriod]:
    """Yield the times in the languages that the question is written in."""
    text = question.text.translate(_PLAIN)
    for name in languages_in(text):
        whole = name in _hints() and not _hints()[name] & set(_WORD.findall(text))
        for hit in _read(_language(name), question, text):
            if not whole or not re.search(r"\w", text[: hit.at] + text[hit.to :]):
                yield hit


def times_ahead(folded: str, on: date) -> Iterator[NamedPeriod]:
    """Yield the times that a folded text of that day names in these languages; of a recurring one the next."""
    return read_languages(TimeQuestion(folded.translate(FOLD), folded, midnight(on), ahead=True))


def names_time(folded: str) -> bool:
    """Return True if a folded text names a time in one of these languages."""
    return any(times_ahead(folded, _ANY_DAY))


def names_date(folded: str) -> bool:
    """Return True if a folded text names a day of a month in figures, in one of these languages."""
    hits = times_ahead(folded, _ANY_DAY)
    return any(hit.period.every == "year" or any(map(str.isdigit, folded[hit.at : hit.to])) for hit in hits)


def _read(language: _Language, question: TimeQuestion, text: str) -> Iterator[NamedPeriod]:
    folded = TimeQuestion(text, question.written, question.now, question.ahead or bool(language.coming.search(text)))
    for match in language.shapes.finditer(text):
        if preceded(language.habit, folded, match.start()) or _is_name(language, match, folded):
            continue
        if period := built(partial(_period, language), match, folded):
            yield _narrowed(NamedPeriod(match.start(), match.end(), period), language, folded)


def _is_name(language: _Language, match: re.Match[str], question: TimeQuestion) -> bool:
    """Return True if a word that is a time in small letters has a capital one, begins no clause, or is a greeting."""
    word = match[0].split()[-1]
    at = match.end() - len(word)
    if not language.capital.fullmatch(match[0]) or not question.written[at].isupper():
        return False
    return bool(re.search(r"[^.?!:\s]\s*$", question.written[max(0, at - 8) : at])) or bool(
        re.match(r"\s*(?:[!.,]|$)", question.written[match.end() :][:8])
    )


def _narrowed(hit: NamedPeriod, language: _Language, question: TimeQuestion) -> NamedPeriod:
    """Return the period, with the part of the day and the time that follow it."""
    for _ in range(2):
        match = language.narrower.match(question.text, hit.to)
        period = built(partial(_narrower, language, hit.period), match, question) if match else None
        if match is None or period is None:
            break
        hit = NamedPeriod(hit.at, match.end(), period)
    return hit


class _Reading:
    """The words of a shape, by the table that has them."""

    def __init__(self, language: _Language, match: re.Match[str]) -> None:
        self._tables, self._text = language.tables, match.string
        groups = match.re.groupindex.items()
        self._spans = {name.rpartition("_")[0]: span for name, at in groups if (span := match.span(at))[0] >= 0}

    def has(self, *names: str) -> bool:
        """Return True if there are words of one of the tables."""
        return not self._spans.keys().isdisjoint(names)

    def word(self, name: str) -> str:
        """Return the words."""
        return self._text[slice(*self._spans[name])]

    def value(self, *names: str) -> Any:
        """Return what the words of the first table that has some stand for, or the number that they are."""
        name = next(name for name in names if name in self._spans)
        start, end = self._spans[name]
        for form, value in self._tables.get(name, {}).items():
            pattern = _form(form)  # what must follow it is outside of the words, what may end it is not the shortest
            match = pattern.fullmatch(self._text, start, end) or pattern.match(self._text, start)
            if match and match.end() == end:
                return value
        return numeral(self.word(name))


@cache
def _form(form: str) -> re.Pattern[str]:
    return re.compile(f"(?:{_plain(form)})")


def _narrower(language: _Language, day: Period, match: re.Match[str], question: TimeQuestion) -> Period | None:
    words = _Reading(language, match)
    if words.has("part"):
        return part(day, words.value("part")) if day.unit == "day" else None
    if day.unit not in ("day", "part"):
        return None
    hour = int(words.value("hour"))
    afternoon = words.value("halfday") if words.has("halfday") else day.unit == "part" and day.start.hour >= 12
    minute = 30 if words.has("half") else int(words.value("minute")) if words.has("minute") else None
    return clock(day, hour + 12 if afternoon and hour < 12 else hour, minute)


def _period(language: _Language, match: re.Match[str], question: TimeQuestion) -> Period | None:
    """Return what the words of a shape mean together."""
    words = _Reading(language, match)
    if words.has("way", "then", "rolling"):
        return _distance(words, question)
    whole = _whole(words, question.now.date())
    if words.has("weekday", "counted_weekday") and not words.has("day"):
        period = _weekday(words, whole, question)
    elif words.has("day", "month", "numbered_month"):
        period = _of_month(words, whole, question)
    else:
        period = whole or year(int(words.value("year", "long_year")))
    if words.has("edge"):
        return third(period, words.value("edge")) if period else None
    return part(period, words.value("part")) if words.has("part") and period else period


def _distance(words: _Reading, question: TimeQuestion) -> Period:
    """Return the time so long ago, or so far ahead: two weeks ago, in three days, the last two weeks."""
    if words.has("length"):
        unit, *counts = words.value("length")
    else:
        number = words.value("number") if words.has("number") else 1
        unit, counts = words.value("unit"), number if isinstance(number, list) else [number]
    low, high, now = counts[0], counts[-1], question.now
    if words.has("rolling"):
        ahead = bool(words.word("rolling")) and words.value("rolling") > 0
        return Period(now, back(now, -high, unit), "stretch") if ahead else past(now, high, unit)
    if words.value("way", "then") < 0:
        return ago(now, low, high, unit)
    if low == high:
        return ago(now, -low, -low, unit)
    return Period(midnight(back(now, -low, unit)), midnight(back(now, -high - 1, unit)), "stretch")


def _whole(words: _Reading, today: date) -> Period | None:
    """Return the day, week, weekend, month or year that is named by its distance from today."""
    if words.has("named", "named_weekend"):
        unit, steps, *parts = words.value("named", "named_weekend")
        period = _stepped(unit, steps, today)
        return part(period, parts[0]) if parts and period else period
    if words.has("unit") and words.has("step"):
        return _stepped(words.value("unit"), _STEPS[words.value("step")], today)
    return None


def _stepped(unit: str, steps: int, today: date) -> Period | None:
    if unit == "day":
        return days(today + steps * ONE_DAY)
    if unit in ("week", "weekend"):
        return (week if unit == "week" else weekend)(today + 7 * steps * ONE_DAY)
    if unit == "month":
        return months(later(today.replace(day=1), steps))
    return year(today.year + steps) if unit == "year" else None


def _weekday(words: _Reading, whole: Period | None, question: TimeQuestion) -> Period | None:
    number, today = int(words.value("weekday", "counted_weekday")), question.now.date()
    if whole:
        return days(whole.start + number * ONE_DAY) if whole.unit == "week" else None
    to_come = today + ((number - today.weekday() - 1) % 7 + 1) * ONE_DAY
    if words.has("week_after"):
        return days(to_come + 7 * ONE_DAY)
    step = words.value("step") if words.has("step") else ""
    if step == "last":
        return days(latest_weekday(today, number).start)
    if step == "coming":
        return days(to_come)
    if step:
        return days(today + (number - today.weekday() + 7 * _STEPS[step]) * ONE_DAY)
    return recurring_weekday(question, number)


def _of_month(words: _Reading, whole: Period | None, question: TimeQuestion) -> Period | None:
    """Return the month, or the day or days of it, in the year that is named, or of the month that is named."""
    first = int(words.value("day")) if words.has("day") else 0
    count = int(words.value("last")) - first + 1 if words.has("last") else 1
    if not words.has("month", "numbered_month"):
        start = whole.start if whole and whole.unit == "month" else None
        return _days(first, count, start.month, start.year) if start else None
    number = int(words.value("month", "numbered_month"))
    make: Callable[[int], Period] = partial(_days, first, count, number) if first else partial(month, number=number)
    if words.has("year", "long_year", "short_year"):
        named = words.value("year", "long_year", "short_year")
        return make(named + 2000 * (named < 100))
    if whole:
        return make(whole.start.year) if whole.unit == "year" else None
    if words.has("step"):
        return (current, next_one, latest_over)[_STEPS[words.value("step")]](make, question.now)
    period = recurring(make, question)
    if words.has("weekday") and period.start.weekday() != words.value("weekday"):
        years = (again(period, 1), again(period, -1))
        return next((other for other in years if other.start.weekday() == words.value("weekday")), period)
    return period


def _days(first: int, count: int, number: int, year: int) -> Period:
    if count < 1:
        raise ValueError(count)
    return days(date(year, number, first), count, "day" if count == 1 else "stretch")
