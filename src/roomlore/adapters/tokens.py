"""Exact token counts, offline: the vocabularies are compiled into the `toktok` extension."""

from collections.abc import Sequence
from typing import Literal, get_args

import toktok

from roomlore.core.errors import InvalidInput

Encoding = Literal["cl100k_base", "o200k_base"]
ENCODINGS: tuple[str, ...] = get_args(Encoding)
_FEW_TEXTS, _FEW_CHARACTERS = 16, 4_000
"""So much is counted text by text: a batch starts a thread, which takes as long as thirty messages."""
_WHOLE = 1 << 31
"""More tokens than any text has."""


class EncodingTokens:
    """Counts tokens as tiktoken does. A lone surrogate counts as the replacement character that is stored for it."""

    def __init__(self, encoding: str = "cl100k_base") -> None:
        if encoding not in ENCODINGS:
            raise InvalidInput(
                "choice_not_allowed", name="token_encoding", value=repr(encoding), known=", ".join(ENCODINGS)
            )
        self._encoding = encoding

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the tokens of each text. Special tokens in a text count as plain text."""
        try:
            return self._count(texts)
        except UnicodeEncodeError:
            return self._count([_encodable(text) for text in texts])

    def _count(self, texts: Sequence[str]) -> list[int]:
        if len(texts) <= _FEW_TEXTS and sum(map(len, texts)) <= _FEW_CHARACTERS:
            return [toktok.truncate(text, _WHOLE, self._encoding)[1] for text in texts]
        counts: list[int] = toktok.batch_count(texts, self._encoding, threads=1)
        return counts


def _encodable(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
