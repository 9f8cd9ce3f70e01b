"""The objects in a model's answer, wherever they stand in it."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from roomlore.core.evolution.lexing import BLANKS, Lexed, lex

MOST_PIECES = 4000
MOST_PROSE = 200
REPAIRABLE_CHARS = 20_000
MOST_REPAIRS = 200
MOST_WRAPPERS = 1000
FIELDS = frozenset(
    ("action", "old_id", "old_ids", "statement", "change_reason", "reason", "tags", "evidence", "confidence")
)
_BLOCKS = {"<think>": "</think>", "<thinking>": "</thinking>", "/*": "*/", "<!--": "-->"}
_NEXT = re.compile(r"\n\s*|[{｛]|[}｝]+|</?think(?:ing)?>|<!--|/\*|(?<!:)//|(?<=\s)#")
_OPENER = re.compile(r"[{｛]|</?think(?:ing)?>|<!--|/\*")
_BLANK = re.compile(rf"[{BLANKS}]*")
_COMMENT = re.compile(rf"[{BLANKS}]*(?://|#)")
_FENCE = re.compile(rf"[{BLANKS}]*(?:```|~~~)")
_WORD = re.compile(r"[^\W_]")
_PROSE = re.compile(r"[^\W_][^\n]*")
_NEW_LINE = re.compile(rf"\n[{BLANKS}]*+(?:[\[［][{BLANKS}]*+)?(?=[{{｛])")
_WRAPPER = re.compile(
    rf"[{{｛][{BLANKS}\n]{{0,99}}[\"'“]?(\w{{1,40}})[\"'”]?[{BLANKS}]{{0,99}}[:：][{BLANKS}\n]{{0,99}}(?=[\[{{［｛])"
)
_ACTION = re.compile(r"action[\"'“”]?\s{0,9}[:：]", re.IGNORECASE)
_SAID = re.compile(r"[^\W_]|[\"'“”‘’＂＇]")
_QUOTES = "\"'“”‘’＂＇"


class _Twice(ValueError):
    """A field stands twice in an object, with different values."""


@dataclass(frozen=True, slots=True)
class Piece:
    """`value`: an object that could be read; None: it could not, for the `fault`."""

    line: int
    text: str
    value: dict[str, Any] | None = None
    fault: str = ""
    repaired: bool = False


def find(text: str, repair: Callable[[str], str] | None) -> tuple[list[Piece], int]:
    """The pieces in order, prose among them, and how many more lines there are that were passed over."""
    finder = _Finder(text, repair)
    finder.run()
    return finder.pieces, finder.passed_over


class _Finder:
    def __init__(self, text: str, repair: Callable[[str], str] | None) -> None:
        self.pieces: list[Piece] = []
        self.passed_over = 0
        self._text, self._repair = text, repair
        self._repairs = self._prose = self._wrappers = 0
        self._line, self._counted = 1, 0
        self._gap: int | None = 0
        self._object_end = self._line_at = 0
        self._unsure: int | None = None

    def run(self) -> None:
        at = self._line_start(0)
        while found := _NEXT.search(self._text, at):
            at = self._step(found[0], found.start(), found.end())
            if len(self.pieces) > MOST_PIECES:
                self._pass_over(at, len(self._text))
                return
        self._end_line(len(self._text))

    def _step(self, mark: str, start: int, end: int) -> int:
        if mark[0] == "\n":
            self._end_line(start)
            return self._line_start(end)
        if mark in "{｛":
            return self._object(start)
        if mark[0] in "}｝":
            return self._orphan(start, end)
        if mark in _BLOCKS:
            return self._block(mark, start)
        if mark.startswith("</"):
            return self._thought_ends(end)
        self._end_line(start)
        return self._line_end(end)

    def _line_start(self, at: int) -> int:
        if self._prose >= MOST_PROSE:
            at = self._skip_prose(at)
        self._gap = self._line_at = at
        if _COMMENT.match(self._text, at):
            self._gap = None
            return self._line_end(at)
        if fence := _FENCE.match(self._text, at):
            self._gap = None
            return fence.end()
        return at

    def _skip_prose(self, at: int) -> int:
        opener = _OPENER.search(self._text, at)
        stop = self._text.rfind("\n", at, opener.start() if opener else len(self._text)) + 1
        if stop > at:
            self._pass_over(at, stop)
        return max(at, stop)

    def _pass_over(self, start: int, end: int) -> None:
        self.passed_over += sum(1 for _ in _PROSE.finditer(self._text, start, end))

    def _line_end(self, at: int) -> int:
        end = self._text.find("\n", at)
        return len(self._text) if end < 0 else end

    def _number(self, at: int) -> int:
        if at >= self._counted:
            self._line += self._text.count("\n", self._counted, at)
        else:
            self._line -= self._text.count("\n", at, self._counted)
        self._counted = at
        return self._line

    def _end_line(self, end: int) -> None:
        """What stands on a line without an object is named."""
        gap, self._gap = self._gap, None
        if gap is None or not _WORD.search(self._text, gap, end):
            return
        if self._prose >= MOST_PROSE:
            self.passed_over += 1
            return
        self._prose += 1
        self._add(gap, end, fault="It holds no JSON object.")

    def _add(self, start: int, end: int, **made: Any) -> None:
        blank = _BLANK.match(self._text, start)
        start = blank.end() if blank else start
        self.pieces.append(Piece(self._number(start), self._text[start : min(end, start + 400)], **made))

    def _object(self, start: int) -> int:
        wrapper = _WRAPPER.match(self._text, start)
        if wrapper and wrapper[1].lower() not in FIELDS and self._wrappers < MOST_WRAPPERS:
            self._gap = None
            self._wrappers += 1
            return wrapper.end()
        lexed = lex(self._text, start)
        if lexed.fault:
            return self._fell_apart(start, lexed)
        self._gap = None
        self._read(start, lexed)
        self._object_end = lexed.end
        return lexed.end

    def _fell_apart(self, start: int, lexed: Lexed) -> int:
        self._gap = None
        self._unsure = len(self.pieces)
        self._add(start, self._line_end(start), fault=lexed.fault)
        again = _NEW_LINE.search(self._text, start, min(lexed.end + 1, len(self._text)))
        if again:
            return again.end()
        return self._line_end(lexed.end - 1 if self._text[lexed.end - 1] == "\n" else lexed.end)

    def _read(self, start: int, lexed: Lexed) -> None:
        end = lexed.end
        if start and self._text[start - 1] in _QUOTES:
            self._unsure = len(self.pieces)
            self._add(start, end, fault="It is a quotation, no object of its own.")
            return
        made = self._made(self._text[start:end], lexed.written)
        if made.get("repaired") or "fault" in made:
            self._unsure = len(self.pieces)
        self._add(start, end, **made)

    def _made(self, raw: str, written: str) -> dict[str, Any]:
        try:
            value, repaired = _loaded(raw), False
            if value is None:
                value, repaired = _loaded(written) or self._mended(raw), True
        except _Twice as twice:
            return {"fault": f"It gives {twice} twice, and not the same."}
        if value is None:
            return {"fault": "It is no JSON and cannot be repaired."}
        return {"value": value, "repaired": repaired}

    def _mended(self, raw: str) -> dict[str, Any] | None:
        """Not where a repair could take one of two actions for the other's, nor where it made fields of a text's
        pieces."""
        if self._repair is None or len(raw) > REPAIRABLE_CHARS or len(_ACTION.findall(raw)) != 1:
            return None
        self._repairs += 1
        mended = _loaded(self._repair(raw)) if self._repairs <= MOST_REPAIRS else None
        return mended if mended and mended.keys() <= FIELDS else None

    def _orphan(self, start: int, end: int) -> int:
        """A brace that closes nothing. With words before it, an object ended too early: what was read since then may
        have been part of it."""
        if self._unsure is not None and _SAID.search(self._text, max(self._line_at, self._object_end), start):
            self._withdraw(self._unsure, "It may be part of the text of an object that is not written as JSON.")
            self._unsure = None
        self._object_end = end
        return end

    def _withdraw(self, since: int, fault: str) -> None:
        for place, piece in enumerate(self.pieces[since:], since):
            if piece.value is not None:
                self.pieces[place] = replace(piece, value=None, fault=fault)

    def _block(self, mark: str, start: int) -> int:
        end = self._text.find(_BLOCKS[mark], start)
        if end >= 0:
            self._end_line(start)
            return end + len(_BLOCKS[mark])
        self._add(start, self._line_end(start), fault=f"{mark} never ends; nothing behind it is read.")
        self._gap = None
        return len(self._text)

    def _thought_ends(self, end: int) -> int:
        """A thought whose beginning is not in the answer: all so far was not meant to be done."""
        self._withdraw(0, "It belongs to a thought.")
        self._unsure, self._gap = None, None
        return end


def _loaded(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text, object_pairs_hook=_fields, parse_int=_whole)
    except _Twice:
        raise
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in pairs:
        name = key.strip().lower()
        if name in fields and fields[name] != value:
            raise _Twice(f"{name:.40}")
        fields[name] = value
    return fields


def _whole(digits: str) -> float:
    return int(digits) if len(digits) < 20 else math.inf
