"""Files of archived messages, in a folder of this machine."""

import os
from pathlib import Path

from roomlore.core.errors import NotFound, StorageUnavailable


class FolderOfArchives:
    """The port `ArchiveFiles` on a folder. It is made with the first file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, name: str, content: bytes) -> None:
        place = self._folder / name
        part = place.with_name(f"{place.name}.part")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            part.replace(place)
            _sync_folder(place.parent)
            _sync_folder(place.parent.parent)
        except OSError as error:
            raise StorageUnavailable("archive_unwritable", file=place, why=error.strerror) from error

    def read(self, name: str) -> bytes:
        place = self._folder / name
        try:
            return place.read_bytes()
        except FileNotFoundError as error:
            raise NotFound("archive_missing", file=place) from error
        except OSError as error:
            raise StorageUnavailable("archive_unreadable", file=place, why=error.strerror) from error

    def delete(self, name: str) -> None:
        place = self._folder / name
        try:
            for path in (place, place.with_name(f"{place.name}.part")):
                path.unlink(missing_ok=True)
            if place.parent.is_dir():
                _sync_folder(place.parent)
        except OSError as error:
            raise StorageUnavailable("archive_undeletable", file=place, why=error.strerror) from error


def _sync_folder(folder: Path) -> None:
    """Make names of files in the folder durable, where the system allows it."""
    if os.name == "nt":
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
