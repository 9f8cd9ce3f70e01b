"""Copies of a database while it is written to, and filling a new one from a copy. Calls block.

SQLite is copied with its backup interface, PostgreSQL by `pg_dump`. Both give the state of one instant.
"""

import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import NamedTemporaryFile

from sqlalchemy import URL, create_engine, inspect, select
from sqlalchemy.exc import SQLAlchemyError

from roomlore.core.errors import Conflict, InvalidInput, NotFound, StorageUnavailable, Unavailable
from roomlore.storage.opening import file_of, parse
from roomlore.storage.schema import archives

FILE, DUMP = "roomlore.db", "roomlore.dump"
_WAIT_SECONDS = 60.0
_SHOWN = 400
_ESCAPED = re.compile(r"[:\\]")


def copy_file(source: Path, target: Path) -> None:
    """Copy a SQLite database as it is at one instant, while others read and write it. Raise `StorageUnavailable`."""
    try:
        with (
            closing(
                sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True, timeout=_WAIT_SECONDS)
            ) as opened,
            closing(sqlite3.connect(target)) as copy,
        ):
            opened.backup(copy)
        with target.open("rb+") as written:
            os.fsync(written.fileno())
    except (sqlite3.Error, OSError) as error:
        raise StorageUnavailable("backup_copy_failed", path=source, target=target, why=error) from error


def back_up(url: str, folder: Path) -> Path:
    """Write a copy of the database into the folder and return its path. Raise `InvalidInput` for a database in memory,
    `NotFound` if there is none, `Unavailable` if `pg_dump` is missing, `StorageUnavailable`."""
    parsed, source = parse(url), file_to_copy(url)
    if source is None:
        dump = folder / DUMP
        _run(parsed, "pg_dump", ["--format=custom", f"--file={dump}"])
        return dump
    if not source.exists():
        raise NotFound("database_missing", path=source)
    copy_file(source, folder / FILE)
    return folder / FILE


def archived_files(url: str, copy: Path) -> list[str]:
    """Return the files of archives that a copy names; those that the database names now if it is a PostgreSQL database,
    whose dump cannot be asked. Raise `StorageUnavailable`."""
    own = file_to_copy(url) is not None
    engine = create_engine(f"sqlite:///{copy}" if own else parse(url).set(drivername="postgresql+psycopg"))
    try:
        with engine.connect() as connection:
            if not inspect(connection).has_table(archives.name):
                return []
            return list(connection.scalars(select(archives.c.file).where(archives.c.phase == "kept")))
    except SQLAlchemyError as error:
        raise StorageUnavailable("archive_names_unreadable") from error
    finally:
        engine.dispose()


def restore(url: str, folder: Path) -> None:
    """Fill a new database from a copy. A SQLite file must not exist; a PostgreSQL database must be empty. Raise
    `NotFound` without a copy of this kind, `Conflict` if the file exists, `Unavailable`, `StorageUnavailable`."""
    parsed, target = parse(url), file_to_copy(url)
    copy = folder / (DUMP if target is None else FILE)
    if not copy.is_file():
        raise NotFound("backup_copy_missing", path=copy)
    if target is None:
        _run(parsed, "pg_restore", ["--no-owner", "--exit-on-error", "--single-transaction", str(copy)])
    else:
        check_absent(target)
        copy_file(copy, target)


def check_absent(target: Path) -> None:
    """Raise `Conflict` if the file of a SQLite database, or what belongs to it, is there."""
    for path in (target, target.with_name(f"{target.name}-wal"), target.with_name(f"{target.name}-shm")):
        if path.exists():
            raise Conflict("database_exists", path=path)


def file_to_copy(url: str) -> Path | None:
    """Return the file of a SQLite database, None for PostgreSQL. Raise `InvalidInput` for a database in memory."""
    parsed = parse(url)
    path = file_of(parsed)
    if path is None and parsed.drivername.startswith("sqlite"):
        raise InvalidInput("backup_in_memory")
    return path


def _run(url: URL, program: str, words: Sequence[str]) -> None:
    """Run a program of PostgreSQL for this database. The password is given in a file that only this user can read,
    since arguments can be read by others."""
    if shutil.which(program) is None:
        raise Unavailable("backup_program_missing", program=program)
    with NamedTemporaryFile("w", encoding="utf-8", prefix="roomlore-", suffix=".pgpass") as passwords:
        place = url.set(drivername="postgresql", password=None)
        if url.password:
            escaped = _ESCAPED.sub(r"\\\g<0>", str(url.password))
            passwords.write(f"*:*:*:*:{escaped}\n")
            passwords.flush()
            place = place.update_query_dict({"passfile": passwords.name})
        command = [program, f"--dbname={place.render_as_string(hide_password=False)}", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise StorageUnavailable("backup_program_failed", program=program, why=done.stderr.strip()[:_SHOWN])
