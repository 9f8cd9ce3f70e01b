"""What is said again in the same or nearly the same words."""

import math
import re
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
_MOST_COMPARED = 200
_MOST_CENTRES = 20
_SHORTEST, _LONGEST = 5, 200
_FEWEST_TERMS = 3
_POINTING = re.compile(
    r"(?:and |but |so |yeah,? |yes,? )?(?:it|its|it['’]s|that|that['’]s|this|these|those|they|he|she)\b|[这這那它他她]"
)
"""It says nothing without what stands before it."""


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
    return not (_POINTING.match(line.folded) or asks(line.folded) or greets(line.folded) or thanks(line.folded))


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
    each with how much alike they are; of very many the latest."""

    def __init__(self, lines: Sequence[Line], wordings: Sequence[Wording], weights: Weights) -> None:
        self.lines = lines
        self._wordings = wordings
        self._weights = weights
        self._sizes = [weights.total(wording.terms) for wording in wordings]
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        for at, wording in enumerate(wordings):
            for term in wording.terms:
                self._places[term].append(at)
        self.near = cache(self._near)

    def _near(self, at: int) -> dict[int, float]:
        others = sorted(other for other in self._possible(at) if self._fits(at, other))[-_MOST_COMPARED:]
        alike = {other: self._likeness(at, other) for other in others}
        return {other: likeness for other, likeness in alike.items() if likeness >= ALIKE}

    def _possible(self, at: int) -> set[int]:
        """Those that have one of its rarest words: without all of these nothing is alike enough."""
        weights, found = self._weights, {at}
        left = self._sizes[at]
        for term in sorted(self._wordings[at].terms, key=lambda term: (-weights[term], term)):
            if left < ALIKE * self._sizes[at]:
                break
            found.update(self._places[term])
            left -= weights[term]
        return found

    def _fits(self, at: int, other: int) -> bool:
        one, two = self._sizes[at], self._sizes[other]
        return ALIKE * one <= two <= one / ALIKE and self._wordings[at].allows(self._wordings[other])

    def _likeness(self, at: int, other: int) -> float:
        shared = self._weights.total(self._wordings[at].terms & self._wordings[other].terms)
        every = self._sizes[at] + self._sizes[other] - shared
        return shared / every if every else 0.0


def _around(at: int, crowd: _Crowd) -> Restated | None:
    near = crowd.near(at)
    if len(near) < _MESSAGES:
        return None
    centre = max(sorted(near)[-_MOST_CENTRES:], key=lambda one: (math.fsum(crowd.near(one).values()), -one))
    members = crowd.near(centre)
    support = Support.of(crowd.lines[one] for one in sorted(members))
    wide = len(support.days) + len(support.people) >= _BREADTH
    if not wide or not support.holds(messages=_MESSAGES, days=_DAYS, people=_PEOPLE):
        return None
    score = math.log1p(len(support.days)) * math.log1p(len(support.people)) * math.fsum(members.values()) / len(members)
    return Restated(crowd.lines[centre], support, score)
