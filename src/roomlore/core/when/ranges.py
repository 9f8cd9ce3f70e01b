"""Times that belong together: "from X to Y", "since X", "before X", "on Friday last week"."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from roomlore.core.when.periods import LONG_AGO, Period, again
from roomlore.core.when.rules import Asked, Found, preceded

_TO = re.compile(r" ?(?:-|~|到|至|to|until|till|through|thru|up to) ?(?:the )?")
_AND = re.compile(r" ?(?:and|和|与|跟|以及) ?(?:the )?")
_FROM = re.compile(r"(?:\b(?:from|between) (?:the )?|[从自在])$")
_BETWEEN = re.compile(r"\bbetween (?:the )?$")
_AMID = re.compile(r" ?(?:之间|期间)")
_INSIDE = re.compile(r",?(?: on| in| of|的)? ?")
_OWNED = re.compile(r"'s\b")
_HEAD = re.compile(r"(?:\bfrom (?:the )?|[从自到])$")
_NOT_AHEAD = r"(?![后面台天年辈往途进夕任端线景])"
_NOT_BEHIND = r"(?![来面台天年续期悔勤方])"
Bounds = Callable[[Period, datetime], tuple[datetime, datetime]]
# What stands before a period or after it to make it a bound, and the bounds.
_BOUNDS: tuple[tuple[re.Pattern[str], re.Pattern[str], Bounds], ...] = (
    (
        re.compile(r"(?:\b(?:ever )?since (?:the )?|自从|(?<!来)自)$"),
        re.compile(
            r" ?(?:以来|开始|起(?![来床飞])|(?:to|until|till|up to|-) ?(?:now|date|the present|present)\b"
            r"|[到至] ?(?:现在|目前|今(?![天日晚早年]))|on(?:wards?)?\b(?= ?(?:[?!.,]|$)))"
        ),
        lambda period, now: (period.start, now),
    ),
    (
        re.compile(r"\bafter (?:the )?$"),
        re.compile(rf" ?(?:之后|以后|后{_NOT_BEHIND})"),
        lambda period, now: (period.end, now),
    ),
    (
        re.compile(r"(?:\b(?:by|until|till|up to|up until) (?:the )?|截[至止]到?)$"),
        re.compile(r" ?为止"),
        lambda period, now: (LONG_AGO, period.end),
    ),
    (
        re.compile(r"\b(?:before|prior to) (?:the )?$"),
        re.compile(rf" ?(?:之前|以前|前{_NOT_AHEAD})"),
        lambda period, now: (LONG_AGO, period.start),
    ),
)


def joined(found: Sequence[Found], asked: Asked) -> list[Found]:
    """The periods with their neighbours and the words around them taken into account, in order."""
    whole: list[Found] = []
    left = list(found)
    while left:
        first = left.pop(0)
        if left and (both := _nested(first, left[0], asked) or _range(first, left[0], asked)):
            left[0] = both
        elif bounded := _bounded(first, asked):
            whole.append(bounded)
    return whole


def _nested(first: Found, second: Found, asked: Asked) -> Found | None:
    """Of "last week on Friday" the Friday that lies in the week."""
    if not _INSIDE.fullmatch(asked.text, first.to, second.at):
        return None
    for inner, outer in ((second.period, first.period), (first.period, second.period)):
        if outer.every or inner.every != outer.unit:
            continue
        for steps in (0, 1, -1, 2, -2):
            moved = again(inner, steps)
            if outer.start <= moved.start < outer.end:
                return Found(first.at, second.to, replace(moved, every=""))
    return None


def _range(first: Found, second: Found, asked: Asked) -> Found | None:
    closed = _AMID.match(asked.text, second.to)
    joint = (asked.text, first.to, second.at)
    paired = (closed or preceded(_BETWEEN, asked, first.at)) and _AND.fullmatch(*joint)
    if not paired and not _TO.fullmatch(*joint):
        return None
    start, end = _ordered(first.period, second.period)
    if start.start >= end.end:
        return None
    opened = preceded(_FROM, asked, first.at)
    at, to = opened.start() if opened else first.at, closed.end() if closed else second.to
    return Found(at, to, Period(start.start, end.end, "stretch"))


def _ordered(first: Period, second: Period) -> tuple[Period, Period]:
    """Both ends of a range: one that comes again is the next after the first, or the last before the second."""
    if second.every == "week" and second.start < first.start:
        return first, again(second, 1)
    if second.every and second.start < first.start:
        second = again(second, first.start.year - second.start.year)
        return first, again(second, 1) if second.start < first.start else second
    if first.every == "year" and not second.every:
        first = again(first, second.start.year - first.start.year)
        return again(first, -1) if first.start > second.start else first, second
    return first, second


def _bounded(found: Found, asked: Asked) -> Found | None:
    """A period as a bound: since, after, before, until. None where that leaves nothing of the past, or where a weekday
    is rather one to come ("before Friday"). "After yesterday's meeting" is yesterday."""
    if _OWNED.match(asked.text, found.to) or found.period.end == asked.now:
        return found
    for opening, closing, bounds in _BOUNDS:
        opened, closed = preceded(opening, asked, found.at), closing.match(asked.text, found.to)
        if not opened and not closed:
            continue
        start, end = bounds(found.period, asked.now)
        if start >= end or end > asked.now or (start == LONG_AGO and found.period.every == "week"):
            return None
        opened = opened or preceded(_HEAD, asked, found.at)
        at, to = opened.start() if opened else found.at, closed.end() if closed else found.to
        return Found(at, to, Period(start, end, "stretch"))
    return found
