"""Opening an export, to be read once."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import astuple, replace
from datetime import UTC, date
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from zoneinfo import ZoneInfo

from roomlore.core.errors import InvalidInput
from roomlore.core.records import Item, Parsed, Position
from roomlore.ports.exports import ExportFile
from roomlore_importers.apart import other_ids
from roomlore_importers.export_files import Options, Source
from roomlore_importers.finding import find, known_name
from roomlore_importers.formats import FORMATS, LABELLING, Format, check_read, form_of
from roomlore_importers.shapes import without_labels

_SHOWN = 3


class Import:
    """An export being read: iterate it once.

    `format`: its name. `time_zone`: of times without one, None if the format has none. `source`: its size, the bytes
    read so far and how many records had broken bytes replaced. `parsed`, `bad`: the items yielded so far. `undated`:
    messages among them without a readable time.
    """

    def __init__(self, chosen: Format, source: Source, options: Options, resume_from: Position | None) -> None:
        self.format = chosen.name
        self.source = source
        self.parsed = 0
        self.bad = 0
        self.undated = 0
        self.time_zone = str(options.timezone) if chosen.local or options.timezone is not UTC else None
        self._options = options
        self._items = chosen.read(source, options, resume_from)
        self._read = chosen.read

    @property
    def fingerprint(self) -> str:
        """An identifier of this export, read with these options: 64 hex digits.

        It depends on the path, the size, the modification time and the options; not on the content, which may be large.
        """
        path = self.source.path.resolve()
        file = (str(path), self.source.member) if self.source.member else (str(path),)
        options = astuple(self._options) if self._options.rooms else astuple(self._options)[:-1]
        parts = (*file, self.source.total_bytes, path.stat().st_mtime_ns, self.format, options)
        return hashlib.sha256(repr(parts).encode("utf-8", "surrogateescape")).hexdigest()

    def attached(self, file: str, most_bytes: int) -> bytes | None:
        """Return what is in a file of the export, as `metadata.attachments` names it; None if it is not there, cannot
        be read or has more than `most_bytes`."""
        return self.source.beside(file, most_bytes)

    def resume(self, position: Position) -> None:
        """Continue right after the item that came with `position`; only before the first item was taken."""
        self.close()
        self._items = self._read(self.source, self._options, position)

    def __iter__(self) -> Iterator[Item]:
        for item in self._items:
            if isinstance(item, Parsed):
                self.parsed += 1
                self.undated += item.message.sent_at is None
                if self.format in LABELLING:
                    item = replace(item, message=without_labels(item.message))
            else:
                self.bad += 1
            yield item
        self.source.bytes_read = self.source.total_bytes

    def close(self) -> None:
        """Close the file; also done by leaving a `with` block and by reading to the end."""
        close = getattr(self._items, "close", None)
        if close is not None:
            close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_import(
    path: Path | str,
    format: str | None = None,  # noqa: A002
    *,
    member: str | None = None,
    room_id: str | None = None,
    timezone: str | None = None,
    day: str | None = None,
    local_zone: str | None = None,
    rooms: Mapping[str, str] | None = None,
    resume_from: Position | None = None,
) -> Import:
    """Open an export.

    `format`: a name from `FORMATS`, None detects it; refused if nearly all messages lack what the format has.
    `room_id`: the room for everything, None: as the export names its rooms (else the file's name). `timezone`: IANA
    name for times without a zone; None: `local_zone` if the format writes local times (IRC, WhatsApp, old Telegram),
    else UTC. `day`: ISO date of the first line of an IRC log without dates. `resume_from`: the position of the last
    item taken. `member`: the file to read inside a zip of several, as `find_exports` names it. `rooms`: other ids for
    rooms that the export has a name for and no id, as `keep_apart` gives them. Raise `InvalidInput`.
    """
    given = known_name(format)
    file = ExportFile(Path(path), member, given) if member is not None else _only_export(Source(Path(path)).path, given)
    source = Source(file.path, file.member)
    chosen = FORMATS[file.format or form_of(source)]
    zone = _zone(timezone or (local_zone if chosen.local else None))
    options = Options(room_id=room_id or None, timezone=zone, day=_day(day), rooms=other_ids(rooms))
    if given is None and file.format is None:
        check_read(chosen, source, options)
    if chosen.name not in ("whatsapp", "irc"):  # these find the name of the room in that of the file
        source.stem = options.id_of(source.stem)
    return Import(chosen, source, options, _checked(resume_from))


def detect(path: Path) -> str:
    """Return the format's name, by the content. Raise `InvalidInput` if the content does not tell."""
    file = _only_export(Source(path).path, None)
    return file.format or form_of(Source(file.path, file.member))


def _only_export(path: Path, form: str | None) -> ExportFile:
    """Return the export that a path stands for: the file itself, or the only one in a folder or zip."""
    exports = find(path, form).exports
    if len(exports) > 1 and exports[0] != ExportFile(path, None, exports[0].format):
        shown = ", ".join(export.label for export in exports[:_SHOWN]) + (", …" if len(exports) > _SHOWN else "")
        raise InvalidInput("exports_several", path=path, count=len(exports), known=shown)
    return exports[0]


def _zone(name: str | None) -> Any:
    if not name or name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise InvalidInput("timezone_unknown", value=repr(name)) from error


def _day(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as error:
        raise InvalidInput("day_invalid", day=repr(text)) from error


def _checked(position: Position | None) -> Position | None:
    if position is not None and not isinstance(position, Mapping):
        raise InvalidInput("resume_position_invalid")
    return position or None
