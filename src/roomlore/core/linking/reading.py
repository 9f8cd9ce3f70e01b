"""One message as linking reads it: its words, its cues, and its traits."""

import math
import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import Stemmer

from roomlore.core import lexicon
from roomlore.core.models import MessageFeatures, Role, StoredMessage
from roomlore.core.patterns import lazy_pattern
from roomlore.core.text import HAN, HANGUL, KANA, SYLLABIC, fold, words

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
_UNSPACED = lazy_pattern(rf"[{HAN}{KANA}\u0e01-\u0e30\u0e81-\u0eb0\u1000-\u102a\u1780-\u17b3]")
"""A character of a script that is written without blanks."""
# A word of another script that divides words by blanks.
_OTHER_WORD = lazy_pattern(
    rf"(?:[^\W\d_{HAN}{KANA}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]|[\u0300-\u036f\u0900-\u0dff])+"
)
# An address.
_URL = lazy_pattern(r"https?://|www\.")
# A letter that is neither Latin nor East Asian.
_OTHER_LETTERS = lazy_pattern(rf"[^\W\d_\u0000-\u024f\u1e00-\u1eff{HAN}{KANA}{HANGUL}]")
# A mention.
_CALLED = lazy_pattern(r"@[^\s:,，：]+")
# A run of Latin text.
_LATIN_RUN = lazy_pattern(r"[!-~\u00c0-\u024f]+")
# A path, a name of a program or a figure.
_CODE = lazy_pattern(r"[a-z0-9_]/[a-z0-9_]|[_=<>{}|`]|[a-z]\.[a-z]|[0-9]")
_TRAILS = ("..", "…", ",", "，", ":", "：")
# A smiley or an emoji.
_SMILE = lazy_pattern(r"[:;=]-?[)(dpo/|]|[\U0001F300-\U0001FAFF]|:[a-z_]+:")
# A mention that begins a message.
_LEADING_CALL = lazy_pattern(r"\s*@([^\s@:,：，]{1,64})[\s:,：，]*")
# The first word, which may be a name.
_LEADING_NAME = lazy_pattern(r"^@?[^\s:,：，]{1,40}\s?[:,：，]*\s*")

TRAITS = (
    "words", "characters", "asked", "url", "code", "trails", "smiles", *_CUES,
    "addresses", "mentions", "mentions_all", "assistant",
)  # fmt: skip


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
    text = message.text[:READ_CHARACTERS].lower()
    known = tuple(dict.fromkeys(map(stemmed, words(text))))[:MAX_WORDS]
    named = tuple(dict.fromkeys((*features.addressed, *features.mentions)))[:MAX_NAMED]
    addressed = min(len(features.addressed), MAX_NAMED)
    body = _LEADING_NAME.sub("", text, count=1) if features.addressed else text
    tokens, chinese = _TOKEN.findall(body), not body.isascii() and _CHINESE.search(body) is not None
    relations = (addressed > 0, len(named) > addressed, features.mentions_all, message.role is Role.ASSISTANT)
    traits = (*_measures(body, _length(body, tokens)), *_cues(body, tokens, chinese), *relations)
    return MessageReading(np.array(traits, np.float32), known, named, addressed, _lean(body))


def _length(text: str, tokens: Sequence[str]) -> float:
    """Return the number of words. A character of a script without blanks counts 0.6."""
    return len(tokens) if text.isascii() else len(_OTHER_WORD.findall(text)) + 0.6 * len(_UNSPACED.findall(text))


def without_calls(text: str, names: Collection[str]) -> str:
    """Return the text without "@name" of these at its beginning and end."""
    while (match := _LEADING_CALL.match(text)) and fold(match[1]) in names:
        text = text[match.end() :]
    while True:
        before, call, name = text.rstrip().rpartition("@")
        if not call or fold(name) not in names:
            return text
        text = before.rstrip()


@lru_cache(maxsize=1 << 15)
def stemmed(word: str) -> str:
    """Return the stem of an English word, so that "optimize" meets "optimization"; any other word unchanged."""
    if not (word.isascii() and word.isalpha()):
        return word
    stem: str = Stemmer.Stemmer("english").stemWord(word)  # made anew, since one stemmer must not serve two threads
    return stem


def _lean(text: str) -> float:
    """Return how far a text leans to Latin letters or to others; links, names called, code and Latin words
    of two letters, as "ok" or "XL", say nothing of that."""
    text = _CALLED.sub(" ", text) if "@" in text else text
    latin = sum(map(_latin_words, _LATIN_RUN.findall(text)))
    other = 0.0 if text.isascii() else 0.6 * len(SYLLABIC.findall(text)) + 0.2 * len(_OTHER_LETTERS.findall(text))
    return (other - latin) / (other + latin + 1.0)


@lru_cache(maxsize=1 << 15)
def _latin_words(run: str) -> int:
    """Return how many words of three letters and more a run without a blank has, 0 for a link or code."""
    if _CODE.search(run) or _URL.match(run):
        return 0
    return sum(len(word) > 2 for word in _TOKEN.findall(run))


def _measures(text: str, length: float) -> tuple[float, ...]:
    return (
        math.log1p(length),
        math.log1p(len(text)) / 2,
        "?" in text or "？" in text,
        ("http" in text or "www." in text) and _URL.search(text) is not None,
        _CODE.search(text) is not None,
        text.rstrip().endswith(_TRAILS),
        _SMILE.search(text) is not None,
    )


def _cues(text: str, tokens: list[str], chinese: bool) -> list[bool]:
    seen = [False] * len(_CUES)
    for place, token in enumerate(tokens):
        for cue, within in _CUES_OF.get(token, ()):
            seen[cue] |= place < within
    if chinese:
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
