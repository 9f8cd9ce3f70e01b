"""What is talked about again and again: words that stand together in a sentence far oftener than by chance."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from roomlore.core.evolution.offline.general_words import WEEKDAY, is_topical
from roomlore.core.evolution.offline.reading import Line
from roomlore.core.evolution.offline.support import Support

MESSAGES, DAYS, PEOPLE = 4, 3, 2
_BOUND = 0.3
_PAIR = tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Topic:
    """`keys`: two or more words that each line of the support has in one sentence. `score`: to compare topics by."""

    keys: tuple[str, ...]
    support: Support
    score: float


def topics(lines: Sequence[Line]) -> list[Topic]:
    """Best first. Each has a fresh message among its support."""
    places = _places(lines)
    found = [topic for pair in _pairs(lines, places) if (topic := _topic(pair, places, lines))]
    return sorted(found, key=lambda topic: (-topic.score, topic.keys))


def _places(lines: Sequence[Line]) -> dict[str, set[int]]:
    """In which lines each word stands that several people use on several days."""
    places: defaultdict[str, set[int]] = defaultdict(set)
    for at, line in enumerate(lines):
        for key in line.spans:
            places[key].add(at)
    return {key: held for key, held in places.items() if len(held) >= MESSAGES and _is_shared(held, lines)}


def _is_shared(held: set[int], lines: Sequence[Line]) -> bool:
    return len({lines[at].day for at in held}) >= DAYS and len({lines[at].sender for at in held}) >= PEOPLE


def _pairs(lines: Sequence[Line], places: Mapping[str, set[int]]) -> Iterator[_PAIR]:
    """Those of fresh sentences, each once, words that overlap left out."""
    seen: set[_PAIR] = set()
    for line in lines:
        if line.fresh:
            keys = [key for key in line.spans if key in places]
            for one, other in combinations(sorted(keys), 2):
                pair = (one, other)
                if pair not in seen and _fits(one, other) and _apart(line.spans[one], line.spans[other]):
                    seen.add(pair)
                    yield pair


def _fits(one: str, other: str) -> bool:
    topical = is_topical(one) + is_topical(other)
    return topical == 2 or (topical == 1 and (one + other).count(WEEKDAY) == 1)


def _apart(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[1] <= other[0] or other[1] <= one[0]


def _topic(pair: _PAIR, places: Mapping[str, set[int]], lines: Sequence[Line]) -> Topic | None:
    one, other = pair
    both = [at for at in sorted(places[one] & places[other]) if _apart(lines[at].spans[one], lines[at].spans[other])]
    if len(both) < MESSAGES:
        return None
    bound = _bound(len(both), len(places[one]), len(places[other]), len(lines))
    support = Support.of(lines[at] for at in both)
    if bound < _BOUND or not support.holds(messages=MESSAGES, days=DAYS, people=PEOPLE):
        return None
    score = bound * math.log1p(len(support.days)) * math.log1p(len(support.people))
    return Topic(pair, support, score)


def _bound(both: int, one: int, other: int, all_: int) -> float:
    """Normalised pointwise mutual information: 0 by chance, 1 where neither stands without the other."""
    if both >= all_:
        return 0.0
    return math.log(both * all_ / (one * other)) / -math.log(both / all_)
