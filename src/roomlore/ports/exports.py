"""The port through which chat exports, and the memories of other systems, are found and read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from roomlore.core.memory.versions import ImportedMemories
from roomlore.core.records import Item, LeftOut, Position


@dataclass(frozen=True, slots=True)
class ExportFile:
    """One export. `member`: the file inside if `path` is a zip, or the folder inside, with a slash at its end.
    `format`: the name of its format, None if nobody looked."""

    path: Path
    member: str | None = None
    format: str | None = None

    @property
    def label(self) -> str:
        """The path as people read it, also inside a zip."""
        return str(self.path if self.member is None else self.path / self.member)


@dataclass(slots=True)
class ExportListing:
    """The exports at a path, in the order of their names, and what was left out."""

    exports: list[ExportFile] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)


class ExportBytes(Protocol):
    """The bytes behind an export."""

    @property
    def total_bytes(self) -> int: ...
    @property
    def bytes_read(self) -> int: ...
    @property
    def repaired(self) -> int: ...


class Export(Protocol):
    """An export being read, once."""

    @property
    def format(self) -> str: ...
    @property
    def source(self) -> ExportBytes: ...
    @property
    def time_zone(self) -> str | None:
        """The time zone of times without one."""

    @property
    def fingerprint(self) -> str:
        """An identifier of this export, read with these options."""

    def __iter__(self) -> Iterator[Item]: ...

    def attached(self, file: str, most_bytes: int) -> bytes | None:
        """Return what is in a file of the export; None if it is not there, cannot be read or has more than
        `most_bytes`."""

    def resume(self, position: Position) -> None:
        """Continue right after the item that came with `position`; only before the first item."""

    def close(self) -> None: ...


FindExports = Callable[[Path | str, str | None], ExportListing]
"""Called with a path and a format, None for any. Raise `InvalidInput` if there is no export."""

KeepApart = Callable[[Sequence[ExportFile]], Sequence[Mapping[str, str]]]
"""Return for each export the ids for those of its rooms of which it has no id, by their names. Different chats of one
name get different ids."""

OpenExport = Callable[..., Export]
"""Called with the path and the format of an export, and its `member`, `room_id`, `timezone`, `day`, `local_zone` and
`rooms` by name."""

MemoryExport = Path | str | bytes | Mapping[str, Any] | Sequence[Any]
"""A file of another system's memories: its path, its content, or what is in it."""


ReadMemories = Callable[..., ImportedMemories]
"""Called with a `MemoryExport`, its `form` and `scope`. Raise `InvalidInput` if nothing of it can be read."""


class Importers(Protocol):
    """A module that finds and reads exports. `FORMATS`: its formats by name."""

    FORMATS: Mapping[str, Any]
    __all__: Sequence[str]
    find: FindExports
    keep_apart: KeepApart
    open_import: OpenExport
    read_memories: ReadMemories
