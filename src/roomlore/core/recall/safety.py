"""Facts that come first: pinned ones always, safety facts if the conversation touches their subject."""

from collections.abc import Sequence

import numpy as np

from roomlore.core.memory.memory import Memory
from roomlore.core.recall.words import Topic, WordIndex
from roomlore.core.safety import PINNED, is_declared, is_safety
from roomlore.core.search.hits import Floats, Ints
from roomlore.core.subjects import FIELDS, subjects
from roomlore.core.text import roots

_SHARE = 0.5
"""The share of the budget that safety facts of the same field get before all others."""
_RESERVED = 0.15
"""The share of the budget kept for safety facts that seem not to be touched: the rules may be wrong."""
_NEAR = 2.0
"""The number of standard deviations above the mean cosine from which vectors alone say that a subject is touched."""


def is_pinned(memory: Memory) -> bool:
    """Return True if a caller pinned the fact, by its category or a tag."""
    return memory.category == PINNED or PINNED in memory.tags


def searchable(memory: Memory) -> str:
    """Return the text by which a fact is found: its statement and the name of its category."""
    return f"{memory.statement} {memory.category}" if memory.category else memory.statement


class Safety:
    """The pinned facts and the safety facts of a set, by their places."""

    def __init__(self, memories: Sequence[Memory], words: WordIndex) -> None:
        self._words = words
        self.pinned = [place for place, memory in enumerate(memories) if is_pinned(memory)]
        self._declared = {place for place, memory in enumerate(memories) if is_declared(memory.category)}
        found = [p for p, m in enumerate(memories) if p in self._declared or is_safety(m.statement)]
        self._subjects = {place: subjects(memories[place].statement) for place in found}
        self._telling = {place: words.own(_content(memories[place].statement)) for place in found}

    def first(self, topic: Topic, score: Floats, tokens: Ints, budget: int, nearness: Floats | None) -> list[int]:
        """Return the places of the facts that come before all others, in their order.

        The pinned ones; then safety facts that share a subject or a word with the conversation; then, within half the
        budget, those of the same field, such as an allergy to a drug where any medicine is talked of.
        """
        named = subjects(topic.text)
        said = set(roots(topic.text))
        near, same_field = [], []
        for place, own in self._subjects.items():
            if own & named - FIELDS or self._telling[place] & said or _is_near(nearness, place):
                near.append(place)
            elif own & named:
                same_field.append(place)
        found = dict.fromkeys((*self.pinned, *_best_first(near, score)))
        left = _SHARE * budget - sum(int(tokens[place]) for place in found)
        for place in _best_first(same_field, score):
            left -= int(tokens[place])
            if left < 0:
                break
            found[place] = None
        return list(found)

    def reserved(self, first: Sequence[int], score: Floats, tokens: Ints, budget: int) -> list[int]:
        """Return the places of the other safety facts that have room kept for them, declared ones before recognised
        ones."""
        left, found = _RESERVED * budget, []
        others = [place for place in self._subjects if place not in set(first)]
        for place in sorted(others, key=lambda place: (place not in self._declared, -score[place], place)):
            if tokens[place] <= left:
                left -= int(tokens[place])
                found.append(place)
        return found


def _content(statement: str) -> set[str]:
    """Return the terms that name a subject; a single Chinese character names none."""
    return {term for term in roots(statement) if len(term) > 1 and term not in _GENERAL}


_GENERAL = frozenset(
    roots(
        "allergy allergic intolerant intolerance never must not may always strictly no give given take takes need "
        "过敏 過敏 不能 绝不 绝不能 严禁 禁止 不要 不得 必须 一定 不可 千万 不吃 只能 正在 每天 一次 会 医生 不让"
    )
)


def _is_near(nearness: Floats | None, place: int) -> bool:
    return nearness is not None and bool(nearness[place] >= _NEAR)


def _best_first(places: Sequence[int], score: Floats) -> list[int]:
    return sorted(places, key=lambda place: (-float(score[place]), place))


def in_order(first: Sequence[int], order: Ints) -> Ints:
    """Return the order with these places before all others."""
    if not first:
        return order
    return np.concatenate([np.array(first, np.int64), order[~np.isin(order, first)]])
