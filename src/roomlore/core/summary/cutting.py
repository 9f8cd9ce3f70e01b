"""Cutting a text to a number of tokens, at the end of a sentence or at least between two characters."""

from collections.abc import Callable, Sequence

import regex

from roomlore.core.text import GRAPHEME

_JOINED = r"(?!\p{GCB=Extend}|\p{GCB=ZWJ}|\p{GCB=SpacingMark})"
_SENTENCE = regex.compile(rf"(?:[。！？；…]+[”’」』）)\"']*+|(?<![.!?])[.!?]++[”’)\]\"']*+(?=\s|\Z)|\n+){_JOINED}")


def cut(text: str, max_tokens: int, count: Callable[[Sequence[str]], list[int]]) -> str:
    """The longest beginning of a text, of whole characters as a reader sees them, that fits; '' where none does."""
    if count([text])[0] <= max_tokens:
        return text
    ends = [0, *(found.end() for found in GRAPHEME.finditer(text))]
    return text[: ends[_most(text, ends, max_tokens, count)]].rstrip()


def cut_at_sentence(text: str, max_tokens: int, count: Callable[[Sequence[str]], list[int]]) -> str:
    """The longest beginning of whole sentences that fits; where not even one does, of whole characters."""
    if count([text])[0] <= max_tokens:
        return text
    ends = [0, *(found.end() for found in _SENTENCE.finditer(text))]
    return text[: ends[_most(text, ends, max_tokens, count)]].rstrip() or cut(text, max_tokens, count)


def _most(text: str, ends: Sequence[int], max_tokens: int, count: Callable[[Sequence[str]], list[int]]) -> int:
    """The place of an end up to which the text fits, and beyond which it (nearly always) does not. The first fits."""
    fits, beyond = 0, len(ends)
    while beyond - fits > 1:
        middle = (fits + beyond) // 2
        if count([text[: ends[middle]].rstrip()])[0] <= max_tokens:
            fits = middle
        else:
            beyond = middle
    return fits
