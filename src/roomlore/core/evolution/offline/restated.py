"""What is said again in the same or nearly the same words."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from roomlore.core.evolution.offline.alike import Weights, Wording
from roomlore.core.evolution.offline.general_words import is_topical
from roomlore.core.evolution.offline.reading import Line
from roomlore.core.evolution.offline.support import Support
from roomlore.core.text import asks, graphemes, greets, thanks

ALIKE = 0.5
_MESSAGES, _DAYS, _PEOPLE, _BREADTH = 3, 2, 2, 5
_COMMONEST = 80
_MOST_COMPARED = 40
_SHORTEST, _LONGEST = 5, 200
_FEWEST_TERMS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Restated:
    """`line`: the sentence nearest to all of the support, itself a part of it."""

    line: Line
    support: Support
    score: float


def states(line: Line) -> bool:
    """Whether it says something that may be true tomorrow: no question, greeting or thanks."""
    if not any(map(is_topical, line.spans)) or not _SHORTEST <= graphemes(line.text) <= _LONGEST:
        return False
    return not (asks(line.folded) or greets(line.folded) or thanks(line.folded))


def restated(lines: Sequence[Line], wordings: Sequence[Wording], weights: Weights) -> list[Restated]:
    """Best first, of lines that state something. Each has a fresh one among its support."""
    crowd = _Crowd(lines, wordings, weights)
    found: dict[tuple[str, ...], Restated] = {}
    for at, line in enumerate(lines):
        if line.fresh and len(wordings[at].terms) >= _FEWEST_TERMS and (one := _around(at, crowd)):
            found.setdefault(one.support.handles, one)
    return sorted(found.values(), key=lambda one: (-one.score, one.line.text))


class _Crowd:
    """Lines, and which of them are alike. `near(at)`: the places of those that say what one says, itself among them,
    each with how much alike they are."""

    def __init__(self, lines: Sequence[Line], wordings: Sequence[Wording], weights: Weights) -> None:
        self.lines = lines
        self._wordings = wordings
        self._weights = weights
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        for at, wording in enumerate(wordings):
            for term in wording.terms:
                self._places[term].append(at)
        self.near = cache(self._near)

    def _near(self, at: int) -> dict[int, float]:
        """A sentence that shares only what stands nearly everywhere is not looked at."""
        one = self._wordings[at]
        places = (self._places[term] for term in sorted(one.terms))
        others = sorted({other for held in places if len(held) <= _COMMONEST for other in held} | {at})
        alike = {other: self._likeness(one, other) for other in others if one.allows(self._wordings[other])}
        return {other: likeness for other, likeness in alike.items() if likeness >= ALIKE}

    def _likeness(self, one: Wording, other: int) -> float:
        return self._weights.likeness(one, self._wordings[other])


def _around(at: int, crowd: _Crowd) -> Restated | None:
    near = crowd.near(at)
    if len(near) < _MESSAGES:
        return None
    centre = max(sorted(near)[-_MOST_COMPARED:], key=lambda one: (math.fsum(crowd.near(one).values()), -one))
    members = crowd.near(centre)
    support = Support.of(crowd.lines[one] for one in sorted(members))
    wide = len(support.days) + len(support.people) >= _BREADTH
    if not wide or not support.holds(messages=_MESSAGES, days=_DAYS, people=_PEOPLE):
        return None
    score = math.log1p(len(support.days)) * math.log1p(len(support.people)) * math.fsum(members.values()) / len(members)
    return Restated(crowd.lines[centre], support, score)
