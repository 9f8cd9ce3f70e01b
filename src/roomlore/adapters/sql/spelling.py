"""Words as both engines index them.

A word is spelled in lower-case letters, digits and characters beyond ASCII; any other character is an underscore and
its number. Before it stands the key of its room, so that what one room says is no part of another's index.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlalchemy import Dialect

from roomlore.core.indexed import indexed_words
from roomlore.core.models import Message

MAX_LENGTH = 1023
"""A longer message counts as one of this many words: the length is kept in ten bits beside each of its words."""

MAX_COUNT = 255
"""A word that stands more often in one message counts as standing there this often: PostgreSQL's limit."""

_MAX_WORD = 128
_MAX_BYTES = 900_000
_BYTES_BESIDE = 24
_SURELY_FITS = 30_000
"""PostgreSQL keeps less than 2**20 bytes of one message: its distinct words, each with so many bytes beside it at most
and two for each time it stands there. So many characters are never too much."""

_STRANGE = re.compile(r"[^a-z0-9\x80-\ud7ff\ue000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Spelled:
    """A message's words in the form its engine keeps them in. `length`: how many they are, at most `MAX_LENGTH`."""

    arrival: int
    length: int
    words: str


@lru_cache(maxsize=1 << 16)
def spell(word: str) -> str:
    """The word in safe characters, different for different words; empty for what is never indexed: nothing, or more
    than 128 characters."""
    return _STRANGE.sub(lambda found: f"_{ord(found[0]):02x}_", word) if len(word) <= _MAX_WORD else ""


def before(room_key: int) -> str:
    """What stands before every word of the room."""
    return f"{room_key:x}x"


def spell_message(message: Message, room_key: int, dialect: Dialect, arrival: int) -> Spelled:
    words = _fitting([spelled for word in indexed_words(message) if (spelled := spell(word))])
    text = " ".join(words) if dialect.name == "sqlite" else _vector_text(words, before(room_key))
    return Spelled(arrival, min(len(words), MAX_LENGTH), text)


def _fitting(words: Sequence[str]) -> Sequence[str]:
    """The words without those, at the end, for which PostgreSQL has no room."""
    if sum(map(len, words)) <= _SURELY_FITS:
        return words
    left, kept = _MAX_BYTES, set()
    for word, count in Counter(words).items():
        left -= len(word.encode()) + _BYTES_BESIDE + 2 * min(count, MAX_COUNT)
        if left >= 0:
            kept.add(word)
    return [word for word in words if word in kept]


def _vector_text(words: Iterable[str], prefix: str) -> str:
    """The words as PostgreSQL reads a tsvector: each with as many places as it stands times."""
    return " ".join([f"'{prefix}{word}':{_PLACES[min(count, MAX_COUNT)]}" for word, count in Counter(words).items()])


_PLACES = ["", *(",".join(map(str, range(1, count + 1))) for count in range(1, MAX_COUNT + 1))]
