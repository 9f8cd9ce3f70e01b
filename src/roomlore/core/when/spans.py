"""Which times a question speaks of, in English and Chinese, and how near to them a message is."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from roomlore.core.when import chinese, english, english_words, ranges
from roomlore.core.when.english_around import narrowed
from roomlore.core.when.periods import LONG_AGO
from roomlore.core.when.rules import Asked, Found, read

FAR_PAST = datetime(1900, 1, 1, tzinfo=UTC)
MOST_SPANS = 16
_READ_LIMIT = 4_000
# Within these no arithmetic leaves the calendar; another clock is wrong anyway.
_YEARS_ASKED = range(1910, 9000)
_MOST_READ = 4 * MOST_SPANS


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSpan:
    """From `start` up to `end`, without it (aware, UTC); `text` are the words that said so, at `position` (the first
    character and the one after the last). A span that is open to the past starts at FAR_PAST, one that is open to the
    future ends when the question is asked."""

    start: datetime
    end: datetime
    text: str
    position: tuple[int, int]


_SAME = (
    "週周個个後后號号點点兩两禮礼間间這这過过來来開开終终節节聖圣誕诞國国慶庆勞劳動动兒儿萬万雙双陽阳現现從从幾几鐘钟時时陣阵內内當当於于裡里"
    "裏里剛刚與与將将會会歲岁報报長长圍围轉转腦脑頭头條条氣气臺台點点學学線线樓楼門门應应該该還还歷历曆历農农陰阴舊旧鄉乡號号淩凌師师親亲戀恋"
    "婦妇書书課课環环運运餅饼燈灯禮礼業业畢毕項项場场張张歷历數数劉刘陳陈楊杨趙赵黃黄吳吴孫孙馬马羅罗檔档裝装價价賀贺經经據据樂乐〇零○零"
)
_FOLD = {
    **{code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)},
    **{ord(old): ord(new) for old, new in zip(_SAME[::2], _SAME[1::2], strict=True)},
    **{code: code + 32 for code in range(ord("A"), ord("Z") + 1)},
    **{code - 0x20 + 0xFEE0: code for code in range(ord("a"), ord("z") + 1)},
    **dict.fromkeys(map(ord, "\u3000\u00a0\t\n\r"), ord(" ")),
    **dict.fromkeys(map(ord, "‘’ʼ"), ord("'")),
    **dict.fromkeys(map(ord, "–—―−"), ord("-")),
    ord("〜"): ord("~"),
    ord("～"): ord("~"),
}
_COMING = re.compile(
    r"\b(?:will|won't|shall|(?<!was )(?<!were )going to|gonna|upcoming|tomorrow|plans for)\b|'ll\b"
    r"|即将|将要|将会|明天|打算"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DAY = timedelta(days=1) / _MICROSECOND


def time_spans(text: str, *, now: datetime, zone: tzinfo = UTC) -> tuple[TimeSpan, ...]:
    """The times a question speaks of, in the order of its words, at most 16.

    `now` is when it is asked (aware); days, weeks (from Monday) and months are those of `zone`. Words that may mean a
    time or something else give no span: a wrong one hurts a search more than a missing one. Never raises; reads the
    first 4,000 characters. Nothing is read before 1910 or after the year 9000.
    """
    if now.year not in _YEARS_ASKED:
        return ()
    asked = Asked(text[:_READ_LIMIT].translate(_FOLD), text, now.astimezone(zone).replace(tzinfo=None))
    found = _without_overlaps([*islice(_english(asked), _MOST_READ), *islice(_chinese(asked), _MOST_READ)])
    if any(one.period.every for one in found) and _COMING.search(asked.text):
        found = [one for one in found if not one.period.every]
    spans = (_span(one, text, zone) for one in ranges.joined(found, asked))
    return tuple(span for span in spans if span.start < span.end)[:MOST_SPANS]


def _english(asked: Asked) -> Iterator[Found]:
    position = 0
    while match := english_words.START.search(asked.text, position):
        found = read(english.RULES[match.lastgroup or ""], asked, match.start())
        if found:
            found = narrowed(found, asked)
            yield chinese.narrowed(found, asked)
        position = found.to if found else match.end()


def _chinese(asked: Asked) -> Iterator[Found]:
    if asked.text.isascii():
        return
    position = 0
    while (position := chinese.start(asked.text, position)) >= 0:
        found = chinese.read_chinese(asked, position)
        yield from found
        position = found[-1].to if found else position + 1


def _without_overlaps(found: Sequence[Found]) -> list[Found]:
    """In order; of two that overlap the longer."""
    apart: list[Found] = []
    for one in sorted(found, key=lambda one: (one.at, -one.to)):
        if not apart or one.at >= apart[-1].to:
            apart.append(one)
        elif one.to - one.at > apart[-1].to - apart[-1].at:
            apart[-1] = one
    return apart


def _span(found: Found, text: str, zone: tzinfo) -> TimeSpan:
    start, end = found.period.start, found.period.end
    first = FAR_PAST if start <= LONG_AGO else start.replace(tzinfo=zone).astimezone(UTC)
    last = FAR_PAST if end <= LONG_AGO else end.replace(tzinfo=zone).astimezone(UTC)
    return TimeSpan(start=first, end=last, text=text[found.at : found.to], position=(found.at, found.to))


def closeness(spans: Sequence[TimeSpan], at: NDArray[np.float64]) -> NDArray[np.float64]:
    """How near messages are in time to the nearest of some spans, in [0, 1]; `at` in microseconds since 1970.

    1 inside a span. What happened is told afterwards: the value halves with each length of the span after its end (at
    least a day, at most 14), and eight times as fast before its start. Without spans every time fits: 1.
    """
    near = np.zeros(at.shape) if spans else np.ones(at.shape)
    for span in spans:
        start, end = (span.start - _EPOCH) / _MICROSECOND, (span.end - _EPOCH) / _MICROSECOND
        half_life = min(max(end - start, _DAY), 14 * _DAY)
        away = np.maximum(at - end, 0) + 8 * np.maximum(start - at, 0)
        near = np.maximum(near, np.exp2(-away / half_life))
    return near
