"""A sliding window of decoded text over a byte stream, in which JSON values are decoded one at a time."""

import codecs
import json
import re
from collections.abc import Callable
from typing import Any, BinaryIO

LONGEST_VALUE = 64 << 20
_CHUNK = 1 << 18
_SPACE = re.compile(r"[ \t\r\n\ufeff]*")
_ESCAPED = re.compile("[\udc80-\udcff]+")
_NEAR_END = 16
_LATE = "unfinished: "


class BrokenError(Exception):
    """The text at the cursor is not the JSON that was expected there."""


class Window:
    """The text from `offset` (bytes) on; `offset` is always the byte offset of the cursor. `repaired`: values in which
    broken bytes were replaced."""

    def __init__(self, file: BinaryIO, *, encoding: str = "utf-8", offset: int = 0) -> None:
        file.seek(offset)
        self.offset = offset
        self.repaired = 0
        self._file = file
        self._encoding = encoding
        self._errors = "surrogateescape" if encoding == "utf-8" else "replace"
        self._decoder = codecs.getincrementaldecoder(encoding)(self._errors)
        self._json = json.JSONDecoder(strict=False, parse_constant=str)
        self._text = ""
        self._cursor = 0
        self._damaged = False
        self._ended = False

    def peek(self) -> str:
        """The next character that is not white space, '' at the end; the cursor moves to it."""
        while True:
            match = _SPACE.match(self._text, self._cursor)
            self._advance(match.end() if match else self._cursor)
            if self._cursor < len(self._text):
                return self._text[self._cursor]
            if not self._fill():
                return ""

    def take(self, characters: str) -> str:
        """Moves past the next character if it is one of these and returns it, else ''."""
        found = self.peek()
        if not found or found not in characters:
            return ""
        self._advance(self._cursor + 1)
        return found

    def value(self) -> Any:
        """Decodes the JSON value at the cursor and moves past it; `BrokenError` leaves the cursor where it is."""
        self.peek()
        value, end = self._decode()
        self._advance(end)
        return value

    def search(self, pattern: re.Pattern[str], accepts: Callable[[re.Match[str]], bool], *, overlap: int) -> bool:
        """Moves to the next match that is accepted; False at the text's end. Matches are shorter than `overlap`."""
        while True:
            known = len(self._text) if self._ended else len(self._text) - overlap
            match = pattern.search(self._text, self._cursor)
            if match is None or match.start() > known:
                self._advance(max(self._cursor, known))
                if not self._fill():
                    return False
            elif match.start() > self._cursor:
                self._advance(match.start())
            elif accepts(match):
                return True
            else:
                self._advance(self._cursor + 1)

    def skip(self) -> None:
        """Moves one character on."""
        if self._cursor < len(self._text) or self._fill():
            self._advance(self._cursor + 1)

    def ahead(self, characters: int = 120) -> str:
        """Some text from the cursor on, for a report."""
        return self._text[self._cursor : self._cursor + characters]

    def readable(self) -> Any:
        """The JSON value at the cursor without moving, None where there is none."""
        try:
            return self._decode()[0]
        except BrokenError:
            return None

    def _decode(self) -> tuple[Any, int]:
        while True:
            reason = self._try()
            if not isinstance(reason, str):
                return reason
            if not self._may_continue(reason) or not self._fill():
                raise BrokenError(self._explain(reason))

    def _explain(self, reason: str) -> str:
        if not reason.startswith(_LATE):
            return reason
        return "the document ends in the middle" if self._ended else f"longer than {LONGEST_VALUE >> 20} MiB"

    def _try(self) -> "tuple[Any, int] | str":
        """(value, its end), or why there is none."""
        try:
            value, end = self._json.raw_decode(self._text, self._cursor)
            if self._damaged:
                value = self._repaired(value, end)
        except json.JSONDecodeError as error:
            late = error.pos >= len(self._text) - _NEAR_END or error.msg.startswith("Unterminated")
            return f"{_LATE if late else ''}{error.msg}"
        except (ValueError, RecursionError) as error:
            return f"not readable as JSON: {str(error)[:80]}"
        return _LATE if end == len(self._text) and not self._ended else (value, end)

    def _may_continue(self, reason: str) -> bool:
        return reason.startswith(_LATE) and not self._ended and len(self._text) - self._cursor < LONGEST_VALUE

    def _repaired(self, value: Any, end: int) -> Any:
        raw = self._text[self._cursor : end]
        mended, places = _ESCAPED.subn("\ufffd", raw)
        if not places:
            return value
        self.repaired += 1
        return self._json.decode(mended)

    def _fill(self) -> bool:
        """Reads on, dropping what lies before the cursor; False at the end of the file."""
        if self._ended:
            return False
        rest = self._text[self._cursor :]
        raw = self._file.read(max(_CHUNK, len(rest)))
        self._ended = not raw
        more = self._decoder.decode(raw, self._ended)
        self._damaged = self._damaged or (self._errors == "surrogateescape" and _ESCAPED.search(more) is not None)
        self._text, self._cursor = rest + more, 0
        return True

    def _advance(self, to: int) -> None:
        if to > self._cursor:
            passed = self._text[self._cursor : to]
            self.offset += len(passed) if self._single(passed) else len(passed.encode(self._encoding, self._errors))
            self._cursor = to

    def _single(self, passed: str) -> bool:
        return self._encoding == "utf-8" and passed.isascii()
