"""Backups: the database, the durable work beside it, and the archives, in one folder."""

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from roomlore.adapters.dbos.locations import location_of
from roomlore.core.errors import Conflict, NotFound, StorageUnavailable
from roomlore.settings import Settings
from roomlore.storage.backup import archived_files, back_up, check_absent, copy_file, file_to_copy, restore

_WORK, _ARCHIVES = "roomlore.dbos.db", "archives"


def write_backup(settings: Settings, folder: Path) -> Path:
    """Write a backup into a new folder, which appears only once it is whole, and return it. Others read and write
    meanwhile. Every message that was acknowledged before the call is in it.

    Durable work is copied first, so that work recorded as done is also done in the data. Archives are copied before the
    database and after it: none that the copy names is missing. Raise `Conflict` if the folder exists, `NotFound`
    without a database or if a file of an archive is missing, `InvalidInput`, `Unavailable`, `StorageUnavailable`.
    """
    file_to_copy(settings.database.database_url)
    if folder.exists():
        raise Conflict("backup_folder_exists", folder=folder)
    part = folder.with_name(f"{folder.name}.part")
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        work = _work_of(settings)
        if work is not None and work.exists():
            copy_file(work, part / _WORK)
        _copy_archives(Path(settings.retention.archive_folder), part / _ARCHIVES)
        named = archived_files(settings.database.database_url, back_up(settings.database.database_url, part))
        _copy_archives(Path(settings.retention.archive_folder), part / _ARCHIVES)
        _check_archives(named, part / _ARCHIVES, settings)
        part.replace(folder)
    except OSError as error:
        raise StorageUnavailable("backup_unwritable", folder=folder, why=error.strerror) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder


def restore_backup(settings: Settings, folder: Path) -> None:
    """Fill a new database, the durable work beside it and the folder of archives from a backup. No roomlore may use
    them meanwhile. If it fails, what it wrote is removed, so that it can be called again. Raise `NotFound` without a
    backup, `Conflict` if something is there already, `Unavailable`, `StorageUnavailable`."""
    if not folder.is_dir():
        raise NotFound("backup_missing", folder=folder)
    archives, work = Path(settings.retention.archive_folder), _work_of(settings)
    if (folder / _ARCHIVES).exists() and any(archives.rglob("*.gz")):
        raise Conflict("archives_exist", folder=archives)
    if work is not None:
        check_absent(work)
    target = file_to_copy(settings.database.database_url)
    if target is not None:
        check_absent(target)
    with ExitStack() as undone:
        try:
            if (folder / _ARCHIVES).exists():
                undone.callback(shutil.rmtree, archives, ignore_errors=True)
                _copy_archives(folder / _ARCHIVES, archives)
            if work is not None and (folder / _WORK).exists():
                undone.callback(work.unlink, missing_ok=True)
                copy_file(folder / _WORK, work)
            if target is not None:
                undone.callback(target.unlink, missing_ok=True)
            restore(settings.database.database_url, folder)
        except OSError as error:
            raise StorageUnavailable("backup_unrestorable", folder=folder, why=error.strerror) from error
        undone.pop_all()


def _work_of(settings: Settings) -> Path | None:
    """Return the file of durable work; None if it is in the database itself."""
    location = location_of(settings.database.database_url)
    return Path(str(location.url.database)) if location.on_a_file else None


def _check_archives(named: Sequence[str], copies: Path, settings: Settings) -> None:
    missing = [file for file in named if not (copies / file).exists()]
    if missing:
        place = Path(settings.retention.archive_folder).absolute()
        raise NotFound("archives_missing", folder=place, count=len(missing), file=missing[0])


def _copy_archives(source: Path, target: Path) -> None:
    """Copy files that are not there yet. An archive is never changed, and may be deleted meanwhile."""
    for file in sorted(source.glob("*/*.jsonl.gz")):
        copy = target / file.parent.name / file.name
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            try:
                shutil.copy2(file, copy)
            except FileNotFoundError:
                copy.unlink(missing_ok=True)
