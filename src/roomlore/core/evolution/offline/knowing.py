"""What is known already: which memories new messages say again, and what need not be found once more."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from roomlore.core.evolution.offline.alike import Weights, Wording
from roomlore.core.evolution.offline.general_words import is_topical
from roomlore.core.evolution.offline.links import addresses
from roomlore.core.evolution.offline.phrasing import Told, told
from roomlore.core.evolution.offline.reading import Line, keys_of
from roomlore.core.text import HAN, fold

MOST_CITED = 20
_SHARE = 0.6
_FEWEST = 2
_NEAR = 0.35
_HAN = re.compile(f"[{HAN}]")


@dataclass(frozen=True)
class Known:
    """A statement that is there, or that was deleted. `told`: what it says, where this engine made it."""

    statement: str

    @cached_property
    def told(self) -> Told | None:
        return told(self.statement)

    @cached_property
    def wording(self) -> Wording:
        return Wording.of((self.told and self.told.said) or self.statement)

    @cached_property
    def keys(self) -> frozenset[str]:
        """The words it is about."""
        about = " ".join(self.told.words) if self.told and self.told.words else self.statement
        return frozenset(key for key in keys_of(fold(about)) if is_topical(key))

    def is_said_by(self, line: Line, wording: Wording, weights: Weights) -> bool:
        """Whether a line that states something says it too."""
        if self.told is None:
            return (
                self._shares_words(line)
                and self.wording.allows(wording)
                and weights.share(self.wording, wording) >= _SHARE
            )
        if self.told.said:
            return weights.says(self.wording, wording)
        if self.told.link:
            return self.told.link in addresses(line)
        return all(has(line, word) for word in self.told.words)

    def _shares_words(self, line: Line) -> bool:
        """Two at least, and one that tells something."""
        shared = keys_of(fold(self.statement)).keys() & line.spans.keys()
        return len(shared) >= _FEWEST and any(map(is_topical, shared))


def has(line: Line, word: str) -> bool:
    """Whether a line has a word or a phrase, in any form of it."""
    folded = fold(word)
    if _HAN.search(folded):
        return folded in line.folded
    keys = keys_of(folded).keys()
    return bool(keys) and keys <= line.spans.keys()


def covers(known: Known, keys: Collection[str]) -> bool:
    """Whether it is about one of these words and this engine's, or has them all."""
    if known.told and known.told.words:
        return not known.keys.isdisjoint(keys)
    return known.keys.issuperset(key for key in keys if is_topical(key))


def repeats(known: Known, wording: Wording, weights: Weights) -> bool:
    """Whether a sentence is so near to it that both need not be kept."""
    return max(weights.likeness(known.wording, wording), weights.share(known.wording, wording)) >= _NEAR
