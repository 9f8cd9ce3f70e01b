"""The baselines of a digest: the first sentences, the last, and LexRank of the whole day."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from roomlore.core.models import Entry, Role
from roomlore.core.text import sentences, words

Count = Callable[[Sequence[str]], list[int]]
_MAX = 3_000
_DAMPING, _MIN = 0.85, 0.1
_ROUNDS = 60


def _sentences(entries: Iterable[Entry]) -> list[tuple[Entry, str]]:
    spoken = (entry for entry in entries if entry.message.role is not Role.SYSTEM)
    return [(entry, sentence) for entry in spoken for sentence in sentences(entry.message.text)]


def _taken(ranked: Sequence[tuple[Entry, str]], budget: int, count: Count) -> list[Entry]:
    """Return the messages of the sentences, in this order, that fit with the ids beside them."""
    left, taken = budget, []
    sizes = count([f"- {sentence} [{entry.message.id}]\n" for entry, sentence in ranked])
    for (entry, _), size in zip(ranked, sizes, strict=True):
        if size <= left:
            left -= size
            taken.append(entry)
    return taken


def first(entries: Sequence[Entry], budget: int, count: Count) -> list[Entry]:
    return _taken(_sentences(entries), budget, count)


def last(entries: Sequence[Entry], budget: int, count: Count) -> list[Entry]:
    return _taken(_sentences(entries)[::-1], budget, count)


def lexrank(entries: Sequence[Entry], budget: int, count: Count) -> list[Entry]:
    """Return the messages of the sentences that are most like the others, by LexRank."""
    said = _sentences(entries)[:_MAX]
    counts = [Counter(words(sentence)) for _, sentence in said]
    having = Counter(word for counted in counts for word in counted)
    names = {word: place for place, word in enumerate(having)}
    table = np.zeros((len(said), len(names)), np.float32)
    for row, counted in enumerate(counts):
        for word, times in counted.items():
            table[row, names[word]] = times * math.log(len(said) / having[word])
    table /= np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-9)
    alike = table @ table.T
    alike[alike < _MIN] = 0.0
    alike /= np.maximum(alike.sum(axis=1, keepdims=True), 1e-9)
    rank = np.full(len(said), 1 / max(len(said), 1), np.float32)
    for _ in range(_ROUNDS):
        rank = ((1 - _DAMPING) / len(said) + _DAMPING * (alike.T @ rank)).astype(np.float32)
    return _taken([said[place] for place in np.argsort(-rank, kind="stable")], budget, count)


BASELINES: dict[str, Callable[[Sequence[Entry], int, Count], list[Entry]]] = {
    "first": first,
    "last": last,
    "LexRank": lexrank,
}
