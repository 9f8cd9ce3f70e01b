"""How alike two statements are, by their words alone.

What is alike takes the place of what was remembered, so nothing may count as alike that says something of somebody
else: 'Anna likes tea' is not 'Ben likes tea', and 'Anna pays Ben' is not 'Ben pays Anna'. Statements are alike only
where one says, in the same order, all that the other says.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from roomlore.core.terms import terms

_OTHERWISE = 0.8
"""The most for statements of which each says something that the other does not."""


@dataclass(frozen=True, slots=True)
class _Words:
    """Of one statement: in their order, and each once."""

    in_order: Sequence[str]
    different: frozenset[str]


def likeness(one: str, other: str) -> float:
    """In [0, 1]; 1 where they differ in nothing but the form of words and in words that mean nothing alone."""
    short, long = sorted((_words(one), _words(other)), key=lambda words: len(words.in_order))
    if not short.in_order:
        return 0.0
    shared = len(short.different & long.different)
    if shared == len(short.different) and _is_within(short.in_order, iter(long.in_order)):
        return 2 * len(short.in_order) / (len(short.in_order) + len(long.in_order))
    return min(2 * shared / (len(short.different) + len(long.different)), _OTHERWISE)


@lru_cache(maxsize=1 << 12)
def _words(statement: str) -> _Words:
    """Stems of words, and single Chinese characters: their pairs would differ at every insertion."""
    found = tuple(term for term in terms(statement) if not _is_pair(term))
    return _Words(found, frozenset(found))


def _is_pair(term: str) -> bool:
    return len(term) == 2 and all(ord(character) > 0x2E7F for character in term)


def _is_within(short: Sequence[str], long: Iterator[str]) -> bool:
    return all(word in long for word in short)
