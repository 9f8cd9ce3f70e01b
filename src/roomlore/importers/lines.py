"""A text export line by line: numbered, with byte offsets, tolerant of broken bytes, one line in memory."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO

from roomlore.importers.source import Source

LONGEST_LINE = 64 << 20
_BEGINNING = 1 << 10
TOO_LONG = f"the line is longer than {LONGEST_LINE >> 20} MiB"


@dataclass(slots=True)
class Line:
    """`text` has no line end; `start` and `end` are byte offsets, `end` after the line end. `whole`: False where only
    the beginning of an overlong line is there."""

    number: int
    start: int
    end: int
    text: str
    whole: bool = True


def read_lines(source: Source, *, offset: int = 0, number: int = 0) -> Iterator[Line]:
    """Lines from `offset` on, the first of them numbered `number` + 1."""
    encoding, mark = source.encoding()
    with source.open() as file:
        start = max(offset, mark)
        file.seek(start)
        for raw, end in _raw_lines(file, start, encoding):
            number += 1
            source.bytes_read = end
            whole = len(raw) == end - start
            yield Line(number, start, end, _decode(source, raw if whole else raw[:_BEGINNING], encoding), whole)
            start = end


def _raw_lines(file: BinaryIO, start: int, encoding: str) -> Iterator[tuple[bytes, int]]:
    """(bytes of the line or of its beginning, offset of its end)"""
    piece: Callable[[], bytes] = partial(file.readline, LONGEST_LINE)
    ended: Callable[[bytes], bool] = _ends_line
    if encoding.startswith("utf-16"):
        piece, ended = partial(_utf16_line, file, encoding.endswith("le")), partial(_ends_utf16, encoding)
    while raw := piece():
        start += len(raw)
        tail = raw
        while len(tail) >= LONGEST_LINE and not ended(tail):
            tail = piece()
            start += len(tail)
        yield raw, start


def _ends_line(raw: bytes) -> bool:
    return raw.endswith(b"\n")


def _ends_utf16(encoding: str, raw: bytes) -> bool:
    return len(raw) % 2 == 0 and raw.endswith("\n".encode(encoding))


def _utf16_line(file: BinaryIO, little: bool) -> bytes:
    line = bytearray()
    while len(line) < LONGEST_LINE and (piece := file.readline(LONGEST_LINE)):
        line += piece
        if little and piece.endswith(b"\n") and len(line) % 2:
            line += file.read(1)
        if len(line) % 2 == 0 and line.endswith(b"\n\0" if little else b"\0\n"):
            break
    return bytes(line)


def _decode(source: Source, raw: bytes, encoding: str) -> str:
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        source.repaired += 1
        text = raw.decode(encoding, "replace")
    return text.removesuffix("\n").removesuffix("\r")
