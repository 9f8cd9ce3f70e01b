"""What is said again in the same or nearly the same words."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from roomlore.core.evolution.offline.alike import ALIKE, CONTAINED, MOST_LONGER, Weights, Wording
from roomlore.core.evolution.offline.general_words import is_topical
from roomlore.core.evolution.offline.reading import URL, Line, keys_of
from roomlore.core.evolution.offline.support import Support
from roomlore.core.text import HAN, asks, fold, graphemes, greets, thanks

_MESSAGES, _DAYS, _PEOPLE, _BREADTH = 3, 2, 2, 5
_COMMONEST = 80
_MOST_CENTRES = 20
_SHORTEST, _LONGEST = 5, 160
_FEWEST_TERMS = 3
_POINTING = re.compile(
    r"(?:and |but |so |yeah,? |yes,? )?(?:it|its|it['’]s|that|that['’]s|this|these|those|they|he|she)\b|[这這那它他她]"
)
"""It says nothing without what stands before it."""
_COURTESY = re.compile(
    r"\b(?:good (?:morning|afternoon|evening|night|luck)|see you|talk (?:to you )?(?:soon|later)|take care|welcome"
    r"|have an? (?:nice|good|great|lovely)|happy (?:birthday|new year|holidays)|congrat[a-z]*|well done|no worries"
    r"|keep in touch)\b"
    r"|[早晚]上好|[上中下]午好|大家好|晚安|早安|再[见見聊]|下次[见見聊]|[生节節新][日年][快愉]|恭喜|加油|欢迎|歡迎|辛苦|保持[联聯]系"
)
_MACHINE = re.compile(
    r"[{}<>=|\\]|\(\)|::|\A\W*(?:error|warn(?:ing)?|info|debug|exception|traceback|caused by|at \w+\.)\b"
    r"|\A[$#]|\A[!-~]+\Z"
)
_HAN_COMMA = re.compile(rf"(?<=[{HAN}])[，,；;]\s*")
_CONDITION = re.compile("如果|要是|除非|假如|假设|若|只要|只有|即使|就算|否则|不然|無論|无论|虽然|雖然|但")
_OPENING = re.compile(r"[^,，!！、~.。 ]{1,16}(?: all| everyone| guys| there)?[,，!！、~.。 ]+")


@dataclass(frozen=True, slots=True, eq=False)
class Restated:
    """`line`: the sentence nearest to all of the support, itself a part of it."""

    line: Line
    support: Support
    score: float


def is_pasted(line: Line) -> bool:
    """Whether it looks like code, a command's output or a log. Links are no sign of it."""
    return bool(_MACHINE.search(URL.sub("", line.folded).strip()))


def states(line: Line) -> bool:
    """Whether it says something that may be true tomorrow: no question, no thanks, no mere greeting."""
    if not any(map(is_topical, line.spans)) or not _SHORTEST <= graphemes(line.text) <= _LONGEST:
        return False
    rest = _OPENING.sub("", line.folded, count=1) if greets(line.folded) else line.folded
    if len(rest) < _SHORTEST or _POINTING.match(rest):
        return False
    return not (is_pasted(line) or _COURTESY.search(rest) or greets(rest) or asks(line.folded) or thanks(rest))


def stated(lines: Iterable[Line]) -> Iterator[Line]:
    """Those that state something, each followed by its clauses that do; a condition is not taken from its clause."""
    for line in lines:
        if states(line):
            yield line
        if _HAN_COMMA.search(line.text) and not _CONDITION.search(line.text):
            yield from filter(states, _clauses(line))


def _clauses(line: Line) -> Iterator[Line]:
    for part in _HAN_COMMA.split(line.text):
        folded = fold(part)
        spans = {key: span for key, span in keys_of(folded).items() if key in line.spans}
        yield replace(line, text=part.strip(), folded=folded.strip(), spans=spans)


def restated(lines: Sequence[Line], wordings: Sequence[Wording], weights: Weights) -> list[Restated]:
    """Best first, of lines that state something. Each has a fresh one among its support."""
    said: defaultdict[Wording, list[Line]] = defaultdict(list)
    for line, wording in zip(lines, wordings, strict=True):
        if len(wording.terms) >= _FEWEST_TERMS:
            said[wording].append(line)
    crowd = _Crowd(said, weights)
    found: dict[int, Restated | None] = {}
    for at, held in enumerate(said.values()):
        if any(line.fresh for line in held) and (centre := crowd.centre(at)) not in found:
            found[centre] = _around(centre, crowd)
    return sorted(filter(None, found.values()), key=lambda one: (-one.score, one.line.text))


class _Crowd:
    """Wordings with the lines that have them, and which of them say what another one says. Terms that nearly all have
    do not count."""

    def __init__(self, said: Mapping[Wording, list[Line]], weights: Weights) -> None:
        self.lines = list(said.values())
        self._wordings = list(said)
        self._weights = weights
        places: defaultdict[str, list[int]] = defaultdict(list)
        for at, wording in enumerate(said):
            for term in wording.terms:
                places[term].append(at)
        self._places = {term: held for term, held in places.items() if len(held) <= _COMMONEST}
        self._terms = [sorted(wording.terms & self._places.keys()) for wording in said]
        self._sizes = [weights.total(terms) for terms in self._terms]
        self.near = cache(self._near)
        self._shared = cache(self._share)

    def centre(self, at: int) -> int:
        """Of what it says the wording that most others say too."""
        possible = [(one, weight) for one, weight in self._shared(at).items() if weight >= ALIKE * self._sizes[one]]
        said = [(self._sameness(one, at, weight), one) for one, weight in possible]
        best = sorted((-sameness, one) for sameness, one in said if sameness >= ALIKE)[:_MOST_CENTRES]
        return max((one for _, one in best), key=lambda one: (math.fsum(self.near(one).values()), -one), default=at)

    def _near(self, at: int) -> dict[int, float]:
        """Those that say it, itself among them, each with how much the two are the same."""
        least = ALIKE * self._sizes[at]
        possible = [(other, weight) for other, weight in self._shared(at).items() if weight >= least]
        same = {other: self._sameness(at, other, weight) for other, weight in possible}
        return {other: sameness for other, sameness in same.items() if sameness >= ALIKE}

    def _share(self, at: int) -> dict[int, float]:
        """The weight of the terms shared with each other wording."""
        shared: defaultdict[int, float] = defaultdict(float)
        for term in self._terms[at]:
            for other in self._places[term]:
                shared[other] += self._weights[term]
        return shared

    def _sameness(self, at: int, other: int, shared: float) -> float:
        one, two = self._sizes[at], self._sizes[other]
        if not ALIKE * one <= two <= MOST_LONGER * one or not self._wordings[at].allows(self._wordings[other]):
            return 0.0
        return shared / one if shared >= CONTAINED * one else shared / (one + two - shared)


def _around(centre: int, crowd: _Crowd) -> Restated | None:
    members = crowd.near(centre)
    support = Support.of(sorted((line for one in members for line in crowd.lines[one]), key=lambda line: line.number))
    wide = len(support.days) + len(support.people) >= _BREADTH
    if not wide or not support.holds(messages=_MESSAGES, days=_DAYS, people=_PEOPLE):
        return None
    score = math.log1p(len(support.days)) * math.log1p(len(support.people)) * math.fsum(members.values()) / len(members)
    return Restated(crowd.lines[centre][-1], support, score)
