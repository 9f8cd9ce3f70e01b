"""Ways to order facts for a question: roomlore's, and those it is compared with."""

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from roomlore.core.recall.ranking import FactSet, Topic, TopicPart, rank
from roomlore.core.recall.recollection import RecallOptions
from roomlore.core.search.hits import Floats, Ints

_WORD = re.compile(r"\w+")


class PlainTfidf:
    """TF-IDF cosine over what `\\w+` finds, with the usual smoothed weights."""

    def __init__(self, facts: FactSet) -> None:
        counts = [Counter(_words(memory.statement)) for memory in facts.memories]
        counts_of_words = Counter(word for line in counts for word in line)
        self._rarity = {word: math.log((1 + len(counts)) / (1 + often)) + 1 for word, often in counts_of_words.items()}
        self._lines = [self._vector(line) for line in counts]

    def similarities(self, text: str) -> Floats:
        vector = self._vector(Counter(_words(text)))
        return np.array([sum(weight * line.get(word, 0.0) for word, weight in vector.items()) for line in self._lines])

    def _vector(self, counts: Counter[str]) -> dict[str, float]:
        weights = {word: count * self._rarity[word] for word, count in counts.items() if word in self._rarity}
        length = math.sqrt(sum(weight * weight for weight in weights.values()))
        return {word: weight / length for word, weight in weights.items()}


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a set of facts. `cosines`: of their vectors with its own, None where there are none."""

    facts: FactSet
    plain: Floats
    text: str
    cosines: Floats | None = None

    @property
    def topic(self) -> Topic:
        return Topic((TopicPart(self.text, 1.0),), self.text)


Order = Callable[[Asked, int], Ints]
"""The facts of a question, the best first, for a budget of tokens."""


def ours(options: RecallOptions) -> Order:
    def order(question: Asked, budget: int) -> Ints:
        return rank(question.facts, question.topic, replace(options, max_tokens=budget), question.cosines).order

    return order


def _by(value: Callable[[Asked], Floats]) -> Order:
    return lambda question, budget: np.argsort(-value(question), kind="stable")


OURS: dict[str, Order] = {
    "tfidf": ours(RecallOptions()),
    "hybrid": ours(RecallOptions(similarity="hybrid")),
    "embedding": ours(RecallOptions(similarity="embedding")),
}
RIVALS: dict[str, Order] = {
    "literal formula": _by(lambda question: 0.6 * question.plain + 0.4 * question.facts.confidence),
    "plain TF-IDF": _by(lambda question: question.plain),
    "confidence": _by(lambda question: question.facts.confidence),
    "recency": _by(lambda question: -np.arange(len(question.facts), dtype=float)),
}
SHOWN_BESIDE: dict[str, Order] = {
    "literal, our words": ours(RecallOptions(scale="literal")),
    "tfidf, no confidence": ours(RecallOptions(confidence_weight=0.0)),
}
