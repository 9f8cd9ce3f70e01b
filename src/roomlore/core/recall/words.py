"""The words of facts, and how near facts lie to a text by their words: TF-IDF over Chinese and English alike."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roomlore.core.recall.topic import Part
from roomlore.core.search import Floats
from roomlore.core.terms import terms
from roomlore.core.text import HAN, HANGUL, KANA

_Places = NDArray[np.int32]
_DENSE_SCRIPT = re.compile(f"[{HAN}{KANA}{HANGUL}]")


@dataclass(frozen=True, slots=True)
class Counted:
    """The words of one text: their places in a vocabulary, and how much each counts in it."""

    places: _Places
    weights: Floats


class Vocabulary:
    """Words by place. It only grows, so that what was counted with it stays right."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._places)

    def count(self, text: str) -> Counted:
        """The words of a fact. A word said again counts less each time."""
        found = Counter(terms(text))
        places = [self._places.setdefault(word, len(self._places)) for word in found]
        weights = 1 + np.log(np.fromiter(found.values(), float, len(found)))
        return Counted(np.array(places, np.int32), weights)

    def place(self, word: str) -> int:
        """-1 for a word of no fact."""
        return self._places.get(word, -1)


class WordIndex:
    """Which facts have which words. `counted`: a line for each fact, all by one vocabulary, which may know more
    words by now. `used`: how many words the facts have."""

    def __init__(self, vocabulary: Vocabulary, counted: Sequence[Counted]) -> None:
        self.vocabulary = vocabulary
        self.size = len(counted)
        sizes = [line.places.size for line in counted]
        rows = np.repeat(np.arange(self.size, dtype=np.int32), sizes)
        places = np.concatenate([np.zeros(0, np.int32), *(line.places for line in counted)])
        weights = np.concatenate([np.zeros(0), *(line.weights for line in counted)])
        found = np.bincount(places, minlength=len(vocabulary))
        self._rarity = np.log((1 + self.size) / (1 + found)) + 1
        weights = weights * self._rarity[places]
        lengths = np.sqrt(np.bincount(rows, weights * weights, minlength=self.size))
        weights /= np.where(lengths > 0, lengths, 1)[rows]
        by_word = np.argsort(places, kind="stable")
        self._rows, self._weights = rows[by_word], weights[by_word]
        self._starts = np.concatenate([[0], np.cumsum(found)])
        self.used = int(np.count_nonzero(found))

    def similarities(self, parts: Sequence[Part]) -> Floats:
        """The cosine of each fact with each part, as their weighted mean, in [0, 1]."""
        wanted: dict[str, float] = defaultdict(float)
        total = 0.0
        for part in parts:
            words = self._direction(terms(part.text))
            if words:
                total += part.weight
                for word, weight in words.items():
                    wanted[word] += part.weight * weight
        return self._sum((self._place(word), weight) for word, weight in wanted.items()) / (total or 1.0)

    def reach(self, text: str) -> Floats:
        """Of the words of the text that any fact has, how much each fact has, rare ones counting more, in [0, 1]."""
        known = sorted({self._place(word) for word in terms(text)} - {-1})
        worth = [(place, float(self._rarity[place]) ** 2) for place in known]
        found = np.zeros(self.size)
        for place, worth_of_word in worth:
            found[self._rows[self._span(place)]] += worth_of_word
        return found / (sum(worth_of_word for _, worth_of_word in worth) or 1.0)

    def _direction(self, words: Sequence[str]) -> Mapping[str, float]:
        """A text as a vector of length 1."""
        unknown = math.log(1 + self.size) + 1
        weights = {}
        for word, count in Counter(words).items():
            place = self._place(word)
            weights[word] = (1 + math.log(count)) * (float(self._rarity[place]) if place >= 0 else unknown)
        length = math.sqrt(sum(weight * weight for weight in weights.values()))
        return {word: weight / length for word, weight in weights.items()}

    def _sum(self, wanted: Iterable[tuple[int, float]]) -> Floats:
        found = [(self._span(place), weight) for place, weight in wanted if place >= 0]
        if not found:
            return np.zeros(self.size)
        rows = np.concatenate([self._rows[span] for span, _ in found])
        weights = np.concatenate([self._weights[span] * weight for span, weight in found])
        return np.bincount(rows, weights, minlength=self.size).astype(float)

    def _place(self, word: str) -> int:
        """-1 for a word that none of these facts has."""
        place = self.vocabulary.place(word)
        within = 0 <= place < self._starts.size - 1
        return place if within and self._starts[place] < self._starts[place + 1] else -1

    def _span(self, place: int) -> slice:
        return slice(self._starts[place], self._starts[place + 1])


def amount(text: str) -> float:
    """How much a text says, in words: of a script without spaces two characters are one word."""
    return sum(_amount(word) for word in set(terms(text)))


def _amount(word: str) -> float:
    if not _DENSE_SCRIPT.match(word):
        return 1.0
    return 0.5 if len(word) == 1 else 0.0
