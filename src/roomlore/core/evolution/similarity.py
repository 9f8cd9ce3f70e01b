"""Recognise two statements that say the same in other words or in the other language."""

from functools import lru_cache

from roomlore.core.evolution.wording import Names, Wording, likeness, new_names
from roomlore.core.subjects import FIELDS, subjects
from roomlore.core.text import language

SAME = 0.9
"""The similarity of two statements that say the same in other words."""
_SHARE, _FEWEST = 0.75, 3
"""The least that statements without numbers and days share: a part of the shorter one's words, and a number of
words."""
_SHARE_COUNTED, _FEWEST_COUNTED = 0.5, 2
"""The same if their numbers and days are equal."""


def similarity(one: str, other: str) -> float:
    """Return how much two statements say the same, in [0, 1]: their likeness, or more if only the wording differs."""
    like = likeness(one, other)
    return SAME if like < SAME and says_the_same(one, other) else like


def says_the_same(one: str, other: str) -> bool:
    """Return True if two statements have the same numbers, days and names, the same polarity, and enough words in
    common; in two languages the same numbers or days, and a subject that both name. Without embeddings nothing more is
    known of words in two languages."""
    first, second = _read(one), _read(other)
    if _counted(first) != _counted(second) or bool(first.negations) != bool(second.negations):
        return False
    if language(one) != language(other):
        return bool(_counted(first)) and _names(first) <= _names(second) | set(other.split()) and _meets(first, second)
    share, fewest = (_SHARE_COUNTED, _FEWEST_COUNTED) if _counted(first) else (_SHARE, _FEWEST)
    return _overlaps(first, second, share=share, fewest=fewest)


def is_one_subject(one: str, other: str) -> bool:
    """Return True if two statements of one language speak of one subject: they have numbers or days, the same names and
    polarity, and enough words in common. What they say of it may differ."""
    first, second = _read(one), _read(other)
    if not _counted(first) or not _counted(second) or language(one) != language(other):
        return False
    same = bool(first.negations) == bool(second.negations)
    return same and _overlaps(first, second, share=_SHARE_COUNTED, fewest=_FEWEST_COUNTED)


def _overlaps(one: Wording, other: Wording, *, share: float, fewest: int) -> bool:
    common = len(one.distinctive & other.distinctive)
    fewest += language(one.text) == "zh"  # the pairs of one word overlap
    enough = common >= fewest and common >= share * min(len(one.distinctive), len(other.distinctive))
    return enough and _names(one) == _names(other)


@lru_cache(maxsize=1 << 12)
def _read(statement: str) -> Wording:
    return Wording(statement, Names((), (statement,)))


def _counted(wording: Wording) -> frozenset[object]:
    return frozenset(wording.details - wording.named)


def _names(wording: Wording) -> set[str]:
    return {one.value for one in wording.named}.union(new_names(wording.text))


def _meets(one: Wording, other: Wording) -> bool:
    """Return True if both name the same subject, or share a word that is written alike."""
    shared = {word for word in one.words & other.words if word.isascii() and len(word) > 2}
    return bool(shared) or bool((subjects(one.text) & subjects(other.text)) - FIELDS)
