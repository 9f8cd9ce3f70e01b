"""Combine adjacent times: "from X to Y", "since X", "before X", "on Friday last week"."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from itertools import islice

from roomlore.core import lexicon
from roomlore.core.dates import FAR_PAST, MAX_SPANS, TimeSpan, chinese, english
from roomlore.core.dates.calendar import FOLD, LONG_AGO, NamedPeriod, Period, TimeQuestion, again, preceded, read
from roomlore.core.dates.english import narrowed
from roomlore.core.dates.languages import is_japanese, read_languages
from roomlore.core.patterns import lazy_pattern

# Between the two ends of a range.
_TO = lazy_pattern(r" ?(?:-|~|到|至|to|until|till|through|thru|up to) ?(?:the )?")
# Between two times that are a range only after between.
_AND = lazy_pattern(r" ?(?:and|和|与|跟|以及) ?(?:the )?")
# Before the first end of a range.
_FROM = lazy_pattern(r"(?:\b(?:from|between) (?:the )?|[从自在])$")
# Makes two times joined by and a range.
_BETWEEN = lazy_pattern(r"\bbetween (?:the )?$")
# After the second end of a range.
_AMID = lazy_pattern(r" ?(?:之间|期间)")
# Between two times of which one lies in the other; nothing else may stand there.
_INSIDE = lazy_pattern(r",?(?: on| in| of|的)? ?")
# The time only describes what follows: yesterday's meeting.
_OWNED = lazy_pattern(r"'s\b")
# A word before a bound that belongs to it.
_HEAD = lazy_pattern(r"(?:\bfrom (?:the )?|[从自到])$")
_NOT_AHEAD = r"(?![后面台天年辈往途进夕任端线景])"
_NOT_BEHIND = r"(?![来面台天年续期悔勤方])"
Bounds = Callable[[Period, datetime], tuple[datetime, datetime]]
# The words before or after a period that make it a bound, and the bounds.
_BOUNDS: tuple[tuple[re.Pattern[str], re.Pattern[str], Bounds], ...] = (
    (
        lazy_pattern(r"(?:\b(?:ever )?since (?:the )?|自从|(?<!来)自)$"),
        lazy_pattern(
            r" ?(?:以来|开始|起(?![来床飞き])|(?:to|until|till|up to|-) ?(?:now|date|the present|present)\b"
            r"|[到至] ?(?:现在|目前|今(?![天日晚早年]))|on(?:wards?)?\b(?= ?(?:[?!.,]|$)))"
        ),
        lambda period, now: (period.start, now),
    ),
    (
        lazy_pattern(r"\bafter (?:the )?$"),
        lazy_pattern(rf" ?(?:之后|以后|后{_NOT_BEHIND})"),
        lambda period, now: (period.end, now),
    ),
    (
        lazy_pattern(r"(?:\b(?:by|until|till|up to|up until) (?:the )?|截[至止]到?)$"),
        lazy_pattern(r" ?为止"),
        lambda period, now: (LONG_AGO, period.end),
    ),
    (
        lazy_pattern(r"\b(?:before|prior to) (?:the )?$"),
        lazy_pattern(rf" ?(?:之前|以前|前{_NOT_AHEAD})"),
        lambda period, now: (LONG_AGO, period.start),
    ),
)


def joined(hits: Sequence[NamedPeriod], question: TimeQuestion) -> list[NamedPeriod]:
    """Return the periods combined with their neighbours and surrounding words, in order."""
    whole: list[NamedPeriod] = []
    left = list(hits)
    while left:
        first = left.pop(0)
        if left and (both := _nested(first, left[0], question) or _range(first, left[0], question)):
            left[0] = both
        elif bounded := _bounded(first, question):
            whole.append(bounded)
    return whole


def _nested(first: NamedPeriod, second: NamedPeriod, question: TimeQuestion) -> NamedPeriod | None:
    """Return the second period inside the first: the Friday in "last week on Friday"."""
    if not _INSIDE.fullmatch(question.text, first.to, second.at):
        return None
    for inner, outer in ((second.period, first.period), (first.period, second.period)):
        if outer.every or inner.every != outer.unit:
            continue
        for steps in (0, 1, -1, 2, -2):
            moved = again(inner, steps)
            if outer.start <= moved.start < outer.end:
                return NamedPeriod(first.at, second.to, replace(moved, every=""))
    return None


def _range(first: NamedPeriod, second: NamedPeriod, question: TimeQuestion) -> NamedPeriod | None:
    closed = _AMID.match(question.text, second.to)
    joint = (question.text, first.to, second.at)
    paired = (closed or preceded(_BETWEEN, question, first.at)) and _AND.fullmatch(*joint)
    if not paired and not _TO.fullmatch(*joint):
        return None
    start, end = _ordered(first.period, second.period)
    if start.start >= end.end:
        return None
    opened = preceded(_FROM, question, first.at)
    at, to = opened.start() if opened else first.at, closed.end() if closed else second.to
    return NamedPeriod(at, to, Period(start.start, end.end, "stretch"))


def _ordered(first: Period, second: Period) -> tuple[Period, Period]:
    """Return both ends of a range: a recurring one is the next after the first, or the last before the second."""
    if second.every == "week" and second.start < first.start:
        return first, again(second, 1)
    if second.every and second.start < first.start:
        second = again(second, first.start.year - second.start.year)
        return first, again(second, 1) if second.start < first.start else second
    if first.every == "year" and not second.every:
        first = again(first, second.start.year - first.start.year)
        return again(first, -1) if first.start > second.start else first, second
    return first, second


def _bounded(hit: NamedPeriod, question: TimeQuestion) -> NamedPeriod | None:
    """Return a period as a bound: since, after, before, until. None if nothing of the past is left, or if a weekday is
    more likely a future one ("before Friday"). "After yesterday's meeting" is yesterday."""
    if _OWNED.match(question.text, hit.to) or hit.period.end == question.now:
        return hit
    for opening, closing, bounds in _BOUNDS:
        opened, closed = preceded(opening, question, hit.at), closing.match(question.text, hit.to)
        if not opened and not closed:
            continue
        start, end = bounds(hit.period, question.now)
        if start >= end or end > question.now or (start == LONG_AGO and hit.period.every == "week"):
            return None
        opened = opened or preceded(_HEAD, question, hit.at)
        at, to = opened.start() if opened else hit.at, closed.end() if closed else hit.to
        return NamedPeriod(at, to, Period(start, end, "stretch"))
    return hit


_READ_LIMIT = 4_000
# Limits within which no arithmetic leaves the calendar; a clock outside them is wrong anyway.
_YEARS_ASKED = range(1910, 9000)
_MAX_READ = 4 * MAX_SPANS


_COMING = lexicon.pattern("coming")


def time_spans(text: str, *, now: datetime, zone: tzinfo = UTC, ahead: bool = False) -> tuple[TimeSpan, ...]:
    """Return the times a question names, in the order of its words, at most 16.

    `now` is when it is asked (aware); days, weeks (from Monday) and months are those of `zone`. Ambiguous words give no
    span: a wrong one hurts a search more than a missing one. Of a recurring time, such as a weekday, the latest is
    meant, or, if it is `ahead`, the next. Never raises; reads the first 4,000 characters. Nothing is read before 1910
    or after the year 9000.
    """
    if now.year not in _YEARS_ASKED:
        return ()
    local = now.astimezone(zone).replace(tzinfo=None)
    question = TimeQuestion(text[:_READ_LIMIT].translate(FOLD), text, local, ahead)
    languages = list(islice(read_languages(question), _MAX_READ))
    # A Chinese word in Japanese text may mean something else.
    chinese_hits = () if is_japanese(question.text) else islice(_chinese(question), _MAX_READ)
    hits = _without_overlaps([*islice(_english(question), _MAX_READ), *chinese_hits])
    if not ahead and any(hit.period.every for hit in hits) and _COMING.search(question.text):
        hits = [hit for hit in hits if not hit.period.every]
    hits = _without_overlaps([*hits, *languages]) if languages else hits
    spans = (_span(hit, text, zone) for hit in joined(hits, question))
    return tuple(span for span in spans if span.start < span.end)[:MAX_SPANS]


def _english(question: TimeQuestion) -> Iterator[NamedPeriod]:
    position = 0
    while match := english.START.search(question.text, position):
        hit = read(english.RULES[match.lastgroup or ""], question, match.start())
        if hit:
            hit = narrowed(hit, question)
            yield chinese.narrowed(hit, question)
        position = hit.to if hit else match.end()


def _chinese(question: TimeQuestion) -> Iterator[NamedPeriod]:
    if question.text.isascii():
        return
    position = 0
    while (position := chinese.start(question.text, position)) >= 0:
        hits_read = chinese.read_chinese(question, position)
        yield from hits_read
        position = hits_read[-1].to if hits_read else position + 1


def _without_overlaps(hits: Sequence[NamedPeriod]) -> list[NamedPeriod]:
    """Return the periods in order; of two that overlap the longer."""
    apart: list[NamedPeriod] = []
    for hit in sorted(hits, key=lambda candidate: (candidate.at, -candidate.to)):
        if not apart or hit.at >= apart[-1].to:
            apart.append(hit)
        elif hit.to - hit.at > apart[-1].to - apart[-1].at:
            apart[-1] = hit
    return apart


def _span(hit: NamedPeriod, text: str, zone: tzinfo) -> TimeSpan:
    start, end = hit.period.start, hit.period.end
    first = FAR_PAST if start <= LONG_AGO else start.replace(tzinfo=zone).astimezone(UTC)
    last = FAR_PAST if end <= LONG_AGO else end.replace(tzinfo=zone).astimezone(UTC)
    return TimeSpan(start=first, end=last, text=text[hit.at : hit.to], position=(hit.at, hit.to))
