"""Whether two sentences say the same: most of their words, weighed by rarity, and nothing that turns it around."""

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from roomlore.core.evolution.offline.general_words import WEEKDAY
from roomlore.core.evolution.offline.reading import keys_of
from roomlore.core.terms import terms
from roomlore.core.text import fold

ALIKE = 0.5
"""From which share of common words on two sentences say the same."""
CONTAINED, MOST_LONGER = 0.85, 3.0
"""Or how much of a sentence another must have, and how many times longer it may be."""
_FEW = 100
_NEGATED = re.compile(
    r"\b(?:not|never|no|cannot|without|neither|nor|stop(?:ped|s)?|cancel(?:l?ed)?|instead|changed|moved|postponed"
    r"|[a-z]+n['’]t|dont|doesnt|didnt|cant|wont|isnt)\b"
    r"|不(?![错錯过過仅僅但])|[没沒勿]|取消|[别別](?![人的墅忘])|停止|改[到成为為]|推[迟遲]",
)
_REMINDER = re.compile(r"\b(?:do not|don['’]?t|never) forget\b")
_NUMBER = re.compile(
    r"\d+(?:[.:]\d+)*|(?<![一二两兩三四五六七八九十百千万半])[一二两兩三四五六七八九十百千万半]++(?=[点點号號元块塊個个次天周月年岁歲层層楼樓分])"
)


@dataclass(frozen=True, slots=True)
class Wording:
    """`details`: numbers and weekdays. `turned`: it denies, or says that something changed."""

    terms: frozenset[str]
    details: frozenset[str]
    turned: bool

    @classmethod
    def of(cls, text: str, keys: Iterable[str] | None = None) -> "Wording":
        """`keys`: of the text, where they are known."""
        folded = fold(text)
        days = {key for key in (keys_of(folded) if keys is None else keys) if key.startswith(WEEKDAY)}
        details = frozenset(days.union(_NUMBER.findall(folded)))
        return cls(frozenset(terms(text)), details, bool(_NEGATED.search(_REMINDER.sub("", folded))))

    def allows(self, other: "Wording") -> bool:
        """Whether the other one has all its details and is turned the same way."""
        return self.turned == other.turned and self.details <= other.details


class Weights(dict[str, float]):
    """How rare terms are among some wordings, as in BM25; reckoned when first asked for. Of few wordings no term is
    held to be common: what is said again and again is just what is looked for."""

    def __init__(self, wordings: Iterable[Wording]) -> None:
        super().__init__()
        self._counts = Counter[str]()
        self._all = 0
        for wording in wordings:
            self._counts.update(wording.terms)
            self._all += 1

    def __missing__(self, term: str) -> float:
        found = self._counts[term]
        self[term] = weight = math.log1p((max(self._all, _FEW) - found + 0.5) / (found + 0.5))
        return weight

    def total(self, found: Iterable[str]) -> float:
        """The same in any order."""
        return math.fsum([self[term] for term in found])

    def likeness(self, one: Wording, other: Wording) -> float:
        """The share of all their terms that they share, in [0, 1]."""
        every = self.total(one.terms | other.terms)
        return self.total(one.terms & other.terms) / every if every else 0.0

    def share(self, part: Wording, whole: Wording) -> float:
        """How much of a part's terms a whole has, in [0, 1]."""
        size = self.total(part.terms)
        return self.total(part.terms & whole.terms) / size if size else 0.0

    def says(self, said: Wording, other: Wording) -> bool:
        """Whether the other one says what was said."""
        if not said.allows(other):
            return False
        short = self.total(other.terms) <= MOST_LONGER * self.total(said.terms)
        return self.likeness(said, other) >= ALIKE or (short and self.share(said, other) >= CONTAINED)
