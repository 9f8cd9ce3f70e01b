"""One message as linking reads it: its words, its cues, and its traits."""

import math
import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roomlore.core import lexicon
from roomlore.core.models import MessageFeatures, Role, StoredMessage
from roomlore.core.patterns import lazy_pattern
from roomlore.core.text import HAN, HANGUL, KANA, Memo, fold, stemmed_words

Vector = npt.NDArray[np.float32]

READ_CHARACTERS = 1500
MAX_WORDS = 128
MAX_NAMED = 4


class _Cue(NamedTuple):
    """English words, where they count (in the first `within` words), and a Chinese pattern."""

    english: frozenset[str]
    chinese: re.Pattern[str]
    within: int = 1000


def _cue(name: str, within: int = 1000) -> _Cue:
    return _Cue(lexicon.words(name, "en"), lazy_pattern(lexicon.alternatives(name, "zh")), within)


_CUES = {
    "asks": _cue("asks"),
    "begins_asking": _cue("begins_asking", 1),
    "greets": _cue("greets", 4),
    "thanks": _cue("thanks"),
    "agrees": _cue("agrees", 2),
    "continues": _cue("continues", 1),
    "points": _cue("points", 3),
    "you": _cue("you"),
    "i": _cue("i"),
    "calls": _cue("calls"),
    "laughs": _cue("laughs"),
}

# An English word.
_TOKEN = lazy_pattern(r"[a-z]+(?:'[a-z]+)?")
# A Chinese character.
_CHINESE = lazy_pattern(r"[\u3400-\u9fff]")
# Characters of a script that is written without blanks.
_UNSPACED = lazy_pattern(rf"[{HAN}{KANA}\u0e01-\u0e30\u0e81-\u0eb0\u1000-\u102a\u1780-\u17b3]+")
# Characters that are syllables or words.
_SYLLABIC = lazy_pattern(rf"[{HAN}{KANA}{HANGUL}]+")
# A word of another script that divides words by blanks.
_OTHER_WORD = lazy_pattern(
    rf"(?:[^\W\d_{HAN}{KANA}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]|[\u0300-\u036f\u0900-\u0dff])+"
)
# An address.
_URL = lazy_pattern(r"https?://|www\.")
# Letters that are neither Latin nor East Asian.
_OTHER_LETTERS = lazy_pattern(rf"[^\W\d_\u0000-\u024f\u1e00-\u1eff{HAN}{KANA}{HANGUL}]+")
# A mention.
_CALLED = lazy_pattern(r"@[^\s:,，：]+")
# A run of Latin text.
_LATIN_RUN = lazy_pattern(r"[!-~\u00c0-\u024f]+")
# A path, a name of a program or a figure. What begins with a set is looked for faster than a choice.
_CODE = lazy_pattern(r"[0-9_=<>{}|`/.](?:(?<![/.])|(?<=[a-z0-9_]/)[a-z0-9_]|(?<=[a-z]\.)[a-z])")
_TRAILS = ("..", "…", ",", "，", ":", "：")
# A smiley or an emoji.
_SMILE = lazy_pattern(r"[:;=\U0001F300-\U0001FAFF](?:(?<![:;=])|-?[)(dpo/|]|(?<=:)[a-z_]+:)")
# A mention that begins a message.
_LEADING_CALL = lazy_pattern(r"\s*@([^\s@:,：，]{1,64})[\s:,：，]*")
# The first word, which may be a name.
_LEADING_NAME = lazy_pattern(r"^@?[^\s:,：，]{1,40}\s?[:,：，]*\s*")


class _Measures(NamedTuple):
    words: float
    characters: float
    asked: bool
    url: bool
    code: bool
    trails: bool
    smiles: bool


TRAITS = (*_Measures._fields, *_CUES, "addresses", "mentions", "mentions_all", "assistant")


class MessageReading(NamedTuple):
    """`traits`: float32, one for each of `TRAITS`. `words`: distinct. `named`: ids, the addressed ones first;
    `addressed` says how many those are. `lean`: of the script, from -1 (Latin letters) to 1 (others), 0 for no letters
    or as many of either; the more words, the nearer to the ends."""

    traits: Vector
    words: tuple[str, ...]
    named: tuple[str, ...]
    addressed: int
    lean: float


