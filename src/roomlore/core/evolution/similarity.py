"""Recognise two statements that say the same in other words or in the other language."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from roomlore.core.evolution.wording import Names, Wording, likeness, new_names, says_change, without_details
from roomlore.core.subjects import FIELDS, subjects
from roomlore.core.text import fold, language

_WORDS = re.compile(r"[^\W_]{2,}")
REPEATED = 0.8
"""The least likeness of two messages that say one thing again."""
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


@dataclass(frozen=True, slots=True)
class Utterance:
    """A message on which a statement rests. `speaker`: their name."""

    speaker: str
    text: str


def rests_on_the_same(statement: str, said: Sequence[Utterance], other: str, heard: Sequence[Utterance]) -> bool:
    """Return True if a statement says of one matter what another says or said, in any wording or language: they have
    the same polarity, and messages of `said`, which supports the first, repeat messages of `heard`, which supports the
    other.

    Their numbers and days are the same, or the message says that they changed. A statement that names its speaker rests
    on what that person says.
    """
    first, second = _read(statement), _read(other)
    if not _counted(first) or not _counted(second) or bool(first.negations) != bool(second.negations):
        return False
    if language(statement) == language(other) and _names(first) != _names(second):
        return False
    both, same = f"{statement}\n{other}", _counted(first) == _counted(second)
    return any(
        (one.speaker == two.speaker or not (_is_named(one.speaker, both) or _is_named(two.speaker, both)))
        and (_repeats(one.text, two.text) if same else _says_anew(one.text, two.text, first, second))
        for one in said
        for two in heard
    )


def _is_named(speaker: str, text: str) -> bool:
    """Return True if a text has the name, or a word of it."""
    name, folded = fold(speaker), fold(text)
    return (language(name) == "zh" and name in folded) or not {*_WORDS.findall(name)}.isdisjoint(_WORDS.findall(folded))


def _repeats(one: str, other: str) -> bool:
    return _counted(_read(one)) == _counted(_read(other)) and likeness(one, other) >= REPEATED


def _says_anew(one: str, other: str, statement: Wording, earlier: Wording) -> bool:
    """Return True if two messages differ only in their numbers and days, those of the statements, and the first says
    that something changed."""
    values = _counted(_read(one)), _counted(_read(other))
    if not says_change(one) or not (_counted(statement) <= values[0] and _counted(earlier) <= values[1]):
        return False
    bare = [without_details(text, Names((), (text,))) for text in (one, other)]
    return likeness(*bare) >= REPEATED


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
