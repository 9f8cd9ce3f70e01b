"""What is found, in a sentence: counts that its evidence bears out, and words that people wrote.

The sentence can be read again: its words and its quotation tell whether new messages say it once more.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

from roomlore.core.evolution.offline.reading import Line
from roomlore.core.evolution.offline.support import Support
from roomlore.core.text import language, truncate

_QUOTED = 160
_NAME = 40
_FIRST_PERSON = re.compile(r"\b(?:i|me|my|mine|we|us|our|ours)\b|[我咱俺]", re.IGNORECASE)
_ENGLISH_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_CHINESE_DAYS = "一二三四五六日"
_DATE = r"\d{4}-\d\d-\d\d"
_SHAPES = tuple(
    re.compile(shape, re.DOTALL)
    for shape in (
        rf"On (?P<days>\d+) of \d+ days with messages \({_DATE} to {_DATE}\), (?:each of the \d+ a [A-Z][a-z]+day, )?"
        r"\d+ people "
        r"(?:talked about (?=.*+(?<=”))(?P<words>“.+?”), (?:such as|in the words of [^:“”]+): “(?P<line>.+)”"
        r"|said the same or nearly the same: “(?P<said>.+)”(?: \(as [^)“”]+ put it\))?|shared (?P<link>\S+))",
        rf"在有消息的 \d+ 天中（{_DATE} 至 {_DATE}），有 (?P<days>\d+) 天(?:（都是周.）)?、\d+ 人"
        r"(?:谈到(?=.*+(?<=”))(?P<words>“.+?”)，(?:例如|[^：“”]+的原话)：“(?P<line>.+)”"
        r"|说过同样或几乎同样的话：“(?P<said>.+)”(?:（[^（）“”]+的原话）)?|分享过 (?P<link>\S+))",
    )
)
_WORD = re.compile("“([^“”\n]+)”")


@dataclass(frozen=True, slots=True)
class Told:
    """What a statement of this engine says. `days`: on how many. One of `words`, `said` and `link` is there."""

    days: int
    words: tuple[str, ...] = ()
    said: str = ""
    link: str = ""


def told(statement: str) -> Told | None:
    """None for a statement that somebody else made."""
    for shape in _SHAPES:
        if found := shape.fullmatch(statement):
            words = tuple(_WORD.findall(found["words"] or ""))
            return Told(int(found["days"]), words, found["said"] or "", found["link"] or "")
    return None


@dataclass(frozen=True, slots=True)
class Teller:
    """Tells what was found in a reading. `days`: on which anything was said, in order."""

    days: Sequence[date]

    def topic(self, words: Sequence[str], line: Line, support: Support) -> str:
        if language(line.text) == "zh":
            source = f"{_name(line)}的原话" if _is_own(line) else "例如"
            return f"{self._chinese(support)}谈到{_named(words, '和')}，{source}：“{_shown(line)}”"
        source = f"in the words of {_name(line)}" if _is_own(line) else "such as"
        return f"{self._english(support)} talked about {_named(words, ' and ')}, {source}: “{_shown(line)}”"

    def restated(self, line: Line, support: Support) -> str:
        if language(line.text) == "zh":
            author = f"（{_name(line)}的原话）" if _is_own(line) else ""
            return f"{self._chinese(support)}说过同样或几乎同样的话：“{_shown(line)}”{author}"
        author = f" (as {_name(line)} put it)" if _is_own(line) else ""
        return f"{self._english(support)} said the same or nearly the same: “{_shown(line)}”{author}"

    def link(self, address: str, support: Support) -> str:
        if language(" ".join(line.text for line in support.lines)) == "zh":
            return f"{self._chinese(support)}分享过 {address}"
        return f"{self._english(support)} shared {address}"

    def _english(self, support: Support) -> str:
        weekday = self._weekday(support)
        always = "" if weekday is None else f" each of the {len(support.days)} a {_ENGLISH_DAYS[weekday]},"
        share = f"On {len(support.days)} of {len(self.days)} days with messages ({self.days[0]} to {self.days[-1]}),"
        return f"{share}{always} {len(support.people)} people"

    def _chinese(self, support: Support) -> str:
        weekday = self._weekday(support)
        always = "" if weekday is None else f"（都是周{_CHINESE_DAYS[weekday]}）"
        share = f"在有消息的 {len(self.days)} 天中（{self.days[0]} 至 {self.days[-1]}），有 {len(support.days)} 天"
        return f"{share}{always}、{len(support.people)} 人"

    def _weekday(self, support: Support) -> int | None:
        """That of all its days, where it is on three at least and most of the room's days are others."""
        weekdays = {day.weekday() for day in support.days}
        if len(support.days) < 3 or len(weekdays) > 1:
            return None
        only = weekdays.pop()
        return only if 2 * sum(day.weekday() == only for day in self.days) <= len(self.days) else None


def _named(words: Sequence[str], between: str) -> str:
    return between.join(f"“{word}”" for word in words)


def _is_own(line: Line) -> bool:
    return bool(_FIRST_PERSON.search(line.text))


def _name(line: Line) -> str:
    return truncate(re.sub(r"[:：()（）“”]", " ", line.name), _NAME).strip() or "?"


def _shown(line: Line) -> str:
    short = truncate(line.text, _QUOTED)
    return short if short == line.text else f"{short}…"


def surface(line: Line, key: str) -> str:
    """The word as it stands in a line."""
    start, end = line.spans[key]
    return (line.text if len(line.text) == len(line.folded) else line.folded)[start:end]


def adjoining(line: Line, keys: Sequence[str]) -> str:
    """The words of a line as one phrase where nothing but a space stands between them, else ''."""
    spans = sorted(line.spans[key] for key in keys)
    if any(after[0] - before[1] > 1 for before, after in pairwise(spans)):
        return ""
    between = [line.folded[before[1] : after[0]] for before, after in pairwise(spans)]
    if any(gap.strip() for gap in between):
        return ""
    return (line.text if len(line.text) == len(line.folded) else line.folded)[spans[0][0] : spans[-1][1]]
