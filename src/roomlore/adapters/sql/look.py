"""A look at a database that makes no tables and changes none."""

import os
from pathlib import Path

from sqlalchemy import URL, text

from roomlore.adapters.sql.drivers import Connection
from roomlore.adapters.sql.migrations import HEAD
from roomlore.adapters.sql.statements import Statement
from roomlore.adapters.sql.store import SqlStorage, file_of, open_as_it_is, parse
from roomlore.core.errors import StorageUnavailable
from roomlore.core.health import DatabaseLook
from roomlore.ports.coordination import Clock

_TABLES = {
    "sqlite": Statement(lambda: text("SELECT count(*) FROM sqlite_master WHERE name = 'alembic_version'")),
    "postgresql": Statement(lambda: text("SELECT count(*) FROM pg_tables WHERE tablename = 'alembic_version'")),
}
_SIZE = {
    "sqlite": Statement(lambda: text("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")),
    "postgresql": Statement(lambda: text("SELECT pg_database_size(current_database())")),
}
_QUICK = Statement(lambda: text("PRAGMA quick_check(3)"))
_THOROUGH = Statement(lambda: text("PRAGMA integrity_check(3)"))
_CHECKSUMS = Statement(
    lambda: text("SELECT coalesce(sum(checksum_failures), 0) FROM pg_stat_database WHERE datname = current_database()")
)
_VERSION = Statement(lambda: text("SELECT version_num FROM alembic_version"))
_NOW = Statement(lambda: text("SELECT extract(epoch FROM clock_timestamp())"))
_PGVECTOR = Statement(lambda: text("SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'"))
_PATIENCE = "PRAGMA busy_timeout = 2000"
"""In milliseconds: whoever holds the write lock longer is worth telling."""
_SAME = "UPDATE alembic_version SET version_num = version_num"


async def look_at(url: str, *, clock: Clock) -> DatabaseLook:
    """How the database at `url` stands, with one committed write that changes nothing where it is up to date.

    A file that is not there is not made; a folder that it could not be made in raises `StorageUnavailable`, as does a
    database that does not answer or cannot be written to.
    """
    parsed = parse(url)
    path = file_of(parsed)
    if path is not None and not path.exists():
        _check_folder(path)
        return DatabaseLook(engine="SQLite", version=None, head=HEAD, size_bytes=0)
    storage = open_as_it_is(parsed)
    try:
        return await _look(storage, parsed, clock)
    finally:
        await storage.close()


async def check_pages(url: str, *, thorough: bool = False) -> tuple[str, list[str]]:
    """Return the engine's name and what it finds wrong with its own pages, a few faults at most. Change nothing.

    SQLite reads every page, and with `thorough` compares indexes with tables too. PostgreSQL tells how many pages
    failed their checksum so far, where it keeps checksums. Raise `StorageUnavailable` if the database cannot be read.
    """
    parsed = parse(url)
    storage = open_as_it_is(parsed)
    try:
        async with storage.reading() as work:
            engine = work.connection.dialect.name
            if engine == "postgresql":
                failed = int((await work.connection.fetch(_CHECKSUMS))[0][0])
                return engine, [f"{failed} pages failed their checksum"] if failed else []
            rows = await work.connection.fetch(_THOROUGH if thorough else _QUICK)
            return engine, [str(row[0]) for row in rows if row[0] != "ok"]
    finally:
        await storage.close()


def folder_of(url: str) -> Path | None:
    """Where the file of a SQLite database lies, or will; None for one in memory and for PostgreSQL."""
    path = file_of(parse(url))
    return None if path is None else path.resolve().parent


def is_there(url: str) -> bool:
    """Return whether a SQLite database has a file already."""
    path = file_of(parse(url))
    return path is not None and path.exists()


async def _look(storage: SqlStorage, url: URL, clock: Clock) -> DatabaseLook:
    async with storage.outside() as sql:
        name, on_postgres = sql.dialect.name, sql.dialect.name == "postgresql"
        if not on_postgres:
            await sql.run(_PATIENCE)
        has_tables = bool((await sql.fetch(_TABLES[name]))[0][0])
        version = str((await sql.fetch(_VERSION))[0][0]) if has_tables else None
        size = int((await sql.fetch(_SIZE[name]))[0][0])
        write_ms = await _write(sql, clock) if version == HEAD else None
        skew = await _skew(sql, clock) if on_postgres else None
        has_pgvector = on_postgres and bool((await sql.fetch(_PGVECTOR))[0][0])
    return DatabaseLook(
        engine=f"PostgreSQL {url.host or ''}/{url.database or ''}" if on_postgres else "SQLite",
        version=version,
        head=HEAD,
        size_bytes=size,
        write_ms=write_ms,
        skew_seconds=skew,
        has_keys=version == HEAD and await _has_keys(storage),
        has_pgvector=has_pgvector,
    )


async def _write(sql: Connection, clock: Clock) -> float:
    begun = clock.monotonic()
    await sql.run(_SAME)
    return (clock.monotonic() - begun) * 1000


async def _skew(sql: Connection, clock: Clock) -> float:
    """Against the middle of the time that asking took."""
    before = clock.now().timestamp()
    theirs = float((await sql.fetch(_NOW))[0][0])
    return theirs - (before + clock.now().timestamp()) / 2


async def _has_keys(storage: SqlStorage) -> bool:
    async with storage.reading() as uow:
        return await uow.keys.any()


def _check_folder(path: Path) -> None:
    folder = path.resolve().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise StorageUnavailable(f"The folder {folder} is missing or may not be written to: make it, or name another.")
