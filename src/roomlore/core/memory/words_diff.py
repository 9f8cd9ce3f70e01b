"""A word-level diff of two statements, Chinese and English; it never splits a character."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal

import regex

from roomlore.core.text import GRAPHEME, HAN, HANGUL, KANA, LETTER, segment

_MAX_COMPARED = 1_000_000
"""Pairs of words. Above this, everything between the first and the last difference is one change."""
_KINDS = (
    ("han", regex.compile(rf"[{HAN}]")),
    ("kana", regex.compile(rf"[{KANA}]\p{{M}}*")),
    ("hangul", regex.compile(rf"[{HANGUL}]+")),
    ("letter", regex.compile(rf"{LETTER}.*", regex.DOTALL)),
    ("space", regex.compile(r"\s+")),
)
_TELLING = frozenset({"han", "kana", "hangul", "letter"})

Became = Literal["same", "gone", "new"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of both texts (`same`), of the old one alone (`gone`), or of the new one alone (`new`)."""

    became: Became
    text: str


def words_diff(old: str, new: str) -> tuple[Piece, ...]:
    """Return the differences between two texts. No piece is empty, no two neighbours are of one kind, and removed text
    precedes its replacement. Never raises on any text."""
    before, after = _words(old), _words(new)
    head = _shared(before, after)
    tail = _shared(reversed(before[head:]), reversed(after[head:]))
    middle = _compared(before[head : len(before) - tail], after[head : len(after) - tail])
    pieces = [("same", before[:head], before[:head]), *middle]
    pieces.append(("same", before[len(before) - tail :], before[len(before) - tail :]))
    return tuple(_joined(_without_small_gaps(pieces)))


def old_text(pieces: Iterable[Piece]) -> str:
    """Return the first text."""
    return "".join(piece.text for piece in pieces if piece.became != "new")


def new_text(pieces: Iterable[Piece]) -> str:
    """Return the second text."""
    return "".join(piece.text for piece in pieces if piece.became != "gone")


_Stretch = tuple[str, list[str], list[str]]
"""'same' or 'changed', with the words of the old and of the new text."""


def _words(text: str) -> list[str]:
    """Return the units of comparison: words, runs of white space, any other character by itself."""
    characters = GRAPHEME.findall(text)
    kinds = {character: _kind(character) for character in set(characters)}
    return [word for kind, run in groupby(characters, key=kinds.__getitem__) for word in _cut(kind, list(run))]


def _kind(character: str) -> str:
    return next((name for name, form in _KINDS if form.fullmatch(character)), "other")


def _cut(kind: str, run: list[str]) -> list[str]:
    if kind == "other":
        return run
    return segment("".join(run)) if kind == "han" else ["".join(run)]


def _shared(one: Iterable[str], other: Iterable[str]) -> int:
    """Return the number of leading words that both share."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return count


def _compared(before: list[str], after: list[str]) -> Iterator[_Stretch]:
    if len(before) * len(after) > _MAX_COMPARED:
        yield "changed", before, after
        return
    for tag, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        yield "same" if tag == "equal" else "changed", before[i:j], after[k:m]


def _without_small_gaps(pieces: Iterable[_Stretch]) -> list[_Stretch]:
    """Merge white space and punctuation between two changes into the change."""
    found: list[_Stretch] = []
    for became, old, new in (piece for piece in pieces if piece[1] or piece[2]):
        if became == "changed" and len(found) > 1 and _is_small_gap(found[-1]) and found[-2][0] == "changed":
            (_, old_crumb, new_crumb), (_, old_before, new_before) = found.pop(), found.pop()
            old, new = old_before + old_crumb + old, new_before + new_crumb + new
        found.append((became, old, new))
    return found


def _is_small_gap(piece: _Stretch) -> bool:
    became, words, _ = piece
    return became == "same" and not any(_kind(character) in _TELLING for word in words for character in word)


def _joined(pieces: Iterable[_Stretch]) -> Iterator[Piece]:
    for became, old, new in pieces:
        if became == "same":
            yield Piece("same", "".join(old))
            continue
        if old:
            yield Piece("gone", "".join(old))
        if new:
            yield Piece("new", "".join(new))
