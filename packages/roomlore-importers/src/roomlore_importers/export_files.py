"""The export on disk: its files, encodings and lines, the progress of reading, and the options of an import."""

import codecs
import gzip
import hashlib
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, tzinfo
from functools import lru_cache, partial
from itertools import islice
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from roomlore.core.errors import InvalidInput
from roomlore.core.patterns import lazy_pattern

_EXCERPT = 120
_MOST_NAMES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The caller's knowledge about the export.

    `room_id`: put everything into this room. `timezone`: of local times. `day`: the first day of a log without dates.
    `rooms`: pairs of the name that the export has for a room without an id, and the id that the room gets.
    """

    room_id: str | None = None
    timezone: tzinfo = UTC
    day: date | None = None
    rooms: tuple[tuple[str, str], ...] = ()

    def id_of(self, name: str) -> str:
        """Return the id of a room for which the export has a name alone."""
        return dict(self.rooms).get(name, name)


def excerpt(text: str) -> str:
    """Return the beginning of a text for a report, on one line and printable."""
    line = " ".join(text[: 4 * _EXCERPT].split())
    return line[:_EXCERPT].encode("utf-8", "replace").decode()


def derived_id(*parts: object) -> str:
    """Return a message id derived from the message itself, the same at every import."""
    text = json.dumps(parts, default=str)
    return "x" + hashlib.sha256(text.encode()).hexdigest()[:24]


_NAMELESS = ("_chat", "result", "messages", "chat")
"""Names that programs give every chat: then the name of the zip around it says more."""
_ZIP_START = b"PK\x03\x04"
_DAMAGE = (zipfile.BadZipFile, zlib.error, LZMAError, EOFError, OSError)
UNREADABLE = (*_DAMAGE, NotImplementedError, RuntimeError)
"""The errors of reading from a zip: damage, an unknown compression, a missing password."""
_GZIP = ".gz"
_ROTATED = lazy_pattern(r"(\.[a-z]+)\.\d{1,4}$", re.I)
_MOST_UNPACKED = 256 << 20
_MOST_TIMES = 200
"""Bytes to which any compressed file may unpack, and times its size to which a larger one may. Text shrinks to a tenth
or so, and what was made to fill a disk to a thousandth."""
_SAMPLE = 1 << 16
_SAMPLES = 8
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_UTF8_SEQUENCE = lazy_pattern(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_HIGH = lazy_pattern(rb"[\x80-\xff]")
_GB_PAIR = lazy_pattern(rb"[\xa1-\xf7][\xa1-\xfe]")
_GB_FREQUENT = lazy_pattern(rb"[\xa1\xa3\xb0-\xd7][\xa1-\xfe]")


class Source:
    """A file or folder to import.

    `total_bytes` and `bytes_read` are for a progress bar; `repaired` counts lines or records in which broken bytes were
    replaced; `stem`: the name without its ending, for a room that has none. `member`: the file inside a zip that is
    read in place of the zip, or with a slash at its end a folder. A file that ends in `.gz` is read as what is
    compressed in it. Raise `InvalidInput` if the path cannot be read.
    """

    def __init__(self, path: Path, member: str | None = None) -> None:
        if not path.exists():
            raise InvalidInput("export_path_missing", path=path)
        self.path = path
        self.member = member
        self.total_bytes = _size(path) if member is None else _size_in_zip(path, member)
        self.bytes_read = 0
        self.repaired = 0
        self.stem = _stem_inside(member) or Path(plain_name(path.resolve().name)).stem or "import"

    @property
    def label(self) -> str:
        """The path as people read it, also inside a zip."""
        return str(self.path if self.member is None else self.path / self.member)

    @property
    def folder(self) -> str:
        """The folder inside the zip, as the names of its files begin; '' for the whole folder or zip."""
        return self.member if self.member is not None and self.member.endswith("/") else ""

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the file's bytes. Raise `InvalidInput` if it cannot be opened."""
        if self.member is not None:
            with _open_inside(self.path, self.member) as inside:
                yield inside
            return
        if is_gzip(self.path):
            with _open_gzip(self.path) as inside:
                yield inside
            return
        try:
            file = self.path.open("rb")
        except OSError as error:
            raise InvalidInput("export_unreadable", path=self.path, why=error.strerror) from error
        with file:
            yield file

    @contextmanager
    def looked_at(self) -> Iterator[None]:
        """Leave what is read inside the block out of the progress: it will be read again."""
        before = self.bytes_read, self.repaired
        yield
        self.bytes_read, self.repaired = before

    def encoding(self) -> tuple[str, int]:
        """Return (codec name, bytes of byte order mark to skip), decided from samples of the whole file."""
        with self.open() as file:
            head = file.read(_SAMPLE)
            for mark, name in _BOMS:
                if head.startswith(mark) and (name == "utf-8" or _is_wide(head)):
                    return name, len(mark)
            return guess_encoding(head + self._samples(file)), 0

    def _samples(self, file: BinaryIO) -> bytes:
        """Return samples from further on, each cut at line ends so that no character is split."""
        if self.total_bytes <= _SAMPLE:
            return b""
        pieces = [b"\n"]
        for place in range(1, _SAMPLES):
            file.seek(max(_SAMPLE, self.total_bytes * place // _SAMPLES - _SAMPLE // 2))
            piece = file.read(_SAMPLE)
            pieces.append(piece[piece.find(b"\n") + 1 : piece.rfind(b"\n") + 1])
        return b"".join(pieces)

    def beside(self, name: str, most_bytes: int) -> bytes | None:
        """Return what is in a file that lies beside this one or below it, in the folder or zip of the export; None if
        there is none, it has more than `most_bytes`, or it cannot be read."""
        place = PurePosixPath(name.replace("\\", "/"))
        if not place.name or place.is_absolute() or ".." in place.parts:
            return None
        try:
            if self.member is not None:
                folder_inside = PurePosixPath(self.folder or str(PurePosixPath(self.member).parent))
                return _inside(self.path, str(folder_inside / place), most_bytes)
            folder = (self.path if self.path.is_dir() else self.path.parent).resolve()
            file = (folder / place).resolve()
            if not file.is_relative_to(folder) or not file.is_file() or file.stat().st_size > most_bytes:
                return None
            return file.read_bytes()
        except (*UNREADABLE, InvalidInput, ValueError):
            return None

    def names_beside(self, levels: int = 2) -> Iterator[str]:
        """Yield the names of the files that lie beside this one, or at most so many folders below it, as `beside` takes
        them."""
        if self.member is None:
            beside = self.path if self.path.is_dir() else self.path.parent
            yield from islice(_names_below(beside, levels), _MOST_NAMES)
            return
        folder = PurePosixPath(self.member).parent
        for inside in names_in(self.path):
            place = PurePosixPath(inside)
            if place.is_relative_to(folder) and len(place.relative_to(folder).parts) <= levels + 1:
                yield place.relative_to(folder).as_posix()


def _names_below(folder: Path, levels: int, above: str = "") -> Iterator[str]:
    try:
        entries = [(path, path.is_file(), path.is_dir() and not path.is_symlink()) for path in sorted(folder.iterdir())]
    except OSError:
        return
    for path, is_file, is_folder in entries:
        if is_file:
            yield above + path.name
        elif levels and is_folder:
            yield from _names_below(path, levels - 1, f"{above}{path.name}/")


def _inside(path: Path, member: str, most_bytes: int) -> bytes | None:
    with open_zip(path) as archive:
        try:
            entry = archive.getinfo(member)
        except KeyError:
            return None
        if entry.file_size > most_bytes:
            return None
        with archive.open(entry) as file:
            data = file.read(most_bytes + 1)
        return data if len(data) <= most_bytes else None


def _stem_inside(member: str | None) -> str:
    """Return the name of the file in a zip without its ending, or of the folder around it if programs give every chat
    that name; '' if neither has one."""
    inside = PurePosixPath(member or "")
    return inside.parent.name if inside.stem in _NAMELESS else inside.stem


def names_in(path: Path) -> list[str]:
    """Return the names of the files in a folder or zip, relative to it, sorted. Raise `InvalidInput` for a damaged
    zip."""
    if path.is_dir():
        return sorted(file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())
    with open_zip(path) as archive:
        return sorted(name for name in archive.namelist() if not name.endswith("/"))


def only_json(path: Path) -> Source:
    """Return the only JSON file in a folder or zip. Raise `InvalidInput` if there is none, or several."""
    names = [name for name in names_in(path) if name.lower().endswith(".json") and not name.startswith("__MACOSX/")]
    if len(names) != 1:
        held = f"{f'{len(names)} files' if names else 'no file'} ending in .json"
        raise InvalidInput("folder_without_export" if path.is_dir() else "zip_of_many", path=path, held=held)
    return Source(path / names[0]) if path.is_dir() else Source(path, names[0])


def is_zip(path: Path) -> bool:
    """Return True if the file is a zip. Raise `InvalidInput` for a truncated zip, which is no text either."""
    if zipfile.is_zipfile(path):
        return True
    with Source(path).open() as file:
        if file.read(len(_ZIP_START)) == _ZIP_START:
            raise _damaged(path, "its end is missing")
    return False


def open_zip(path: Path) -> zipfile.ZipFile:
    """Open a zip. Raise `InvalidInput` if that fails."""
    try:
        return zipfile.ZipFile(path)
    except UNREADABLE as error:
        raise _damaged(path, error) from error


@contextmanager
def _open_inside(path: Path, member: str) -> Iterator[BinaryIO]:
    with open_zip(path) as archive:
        refuse_encrypted(path, archive, (member,))
        try:
            inside = archive.open(member)
        except UNREADABLE as error:
            raise _damaged(path, error) from error
        with inside:
            try:
                yield cast(BinaryIO, inside)
            except _DAMAGE as error:
                raise _damaged(path, error) from error


def refuse_encrypted(path: Path, archive: zipfile.ZipFile, names: Iterable[str]) -> None:
    """Raise `InvalidInput` if one of the files needs a password."""
    if any(archive.getinfo(name).flag_bits & 1 for name in names):
        raise InvalidInput("zip_encrypted", path=path)


def _damaged(path: Path, error: object) -> InvalidInput:
    return InvalidInput("zip_unreadable", path=path, error=error)


def _size_in_zip(path: Path, member: str) -> int:
    with open_zip(path) as archive:
        if member.endswith("/"):
            return sum(entry.file_size for entry in archive.infolist() if entry.filename.startswith(member))
        return archive.getinfo(member).file_size


def guess_encoding(sample: bytes) -> str:
    """Return utf-8 if nearly all of what is not ASCII is, else gb18030 if it looks Chinese, else utf-8 if half of it
    is, else cp1252.

    Half of the pairs of a short Chinese text in GB18030 may be UTF-8 by chance."""
    high = len(_HIGH.findall(sample))
    if not high:
        return "utf-8"
    as_utf8 = sum(map(len, _UTF8_SEQUENCE.findall(sample)))
    if as_utf8 >= 0.9 * high:
        return "utf-8"
    pairs = _GB_PAIR.findall(sample)
    frequent = sum(1 for pair in pairs if _GB_FREQUENT.fullmatch(pair))
    chinese = len(pairs) * 2 >= 0.7 * high and frequent >= 0.7 * len(pairs)
    return "gb18030" if chinese else "utf-8" if as_utf8 * 2 >= high else "cp1252"


def _is_wide(head: bytes) -> bool:
    """Return True if the text has two bytes per character: then digits and line ends have many zero bytes; with few the
    byte order mark is there by chance."""
    return 20 * head.count(0) >= len(head)


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*.json"))
    state = path.stat()
    return _size_in_gzip(path, state.st_size, state.st_mtime_ns) if is_gzip(path) else state.st_size


def plain_name(name: str) -> str:
    """Return the name of a file without the ending of its compression, and without the number that a program gives to
    an older log behind its ending: `#general.log.2.gz` is a part of `#general.log`."""
    return _ROTATED.sub(r"\1", name[: -len(_GZIP)]) if name.lower().endswith(_GZIP) else name


def is_gzip(path: Path) -> bool:
    """Return True if the path is a compressed file, by its name."""
    return path.name.lower().endswith(_GZIP) and path.is_file()


@contextmanager
def _open_gzip(path: Path) -> Iterator[BinaryIO]:
    try:
        with gzip.open(path, "rb") as inside:
            yield cast(BinaryIO, inside)
    except _DAMAGE as error:
        raise InvalidInput("gzip_unreadable", path=path, why=error) from error


@lru_cache(maxsize=1 << 10)
def _size_in_gzip(path: Path, size: int, changed: int) -> int:
    """Return how many bytes are compressed in a file of this size, changed then. Raise `InvalidInput` if it is damaged,
    or unpacks to far more than a chat would."""
    most, unpacked = max(_MOST_UNPACKED, size * _MOST_TIMES), 0
    with _open_gzip(path) as file:
        while piece := file.read(1 << 20):
            unpacked += len(piece)
            if unpacked > most:
                raise InvalidInput("export_unpacks_too_large", path=path, times=_MOST_TIMES)
    return unpacked


LONGEST_LINE = 64 << 20
LONGEST_TEXT = 16 << 20
"""Characters of a message of many lines: a line behind them begins none."""
_BEGINNING = 1 << 10
_LEARNED_FROM = 5000
TOO_LONG = f"the line is longer than {LONGEST_LINE >> 20} MiB"


@dataclass(slots=True)
class Line:
    """A line. `text` has no line end; `start` and `end` are byte offsets, `end` after the line end. `whole`: False if
    only the beginning of an overlong line is there."""

    number: int
    start: int
    end: int
    text: str
    whole: bool = True

    @property
    def before(self) -> dict[str, int]:
        """The position from which `read_lines` reads the line again."""
        return {"offset": self.start, "line": self.number - 1}


def read_lines(source: Source, *, offset: int = 0, number: int = 0) -> Iterator[Line]:
    """Yield lines from `offset` on, the first of them numbered `number` + 1."""
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


def first_lines(source: Source) -> list[str]:
    """Return the first thousands of lines, from which a format learns names and orders."""
    with source.looked_at():
        return [line.text for line in islice(read_lines(source), _LEARNED_FROM) if line.whole]


def _raw_lines(file: BinaryIO, start: int, encoding: str) -> Iterator[tuple[bytes, int]]:
    """Yield (bytes of the line or of its beginning, offset of its end)."""
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
