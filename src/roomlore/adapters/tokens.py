"""Token counts, offline: the vocabularies are compiled into the `toktok` extension."""

import math
from collections.abc import Iterable, Sequence
from typing import Literal, get_args

import toktok

from roomlore.core.errors import InvalidInput
from roomlore.core.patterns import lazy_pattern
from roomlore.ports.language import TokenCounter

Encoding = Literal["cl100k_base", "o200k_base", "o200k_harmony", "qwen3.5"]
ENCODINGS: tuple[str, ...] = get_args(Encoding)
_FEW_TEXTS, _FEW_CHARACTERS = 16, 4_000
"""So much is counted text by text: a batch starts a thread, which takes as long as thirty messages."""
_WHOLE = 1 << 31
"""More tokens than any text has."""
_ESTIMATE = "estimate"
# What counts the tokens of a model, by its name there without the organisation: the first that matches.
_MODELS = lazy_pattern(
    r"(?P<o200k_harmony>gpt-oss)"
    r"|(?P<o200k_base>(?:chat)?gpt-(?:4o|4\.[1-9]|[5-9])|o[1-9](?![a-z0-9]))"
    r"|(?P<cl100k_base>gpt-(?:4|3\.5))"
    r"|(?P<qwen>qwen-?(?:3\.[5-9]|[4-9]))"
    rf"|(?P<{_ESTIMATE}>qwen|qwq|(?:meta-)?llama-?[3-9]|deepseek|(?:mi|mini|dev|magi|code)stral|phi-?4)"
)
# A run of ASCII digits.
_DIGITS = lazy_pattern(r"[0-9]+")
_MARGIN = 1.06
"""The estimate is above what each of Llama 3, DeepSeek V3, Mistral's Tekken and Phi 4 counts in 6,000 chat messages of
several languages and in records full of digits."""


class EncodingTokens:
    """Counts tokens as the encoding's own tokenizer does. A lone surrogate counts as the replacement character that is
    stored for it."""

    def __init__(self, encoding: str = "cl100k_base") -> None:
        if encoding not in ENCODINGS:
            raise InvalidInput(
                "choice_not_allowed", name="token_encoding", value=repr(encoding), known=", ".join(ENCODINGS)
            )
        self._encoding = encoding

    def for_models(self, names: Iterable[str]) -> TokenCounter:
        """Return what counts at least the tokens that each of these models takes, of those that are known by name."""
        kinds = {match.lastgroup for name in names if (match := _MODELS.match(name.rpartition("/")[2].lower()))}
        if not kinds:
            return self
        encodings = [encoding for encoding in ENCODINGS if encoding.removesuffix("3.5") in kinds]
        if len(kinds) == len(encodings) == 1 and "qwen3.5" not in encodings:
            return EncodingTokens(encodings[0])
        return _MostTokens([EncodingTokens(encoding) for encoding in encodings], estimated=_ESTIMATE in kinds)

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


class _MostTokens:
    """Counts the most of several encodings. `estimated`: also what a model takes whose encoding is not there: many
    count each digit. A token more for each text stands for their chat template."""

    def __init__(self, counters: Sequence[EncodingTokens], *, estimated: bool) -> None:
        self._counters = counters
        self._estimated = estimated

    def for_models(self, names: Iterable[str]) -> TokenCounter:
        return self

    def count(self, texts: Sequence[str]) -> list[int]:
        counts = [counter.count(texts) for counter in self._counters]
        if self._estimated:
            plain = EncodingTokens("cl100k_base").count(texts)
            counts.append([math.ceil(_MARGIN * (n + _single(text))) for n, text in zip(plain, texts, strict=True)])
        return [max(of_text) + 1 for of_text in zip(*counts, strict=True)]


def _single(text: str) -> int:
    """Return how many more tokens the digits of a text are if each is one, and not three."""
    return sum(len(run) - (len(run) + 2) // 3 for run in _DIGITS.findall(text))


def _encodable(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
