"""Times that belong together: "from X to Y", "since X", "before X", "on Friday last week"."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from roomlore.core.when_periods import Period, again
from roomlore.core.when_rules import Asked, Found, preceded

LONG_AGO = datetime.min.replace(year=1900)
_TO = re.compile(r" ?(?:-|~|到|至|to|until|till|through|thru|up to) ?(?:the )?")
_AND = re.compile(r" ?(?:and|和|与|跟|以及) ?(?:the )?")
_FROM = re.compile(r"(?:\b(?:from|between)[ ](?:the )?|[从自在])$")
_BETWEEN = re.compile(r"\bbetween (?:the )?$")
_CLOSE = re.compile(r" ?(?:之间|期间|为止)")
_AMID = re.compile(r" ?(?:之间|期间)")
_INSIDE = re.compile(r",?(?: on| in| of|的)? ?")
_NOW = re.compile(r" ?(?:to|until|till|up to|-|到|至) ?(?:now|date|the present|present|today|现在|目前|今)(?![a-z])")
_SINCE = re.compile(r"(?:\b(?:ever )?since(?: the)? |自从?)$")
_FROM_CHINESE = re.compile(r"[从自]$")
_SINCE_CHINESE = re.compile(r" ?(?:以来|开始|起(?![来床飞床]))")
_AFTER = re.compile(r"\bafter (?:the )?$")
_AFTER_CHINESE = re.compile(r" ?(?:之后|以后|后(?![来面台天年续期悔勤方]))")
_BEFORE = re.compile(r"\b(?:before|prior to) (?:the )?$")
_BEFORE_CHINESE = re.compile(r" ?(?:之前|以前|前(?![后面台天年辈往途进夕任端线景]))")
_UNTIL = re.compile(r"(?:\b(?P<by>by|until|till|up to|up until) (?:the )?|截[至止])$")
_UNTIL_CHINESE = re.compile(r" ?为止")
_OWNED = re.compile(r"'s\b")


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
    """ "last week on Friday": what comes again is the one inside the other."""
    if not _INSIDE.fullmatch(asked.text, first.to, second.at):
        return None
    for inner, outer in ((second.period, first.period), (first.period, second.period)):
        if outer.every or not inner.every or not inner.every == outer.unit:
            continue
        for steps in (0, 1, -1, 2, -2):
            moved = again(inner, steps)
            if outer.start <= moved.start < outer.end:
                return Found(first.at, second.to, replace(moved, every=""))
    return None


def _range(first: Found, second: Found, asked: Asked) -> Found | None:
    between = preceded(_BETWEEN, asked, first.at)
    closed = _AMID.match(asked.text, second.to)
    joint = _AND if between or closed else _TO
    if not (joint.fullmatch(asked.text, first.to, second.at) or _TO.fullmatch(asked.text, first.to, second.at)):
        return None
    start, end = _ordered(first.period, second.period)
    opened, closed = preceded(_FROM, asked, first.at), _CLOSE.match(asked.text, second.to)
    if start.start >= end.end:
        return None
    period = Period(start.start, end.end, "stretch")
    return Found(opened.start() if opened else first.at, closed.end() if closed else second.to, period)


def _ordered(first: Period, second: Period) -> tuple[Period, Period]:
    """Both ends of a range: one that comes again is the next after the first, or the last before the second."""
    if second.every and second.start < first.start:
        second = again(second, 1 if second.every == "week" else first.start.year - second.start.year)
        second = again(second, 1) if second.start < first.start else second
    elif first.every and not second.every and first.every == "year":
        first = again(first, second.start.year - first.start.year)
        first = again(first, -1) if first.start > second.start else first
    return first, second


def _bounded(found: Found, asked: Asked) -> Found | None:
    """A period as a bound: since, after, before, until. None where that leaves nothing to look through, or where a
    weekday is rather a day to come ("before Friday")."""
    text, period = asked.text, found.period
    if _OWNED.match(text, found.to) or period.unit == "stretch" and period.end == asked.now:
        return found
    if (closed := _NOW.match(text, found.to)) or (closed := _SINCE_CHINESE.match(text, found.to)):
        opened = preceded(_SINCE, asked, found.at) or preceded(_FROM, asked, found.at)
        return _up_to_now(found, period.start, opened, closed, asked)
    if opened := preceded(_SINCE, asked, found.at):
        after = _AFTER_CHINESE.match(text, found.to)
        if text[opened.start()] == "s" or text[opened.start()] == "e" or after:
            return _up_to_now(found, period.start, opened, after, asked)
    if (opened := preceded(_AFTER, asked, found.at)) or (closed := _AFTER_CHINESE.match(text, found.to)):
        return _up_to_now(found, period.end, opened, None if opened else closed, asked)
    return _from_long_ago(found, asked)


def _up_to_now(
    found: Found, start: datetime, opened: re.Match[str] | None, closed: re.Match[str] | None, asked: Asked
) -> Found | None:
    if start >= asked.now:
        return None
    at, to = opened.start() if opened else found.at, closed.end() if closed else found.to
    return Found(at, to, Period(start, asked.now, "stretch"))


def _from_long_ago(found: Found, asked: Asked) -> Found | None:
    period = found.period
    opened, closed = preceded(_UNTIL, asked, found.at), _UNTIL_CHINESE.match(asked.text, found.to)
    end = period.end
    if not opened and not closed:
        opened, closed = preceded(_BEFORE, asked, found.at), _BEFORE_CHINESE.match(asked.text, found.to)
        end = period.start
    if not opened and not closed:
        return found
    if period.every == "week" or end > asked.now:
        return None
    at, to = opened.start() if opened else found.at, closed.end() if closed else found.to
    return Found(at, to, Period(LONG_AGO, end, "stretch"))
