"""The subjects that a text names: classes of words in both languages, such as groups of drugs and of foods. Its topics,
such as cooking and travel, are wider and say less."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from roomlore.core import lexicon
from roomlore.core.patterns import lazy_pattern
from roomlore.core.text import HAN, head, last_roots

MEDICINE, FOOD = "medicine", "food"
FIELDS = frozenset((MEDICINE, FOOD))
"""The wide subjects, to which others belong."""

# A Latin word.
_WORD = lazy_pattern(r"[a-z0-9]+")
# Chinese characters in a row.
_HAN_RUN = lazy_pattern(f"[{HAN}]+")
_SHORTEST, _LONGEST_WORD, _LONGEST_PART = 3, 20, 4


def subjects(text: str) -> frozenset[str]:
    """Return the subjects that a text names, among them the fields `MEDICINE` and `FOOD`."""
    folded = head(text)
    all_subjects: set[str] = set()
    for word in set(_WORD.findall(folded)):
        all_subjects |= _of_word(word[:_LONGEST_WORD])
    if not folded.isascii():
        parts = _table().parts
        for run in set(_HAN_RUN.findall(folded)):
            for size in range(1, _LONGEST_PART + 1):
                for at in range(len(run) - size + 1):
                    if run[at : at + size] in parts:
                        all_subjects |= parts[run[at : at + size]]
    return frozenset(all_subjects)


_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Table:
    """The subjects of each entry. `parts`: of Chinese words, at most four characters long."""

    words: Mapping[str, frozenset[str]]
    beginnings: Mapping[str, frozenset[str]]
    ends: Mapping[str, frozenset[str]]
    parts: Mapping[str, frozenset[str]]


@lru_cache(maxsize=1 << 14)
def _of_word(word: str) -> frozenset[str]:
    table = _table()
    all_subjects = table.words.get(word, _NONE)
    for size in range(_SHORTEST, len(word) + 1):
        all_subjects |= table.beginnings.get(word[:size], _NONE) | table.ends.get(word[-size:], _NONE)
    return all_subjects


@cache
def _table() -> _Table:
    words, beginnings, ends, parts = (defaultdict[str, set[str]](set) for _ in range(4))
    for named, listed in lexicon.values("subjects", "en").items():
        for word in listed.split():
            kind = beginnings if word.endswith("*") else ends if word.startswith("*") else words
            kind[word.strip("*")].update(named.split(" | "))
    for named, listed in lexicon.values("subjects", "zh").items():
        for word in listed.split():
            parts[word].update(named.split(" | "))
    return _Table(
        *({entry: frozenset(named) for entry, named in kind.items()} for kind in (words, beginnings, ends, parts))
    )


def topics(words: Iterable[str]) -> frozenset[int]:
    """Return the everyday topics to which the roots of a text belong, as places among `topic_names`."""
    table = _topics()
    return frozenset([place for word in words if word in table for place in table[word]])


@cache
def topic_names() -> Sequence[str]:
    """Return the names of the topics in alphabetical order."""
    return sorted({*lexicon.values("topics", "en"), *lexicon.values("topics", "zh")})


@cache
def _topics() -> Mapping[str, frozenset[int]]:
    table = defaultdict[str, set[int]](set)
    for language in ("en", "zh"):
        for name, listed in lexicon.values("topics", language).items():
            for root in last_roots(listed.split()):
                table[root].add(topic_names().index(name))
    return {root: frozenset(places) for root, places in table.items()}
