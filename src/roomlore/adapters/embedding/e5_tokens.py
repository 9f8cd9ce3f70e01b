"""The tokenizer of multilingual-e5-small: SentencePiece's unigram model, that is, the likeliest way to cut a text into
pieces of the vocabulary."""

import re
import unicodedata
from functools import lru_cache

from roomlore.adapters.embedding.e5_weights import Vocabulary

_SPACE = "\u2581"
_SPACES = re.compile(" {2,}")
_WORD = re.compile(f"{_SPACE}[^{_SPACE}]*")
_UNKNOWN_PENALTY = 10.0
_KEPT_WORDS = 1 << 14
_KEPT_LENGTH = 32


class E5Tokens:
    """Cuts texts into the numbers of their pieces."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        # Markers such as </s> are no text: written in a message they are cut like anything else.
        markers = (vocabulary.start, vocabulary.end, vocabulary.unknown)
        pieces = {piece: number for number, piece in enumerate(vocabulary.pieces) if number not in markers}
        pieces.pop("<pad>", None)
        pieces.pop("<mask>", None)
        self._pieces = pieces
        self._scores = vocabulary.scores
        self._unknown = vocabulary.unknown
        self._unknown_score = min(vocabulary.scores) - _UNKNOWN_PENALTY
        self._longest = max(map(len, pieces))
        self._normal_forms = {0: "", **vocabulary.normal_forms}
        self._kept = lru_cache(maxsize=_KEPT_WORDS)(self._cut)

    def numbers(self, text: str) -> list[int]:
        """The pieces of a text, without the marks of its start and end."""
        found: list[int] = []
        for word in _WORD.findall(self._normal(text)):
            found += self._kept(word) if len(word) <= _KEPT_LENGTH else self._cut(word)
        return found

    def _normal(self, text: str) -> str:
        plain = unicodedata.normalize("NFC", text).translate(self._normal_forms)
        single = _SPACES.sub(" ", plain)
        return (single if single.startswith(" ") else " " + single).replace(" ", _SPACE)

    def _cut(self, word: str) -> tuple[int, ...]:
        """The likeliest pieces of a word, found from its start on (Viterbi)."""
        size = len(word)
        best = [0.0] + [float("-inf")] * size
        came: list[tuple[int, int]] = [(0, 0)] * (size + 1)
        for start in range(size):
            here = best[start]
            for end in range(start + 1, min(size, start + self._longest) + 1):
                number = self._pieces.get(word[start:end])
                if number is not None and here + self._scores[number] > best[end]:
                    best[end], came[end] = here + self._scores[number], (start, number)
            if here + self._unknown_score > best[start + 1]:
                best[start + 1], came[start + 1] = here + self._unknown_score, (start, self._unknown)
        return _walk_back(came)


def _walk_back(came: list[tuple[int, int]]) -> tuple[int, ...]:
    numbers = []
    end = len(came) - 1
    while end:
        end, number = came[end]
        numbers.append(number)
    return tuple(reversed(numbers))