def read(message: StoredMessage, features: MessageFeatures) -> MessageReading:
    """Return the traits of one message by itself."""
    named = tuple(dict.fromkeys((*features.addressed, *features.mentions)))[:MAX_NAMED]
    addressed = min(len(features.addressed), MAX_NAMED)
    relations = (addressed > 0, len(named) > addressed, features.mentions_all, message.role is Role.ASSISTANT)
    traits, known, lean = _read_text(message.text[:READ_CHARACTERS], addressed > 0)
    return MessageReading(np.array((*traits, *relations), np.float32), known, named, addressed, lean)


def read_ahead(message: StoredMessage, features: MessageFeatures) -> None:
    """Read the text of one of the next 128 messages that `read` is asked for, while its words are at hand."""
    _read_text(message.text[:READ_CHARACTERS], bool(features.addressed))


@lru_cache(maxsize=256)
def _read_text(text: str, begins_with_name: bool) -> tuple[tuple[float, ...], tuple[str, ...], float]:
    """Return what does not depend on the people in the room: the first of `TRAITS`, the words, and the lean."""
    text = text.lower()
    known = tuple(islice(stemmed_words(text), MAX_WORDS))
    name = _LEADING_NAME.match(text) if begins_with_name else None
    body = text[name.end() :] if name else text
    tokens = _TOKEN.findall(body)
    measures = _measures(body, _length(body, tokens))
    lean = _lean(body, tokens, code=measures.url or measures.code)
    return (*measures, *_cues(body, tokens)), known, lean


def _length(text: str, tokens: Sequence[str]) -> float:
    """Return the number of words. A character of a script without blanks counts 0.6."""
    return len(tokens) if text.isascii() else len(_OTHER_WORD.findall(text)) + 0.6 * _count(_UNSPACED, text)


def _count(characters: re.Pattern[str], text: str) -> int:
    return sum(map(len, characters.findall(text)))


def without_calls(text: str, names: Collection[str]) -> str:
    """Return the text without "@name" of these at its beginning and end."""
    while (match := _LEADING_CALL.match(text)) and fold(match[1]) in names:
        text = text[match.end() :]
    while True:
        before, call, name = text.rstrip().rpartition("@")
        if not call or fold(name) not in names:
            return text
        text = before.rstrip()


def _lean(text: str, tokens: Sequence[str], *, code: bool) -> float:
    """Return how far a text leans to Latin letters or to others; links, names called, code and Latin words
    of two letters, as "ok" or "XL", say nothing of that. `code`: there may be links or code."""
    if "@" in text or code:
        text = _CALLED.sub(" ", text)
        latin = sum(map(_latin_words.__getitem__, _LATIN_RUN.findall(text)))
    else:
        latin = _long_words(tokens)
    other = 0.0 if text.isascii() else 0.6 * _count(_SYLLABIC, text) + 0.2 * _count(_OTHER_LETTERS, text)
    return (other - latin) / (other + latin + 1.0)


def _long_words(tokens: Sequence[str]) -> int:
    return len([token for token in tokens if len(token) > 2])


_latin_words = Memo[int](lambda run: 0 if _CODE.search(run) or _URL.match(run) else _long_words(_TOKEN.findall(run)))
"""The number of words of three letters and more in a run without a blank, 0 for a link or code."""


def _measures(text: str, length: float) -> _Measures:
    return _Measures(
        math.log1p(length),
        math.log1p(len(text)) / 2,
        "?" in text or "？" in text,
        ("http" in text or "www." in text) and _URL.search(text) is not None,
        _CODE.search(text) is not None,
        text.rstrip().endswith(_TRAILS),
        _SMILE.search(text) is not None,
    )


def _cues(text: str, tokens: Sequence[str]) -> list[bool]:
    seen = [False] * len(_CUES)
    for place, token in [(place, token) for place, token in enumerate(tokens) if token in _CUES_OF]:
        for cue, within in _CUES_OF[token]:
            seen[cue] |= place < within
    if not text.isascii() and _CHINESE.search(text):
        for cue, known in enumerate(_CUES.values()):
            seen[cue] = seen[cue] or known.chinese.search(text) is not None
    return seen


def _by_word() -> dict[str, list[tuple[int, int]]]:
    """English word to (number of the cue, how far into the text the word counts)."""
    cues_by_word: dict[str, list[tuple[int, int]]] = {}
    for number, cue in enumerate(_CUES.values()):
        for word in cue.english:
            cues_by_word.setdefault(word, []).append((number, cue.within))
    return cues_by_word


_CUES_OF = _by_word()
