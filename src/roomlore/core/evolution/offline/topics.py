"""What is talked about again and again: words that stand together in a sentence far oftener than by chance."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import combinations

from roomlore.core.evolution.offline.general_words import WEEKDAY, is_telling, is_topical
from roomlore.core.evolution.offline.phrasing import adjoining, surface
from roomlore.core.evolution.offline.reading import Line
from roomlore.core.evolution.offline.support import Support
from roomlore.core.text import language

_MESSAGES, _DAYS, _PEOPLE = 4, 3, 2
_APART = 5
"""Words that may stand anywhere in a sentence must be found together in one message more."""
_BOUND, _SHORT = 0.3, 100
_LEAST_SCORE = 1.0
_ALONE_MESSAGES, _ALONE_DAYS, _ALONE_PEOPLE, _ALONE_SHARED = 6, 4, 3, 3
_AROUND = 8
_PHRASE = 0.8
_ANSWERED, _OFTEN_SHARED, _OFTEN_ANSWERED, _FULLY_ANSWERED = 3.5, 4, 2.0, 8.0
_MOST_PAIRS = 2_000
_PAIR = tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Topic:
    """`keys`: the words that each line of the support has, two in one sentence or one alone. `phrase`: two that stand
    beside each other. `score`: to compare topics by."""

    keys: tuple[str, ...]
    support: Support
    phrase: bool
    score: float


def topics(lines: Sequence[Line]) -> list[Topic]:
    """Best first. Each has a fresh message among its support."""
    places = _places(lines)
    pairs = (_together(pair, places, lines) for pair in _pairs(lines, places))
    talk = _Talk(lines)
    fresh = sorted({key for line in lines if line.fresh for key in line.spans if key in places and is_telling(key)})
    alone = (talk.alone(key, places[key]) for key in fresh)
    found = [topic for topic in (*pairs, *alone) if topic and topic.score >= _LEAST_SCORE]
    return sorted(found, key=lambda topic: (-topic.score, topic.keys))


def _places(lines: Sequence[Line]) -> dict[str, set[int]]:
    """In which lines each word stands that several people use on several days."""
    places: defaultdict[str, set[int]] = defaultdict(set)
    for at, line in enumerate(lines):
        for key in line.spans:
            places[key].add(at)
    return {key: held for key, held in places.items() if len(held) >= _MESSAGES and _is_shared(held, lines)}


def _is_shared(held: set[int], lines: Sequence[Line]) -> bool:
    return len({lines[at].day for at in held}) >= _DAYS and len({lines[at].sender for at in held}) >= _PEOPLE


def _pairs(lines: Sequence[Line], places: Mapping[str, set[int]]) -> list[_PAIR]:
    """Those of fresh sentences whose words do not overlap; of very many the commonest."""
    counts: Counter[_PAIR] = Counter()
    for line in lines:
        if line.fresh:
            keys = sorted(key for key in line.spans if key in places)
            counts.update(
                pair for pair in combinations(keys, 2) if _fits(*pair) and _apart(*(line.spans[key] for key in pair))
            )
    return sorted(counts, key=lambda pair: (-counts[pair], pair))[:_MOST_PAIRS]


def _fits(one: str, other: str) -> bool:
    topical = is_topical(one) + is_topical(other)
    return topical == 2 or (topical == 1 and (one + other).count(WEEKDAY) == 1)


def _apart(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[1] <= other[0] or other[1] <= one[0]


def _together(pair: _PAIR, places: Mapping[str, set[int]], lines: Sequence[Line]) -> Topic | None:
    """As a phrase where the two nearly always stand beside each other."""
    one, other = pair
    both = [at for at in sorted(places[one] & places[other]) if _apart(lines[at].spans[one], lines[at].spans[other])]
    bound = _bound(len(both), len(places[one]), len(places[other]), len(lines))
    if len(both) < _MESSAGES or bound < _BOUND:
        return None
    beside = [at for at in both if adjoining(lines[at], pair)]
    phrase = len(beside) >= _PHRASE * len(both)
    support = Support.of(lines[at] for at in (beside if phrase else both))
    if not support.holds(messages=_MESSAGES if phrase else _APART, days=_DAYS, people=_PEOPLE):
        return None
    return Topic(pair, support, phrase, bound * _breadth(support))


def _breadth(support: Support) -> float:
    return math.log1p(len(support.days)) * math.log1p(len(support.people))


def _bound(both: int, one: int, other: int, lines: int) -> float:
    """Normalised pointwise mutual information: 0 by chance, 1 where neither stands without the other. A short room
    would hold anything for chance, so it counts as one of 100 sentences."""
    if not both:
        return 0.0
    every = max(lines, _SHORT)
    return math.log(both * every / (one * other)) / math.log(every / both) if both < every else 0.0


def _is_name(line: Line, key: str) -> bool:
    """Whether a word is written as the name of something. Chinese does not show it, nor does a word among Chinese."""
    written, start = surface(line, key), line.spans[key][0]
    return (written[0].isupper() and start > 0) or not written.isalpha() or language(line.text) == "zh"


class _Talk:
    """A room's messages, to tell a word that people answer each other with from one that everybody uses now and then.
    A word's uses by several people within a few messages are compared with what its frequency alone would bring."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines
        self._messages = list({line.handle: line for line in lines}.values())
        self._numbers = {line.handle: number for number, line in enumerate(self._messages)}

    def alone(self, key: str, held: set[int]) -> Topic | None:
        """A topic of one word."""
        uses = {self._numbers[self._lines[at].handle]: self._lines[at] for at in sorted(held)}
        shared = self._shared_days(uses)
        if len(uses) < _ALONE_MESSAGES or shared < _ALONE_SHARED:
            return None
        support = Support.of(uses.values())
        if not support.holds(messages=_ALONE_MESSAGES, days=_ALONE_DAYS, people=_ALONE_PEOPLE):
            return None
        if 2 * sum(_is_name(line, key) for line in uses.values()) < len(uses):
            return None
        answered = self._answered(uses)
        if answered < (_OFTEN_ANSWERED if shared >= _OFTEN_SHARED else _ANSWERED):
            return None
        return Topic((key,), support, True, min(answered / _FULLY_ANSWERED, 1.0) * _breadth(support))

    def _shared_days(self, uses: Mapping[int, Line]) -> int:
        people: defaultdict[date, set[str]] = defaultdict(set)
        for line in uses.values():
            people[line.day].add(line.sender)
        return sum(len(those) > 1 for those in people.values())

    def _answered(self, uses: Mapping[int, Line]) -> float:
        """By how many standard deviations more uses stand near somebody else's than would by chance."""
        share = len(uses) / len(self._messages)
        near = [self._near(number) for number in uses]
        found = sum(any(other in uses for other in others) for others in near)
        chances = [1 - (1 - share) ** len(others) for others in near]
        spread = math.sqrt(max(math.fsum(chance * (1 - chance) for chance in chances), 0.5))
        return (found - math.fsum(chances)) / spread

    def _near(self, number: int) -> list[int]:
        """The messages around it of the same day by others."""
        mine = self._messages[number]
        around = range(max(0, number - _AROUND), min(len(self._messages), number + _AROUND + 1))
        return [at for at in around if self._messages[at].sender != mine.sender and self._messages[at].day == mine.day]
