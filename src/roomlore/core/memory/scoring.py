"""How surely a memory is what was asked for: a score in [0, 1] that means the same for every embedding model.

Meaning: how many standard deviations the memory's cosine with the question lies above those of statements that have
nothing to do with it: a fixed background, and the other memories of the scope, in the memory's own language. Words: the
share of the question's worth that the memory has. A logistic function of both gives the score. Its constants were found
on questions with known answers, relevant memories as a whole counting half as much as unrelated ones; how well they do
on other questions is told in docs/explanation/memory-search.md.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from roomlore.core.memory.asking import Question
from roomlore.core.memory.background import CHINESE, ENGLISH
from roomlore.core.search import Floats, Ints, Vectors
from roomlore.core.terms import terms
from roomlore.core.text import HAN, HANGUL, KANA

BACKGROUND = CHINESE + ENGLISH
"""What `Background` is made of, in this order."""

_BASE, _MEANING, _WORDS = -3.97, 2.41, 3.74
_BASE_OF_WORDS, _WORDS_ALONE = -0.94, 9.42
_SINGLE = 0.35
"""What a single Chinese character counts beside a pair of them."""
_UNSEEN = 5
"""Memories that a scope is taken to have besides its own: of few it cannot be told which words are rare."""
_DENSE = re.compile(f"[{HAN}{KANA}{HANGUL}]")
_LATIN = re.compile("[A-Za-z]")
_LEAST_DEVIATION = 0.005
"""Of cosines: what lies closer together differs by chance, or not at all."""

Flags = NDArray[np.bool_]


def is_dense_script(text: str) -> bool:
    """Whether it is written mostly in Chinese, Japanese or Korean; a character of these counts as three letters."""
    return 3 * len(_DENSE.findall(text)) >= max(1, len(_LATIN.findall(text)))


@cache
def _in_background() -> Mapping[str, int]:
    found: dict[str, int] = defaultdict(int)
    for statement in BACKGROUND:
        for term in set(terms(statement)):
            found[term] += 1
    return dict(found)


class Words:
    """Which statements have which terms."""

    def __init__(self, statements: Sequence[str]) -> None:
        places: dict[str, list[int]] = defaultdict(list)
        for place, statement in enumerate(statements):
            for term in set(terms(statement)):
                places[term].append(place)
        self._size = len(statements)
        self._places = {term: np.array(found, np.int32) for term, found in places.items()}
        self._background = _in_background()

    def shares(self, wanted: Iterable[str]) -> Floats:
        """Of each statement the share of the wanted terms' worth that it has, in [0, 1]. A term is worth more the fewer
        statements have it, here and in the background; one that none has counts too."""
        found, total = np.zeros(self._size), 0.0
        for term in wanted:
            worth = self._worth(term)
            total += worth
            if term in self._places:
                found[self._places[term]] += worth
        shares: Floats = np.minimum(found / total, 1.0) if total > 0 else found
        return shares

    def _worth(self, term: str) -> float:
        here = _rarity(len(self._places.get(term, ())), self._size + _UNSEEN)
        worth = here * _rarity(self._background.get(term, 0), len(BACKGROUND))
        return worth * _SINGLE if len(term) == 1 and _DENSE.match(term) else worth


def _rarity(having: int, size: int) -> float:
    """1 for a term that none of so many has, near 0 for one that all have."""
    return float(np.log((size + 1) / (having + 0.5)) / np.log((size + 1) / 0.5))


@dataclass(frozen=True, slots=True)
class Cosines:
    """Cosines with one question, and whether each is of a statement in a dense script."""

    values: Floats
    dense_script: Flags

    def of_script(self, dense_script: bool) -> Floats:
        chosen: Floats = self.values[self.dense_script == dense_script]
        return chosen


class Background:
    """The vectors of `BACKGROUND`, (48, dimensions)."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = _of_length_one(vectors)
        self._dense_script = np.arange(len(BACKGROUND)) < len(CHINESE)

    def cosines(self, question: Vectors) -> Cosines:
        """With the question's vector, (dimensions,)."""
        found: Floats = (self._vectors @ _of_length_one(question[None])[0]).astype(float)
        return Cosines(found, self._dense_script)


def cosines_of(vectors: Vectors, question: Vectors) -> Floats:
    """Of each row (n, dimensions) with the question's vector (dimensions,)."""
    found: Floats = (_of_length_one(vectors) @ _of_length_one(question[None])[0]).astype(float)
    return found


def _of_length_one(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)


def nearness(memories: Cosines, background: Cosines, sample: Cosines | None = None) -> Floats:
    """How many standard deviations each memory lies above what is unrelated; NaN where its cosine is.

    `sample`: of the scope's other memories where `memories` are but the nearest of very many; otherwise each one's
    others are the rest of them.
    """
    found = np.full(memories.values.size, np.nan)
    for dense_script in (True, False):
        mine = memories.dense_script == dense_script
        if not mine.any():
            continue
        around = background.of_script(dense_script)
        if sample is None:
            found[mine] = _above_others(memories.values[mine], around)
        else:
            found[mine] = _above(memories.values[mine], np.concatenate([around, sample.of_script(dense_script)]))
    return found


def _above(values: Floats, around: Floats) -> Floats:
    above: Floats = (values - around.mean()) / max(float(around.std()), _LEAST_DEVIATION)
    return above


def _above_others(values: Floats, around: Floats) -> Floats:
    """Each value against `around` and all other values."""
    known = values[~np.isnan(values)]
    count = around.size + known.size - 1
    sums, squares = around.sum() + known.sum(), np.square(around).sum() + np.square(known).sum()
    means = (sums - values) / count
    variances = (squares - np.square(values)) / count - np.square(means)
    above: Floats = (values - means) / np.sqrt(np.maximum(variances, _LEAST_DEVIATION**2))
    return above


@dataclass(frozen=True, slots=True)
class Scores:
    """A value in [0, 1] for each memory. `words`: the share of the question's worth that it has. `meaning`: what the
    score were by meaning alone, 0 where it is not known."""

    total: Floats
    words: Floats
    meaning: Floats

    def best(self, threshold: float, limit: int) -> Ints:
        """Places of the highest scores at or above the threshold, the highest first; equal ones as they stand."""
        order = np.argsort(-self.total, kind="stable")
        return order[self.total[order] >= threshold][:limit]


def score(question: Question, words: Words, near: Floats | None = None) -> Scores:
    """`near`: from `nearness`; None, or NaN for a memory, where words alone are to tell."""
    shares = words.shares(question.terms)
    total = _logistic(_BASE_OF_WORDS + _WORDS_ALONE * shares)
    if near is None:
        return Scores(total, shares, np.zeros(shares.size))
    known = ~np.isnan(near)
    meaning = np.where(known, near, -np.inf)
    both = _logistic(_BASE + _MEANING * meaning + _WORDS * shares)
    return Scores(np.where(known, both, total), shares, _logistic(_BASE + _MEANING * meaning))


def _logistic(values: Floats) -> Floats:
    """Rounded, so that equal evidence is equal however it was added up."""
    with np.errstate(over="ignore"):
        return np.round(1 / (1 + np.exp(-values)), 9)
