"""The export on disk: its size, how much of it has been read, and which encoding its text is in."""

import codecs
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from roomlore.core.errors import InvalidInput

_NAMELESS = ("_chat", "result", "messages", "chat")
"""What programs call every chat alike: then the zip around it tells more."""
_ZIP_START = b"PK\x03\x04"
_DAMAGE = (zipfile.BadZipFile, zlib.error, LZMAError, EOFError, OSError)
UNREADABLE = (*_DAMAGE, NotImplementedError, RuntimeError)
"""What reading from a zip raises: damage, a compression that is not known, a missing password."""
_SAMPLE = 1 << 16
_SAMPLES = 8
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_UTF8_SEQUENCE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_HIGH = re.compile(rb"[\x80-\xff]")
_GB_PAIR = re.compile(rb"[\xa1-\xf7][\xa1-\xfe]")
_GB_FREQUENT = re.compile(rb"[\xa1\xa3\xb0-\xd7][\xa1-\xfe]")


class Source:
    """A file or folder to import.

    `total_bytes` and `bytes_read` are for a progress bar; `repaired` counts lines or records in which broken bytes
    were replaced; `stem`: the name without its ending, for a room that has none. Raises `InvalidInput` where the
    path cannot be read. `member`: the file inside a zip that is read in the zip's place.
    """

    def __init__(self, path: Path, member: str | None = None) -> None:
        if not path.exists():
            raise InvalidInput(f"{path} does not exist: give the path of an export")
        self.path = path
        self._member = member
        self.total_bytes = _size(path) if member is None else _size_in_zip(path, member)
        self.bytes_read = 0
        self.repaired = 0
        inside = Path(member).stem if member else ""
        self.stem = inside if inside not in ("", *_NAMELESS) else path.resolve().stem or "import"

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The file's bytes; `InvalidInput` where it cannot be opened."""
        if self._member is not None:
            with _open_inside(self.path, self._member) as inside:
                yield inside
            return
        try:
            file = self.path.open("rb")
        except OSError as error:
            raise InvalidInput(f"{self.path} cannot be read: {error.strerror}") from error
        with file:
            yield file

    def encoding(self) -> tuple[str, int]:
        """(codec name, bytes of byte order mark to skip), decided from samples of the whole file."""
        with self.open() as file:
            head = file.read(_SAMPLE)
            for mark, name in _BOMS:
                if head.startswith(mark) and (name == "utf-8" or _is_wide(head)):
                    return name, len(mark)
            return guess_encoding(head + self._samples(file)), 0

    def _samples(self, file: BinaryIO) -> bytes:
        """Pieces from further on, each cut at line ends so that no character is torn."""
        if self.total_bytes <= _SAMPLE:
            return b""
        pieces = [b"\n"]
        for place in range(1, _SAMPLES):
            file.seek(max(_SAMPLE, self.total_bytes * place // _SAMPLES - _SAMPLE // 2))
            piece = file.read(_SAMPLE)
            pieces.append(piece[piece.find(b"\n") + 1 : piece.rfind(b"\n") + 1])
        return b"".join(pieces)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The file to read of many: the one that an app names so (`stems`, the surest first), else the only one with one of
    these `endings`."""

    endings: tuple[str, ...]
    stems: tuple[re.Pattern[str], ...] = ()

    def among(self, names: Iterable[str]) -> list[str]:
        """Return the file, or all that it may be. What lies deeper than a known name may be an attached file."""
        found = [one for one in names if one.lower().endswith(self.endings) and not one.startswith("__MACOSX/")]
        known = [one for one in found if any(self._is(stem, one) for stem in self.stems)]
        level = min((one.count("/") for one in known), default=0)
        for stem in self.stems:
            nearest = [one for one in known if one.count("/") == level and self._is(stem, one)]
            if len(nearest) == 1:
                return nearest
        return found

    def _is(self, stem: re.Pattern[str], name: str) -> bool:
        return stem.fullmatch(PurePosixPath(name).stem) is not None


def in_zip(path: Path, wanted: Wanted) -> Source:
    """Return the wanted file in a zip. Raises `InvalidInput` where there is none or several may be it."""
    with open_zip(path) as archive:
        found = wanted.among(archive.namelist())
    if len(found) != 1:
        raise InvalidInput(f"{path} is a zip with {_held(found, wanted)}: unpack it, and give one file")
    return Source(path, found[0])


def in_folder(path: Path, wanted: Wanted) -> Source:
    """Return the wanted file in a folder. Raises `InvalidInput` where there is none or several may be it."""
    found = wanted.among(one.relative_to(path).as_posix() for one in path.rglob("*") if one.is_file())
    if len(found) != 1:
        raise InvalidInput(f"{path} is a folder with {_held(found, wanted)}: give the file of the export")
    return Source(path / found[0])


def _held(found: list[str], wanted: Wanted) -> str:
    held = f"{len(found)} files" if found else "no file"
    return f"{held} ending in {' or '.join(wanted.endings)}"


def is_zip(path: Path) -> bool:
    """Return whether the file is a zip. Raises `InvalidInput` for one that is cut off, which is no text either."""
    if zipfile.is_zipfile(path):
        return True
    with Source(path).open() as file:
        if file.read(len(_ZIP_START)) == _ZIP_START:
            raise _damaged(path, "its end is missing")
    return False


def open_zip(path: Path) -> zipfile.ZipFile:
    """Open a zip. Raises `InvalidInput` where that fails."""
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
    """Raise `InvalidInput` where a password is needed for one of the files."""
    if any(archive.getinfo(name).flag_bits & 1 for name in names):
        raise InvalidInput(f"{path} is encrypted: unpack it with its password, and give what was in it")


def _damaged(path: Path, error: object) -> InvalidInput:
    return InvalidInput(
        f"{path} cannot be read as a zip ({error}): export or download it again, or unpack it with another program"
        " and give what was in it"
    )


def _size_in_zip(path: Path, member: str) -> int:
    with open_zip(path) as archive:
        return archive.getinfo(member).file_size


def guess_encoding(sample: bytes) -> str:
    """utf-8 unless most of what is not ASCII contradicts it; then gb18030 where it looks Chinese, else cp1252."""
    high = len(_HIGH.findall(sample))
    if not high:
        return "utf-8"
    as_utf8 = sum(map(len, _UTF8_SEQUENCE.findall(sample)))
    if as_utf8 * 2 >= high:
        return "utf-8"
    pairs = _GB_PAIR.findall(sample)
    frequent = sum(1 for pair in pairs if _GB_FREQUENT.fullmatch(pair))
    chinese = len(pairs) * 2 >= 0.7 * high and frequent >= 0.7 * len(pairs)
    return "gb18030" if chinese else "cp1252"


def _is_wide(head: bytes) -> bool:
    """Two bytes a character leave many zero bytes, in digits and line ends; with few the mark is there by chance."""
    return 20 * head.count(0) >= len(head)


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(one.stat().st_size for one in path.rglob("*.json"))
    return path.stat().st_size
