"""What became of a statement, word by word: Chinese by its words, English by its words, neither inside a character."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal

import regex

from roomlore.core.text import GRAPHEME, HAN, HANGUL, KANA, LETTER, segment

_MOST_COMPARED = 1_000_000
"""Pairs of words. Where there are more, what lies between the first and the last difference is told as a whole."""
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
    """How the new text differs from the old one. No piece is empty, no two neighbours are of one sort, and what is gone
    stands before what came in its place. Never raises on any text."""
    before, after = _words(old), _words(new)
    head = _shared(before, after)
    tail = _shared(reversed(before[head:]), reversed(after[head:]))
    middle = _compared(before[head : len(before) - tail], after[head : len(after) - tail])
    pieces = [("same", before[:head], before[:head]), *middle]
    pieces.append(("same", before[len(before) - tail :], before[len(before) - tail :]))
    return tuple(_joined(_without_crumbs(pieces)))


def old_text(pieces: Iterable[Piece]) -> str:
    """The text that was compared first."""
    return "".join(piece.text for piece in pieces if piece.became != "new")


def new_text(pieces: Iterable[Piece]) -> str:
    """The text that was compared second."""
    return "".join(piece.text for piece in pieces if piece.became != "gone")


_Stretch = tuple[str, list[str], list[str]]
"""'same' or 'changed', with the words of the old and of the new text."""


def _words(text: str) -> list[str]:
    """The text in pieces that are compared as one: words, stretches of white space, any other character by itself."""
    return [word for kind, run in groupby(GRAPHEME.findall(text), key=_kind) for word in _cut(kind, list(run))]


def _kind(character: str) -> str:
    return next((name for name, form in _KINDS if form.fullmatch(character)), "other")


def _cut(kind: str, run: list[str]) -> list[str]:
    if kind == "other":
        return run
    return segment("".join(run)) if kind == "han" else ["".join(run)]


def _shared(one: Iterable[str], other: Iterable[str]) -> int:
    """How many words both begin with."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return count


def _compared(before: list[str], after: list[str]) -> Iterator[_Stretch]:
    if len(before) * len(after) > _MOST_COMPARED:
        yield "changed", before, after
        return
    for tag, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        yield "same" if tag == "equal" else "changed", before[i:j], after[k:m]


def _without_crumbs(pieces: Iterable[_Stretch]) -> list[_Stretch]:
    """White space and marks that two changes have between them are told as part of the change."""
    found: list[_Stretch] = []
    for became, old, new in (piece for piece in pieces if piece[1] or piece[2]):
        if became == "changed" and len(found) > 1 and _is_crumb(found[-1]) and found[-2][0] == "changed":
            (_, old_crumb, new_crumb), (_, old_before, new_before) = found.pop(), found.pop()
            old, new = old_before + old_crumb + old, new_before + new_crumb + new
        found.append((became, old, new))
    return found


def _is_crumb(piece: _Stretch) -> bool:
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
