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

_NEGATED = re.compile(
    r"\b(?:not|never|no|cannot|without|neither|nor|stop(?:ped|s)?|cancel(?:l?ed)?|instead|changed|moved|postponed"
    r"|[a-z]+n['’]t|dont|doesnt|didnt|cant|wont|isnt)\b"
    r"|不(?![错錯过過仅僅但])|[没沒勿]|取消|[别別](?![人的墅])|停止|改[到成为為]|推[迟遲]",
)
_NUMBER = re.compile(
    r"\d+(?:[.:]\d+)*|[一二两兩三四五六七八九十百千万半]+(?=[点點号號元块塊個个次天周月年岁歲层層楼樓分])"
)


@dataclass(frozen=True, slots=True)
class Wording:
    """`details`: numbers and weekdays. `turned`: it denies, or says that something changed."""

    terms: frozenset[str]
    details: frozenset[str]
    turned: bool

    @classmethod
    def of(cls, text: str) -> "Wording":
        folded = fold(text)
        days = {key for key in keys_of(folded) if key.startswith(WEEKDAY)}
        return cls(
            frozenset(terms(text)), frozenset(days.union(_NUMBER.findall(folded))), bool(_NEGATED.search(folded))
        )

    def allows(self, other: "Wording") -> bool:
        """Whether the other one has all its details and is turned the same way."""
        return self.turned == other.turned and self.details <= other.details


class Weights:
    """How rare terms are among some wordings."""

    def __init__(self, wordings: Iterable[Wording]) -> None:
        self._counts = Counter[str]()
        self._all = 0
        for wording in wordings:
            self._counts.update(wording.terms)
            self._all += 1

    def of(self, term: str) -> float:
        found = self._counts[term]
        return math.log1p((self._all - found + 0.5) / (found + 0.5))

    def total(self, found: Iterable[str]) -> float:
        return math.fsum(map(self.of, found))

    def likeness(self, one: Wording, other: Wording) -> float:
        """The share of all their terms that they share, in [0, 1]."""
        every = self.total(one.terms | other.terms)
        return self.total(one.terms & other.terms) / every if every else 0.0

    def share(self, part: Wording, whole: Wording) -> float:
        """How much of a part's terms a whole has, in [0, 1]."""
        size = self.total(part.terms)
        return self.total(part.terms & whole.terms) / size if size else 0.0
