"""Inspection of a database without changing it, and the release of unused space."""

import asyncio
import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from time import monotonic

from sqlalchemy import URL, text

from roomlore.core.errors import StorageUnavailable
from roomlore.core.health import DatabaseLook
from roomlore.storage.engine import Connection, Statement
from roomlore.storage.migrations import HEAD
from roomlore.storage.migrations.first_version import FIRST
from roomlore.storage.opening import OF_ROOMS, file_of, open_as_it_is, parse, taken
from roomlore.storage.schema import metadata
from roomlore.storage.store import Storage
from roomlore.storage.values import ATTACHMENTS

_TABLES = {
    "sqlite": Statement(
        lambda: text(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"
        )
    ),
    "postgresql": Statement(
        lambda: text(
            "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() "
            "UNION ALL SELECT viewname FROM pg_views WHERE schemaname = current_schema()"
        )
    ),
}
_ROOMS = {
    "sqlite": Statement(lambda: text("SELECT name FROM pragma_table_info('rooms')")),
    "postgresql": Statement(
        lambda: text("SELECT attname FROM pg_attribute WHERE attrelid = to_regclass('rooms') AND attnum > 0")
    ),
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
_PATIENCE_SECONDS = 2
"""A longer write lock is worth reporting."""
_SAME = "UPDATE alembic_version SET version_num = version_num"


async def look_at(url: str, *, now: Callable[[], datetime]) -> DatabaseLook:
    """Return the state of the database at `url`. Makes one committed write that changes nothing if the schema is up to
    date.

    Does not create a missing file. Raises `StorageUnavailable` if its folder does not allow creating one, and for a
    database that does not answer or cannot be written to.
    """
    parsed = parse(url)
    path = file_of(parsed)
    if path is not None and not path.exists():
        _check_folder(path)
        offers = frozenset({"sql"})
        return DatabaseLook(engine="SQLite", version=None, first=FIRST, head=HEAD, size_bytes=0, offers=offers)
    storage = open_as_it_is(parsed, patience_seconds=_PATIENCE_SECONDS)
    try:
        return await _look(storage, parsed, now)
    finally:
        await storage.close()


async def check_pages(url: str, *, thorough: bool = False) -> tuple[str, list[str]]:
    """Return the engine's name and the faults in its own pages, a few at most. Changes nothing.

    SQLite reads every page, and with `thorough` compares indexes with tables too. PostgreSQL reports the checksum
    failures counted so far, if checksums are enabled. Raises `StorageUnavailable` if the database cannot be read.
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
    """Return the folder of a SQLite database's file, existing or not; None for a database in memory and for
    PostgreSQL."""
    path = file_of(parse(url))
    return None if path is None else path.resolve().parent


def is_there(url: str) -> bool:
    """Return True if a SQLite database has a file."""
    path = file_of(parse(url))
    return path is not None and path.exists()


async def _look(storage: Storage, url: URL, now: Callable[[], datetime]) -> DatabaseLook:
    async with storage.outside() as sql:
        name, on_postgres = sql.dialect.name, sql.dialect.name == "postgresql"
        tables = sorted(str(row[0]) for row in await sql.fetch(_TABLES[name]))
        is_ours = "alembic_version" in tables and OF_ROOMS.issubset(row[0] for row in await sql.fetch(_ROOMS[name]))
        version = str((await sql.fetch(_VERSION))[0][0]) if is_ours else None
        size = int((await sql.fetch(_SIZE[name]))[0][0])
        write_ms = await _write(sql) if version == HEAD else None
        skew = await _skew(sql, now) if on_postgres else None
        has_pgvector = on_postgres and bool((await sql.fetch(_PGVECTOR))[0][0])
    return DatabaseLook(
        engine=f"PostgreSQL {url.host or ''}/{url.database or ''}" if on_postgres else "SQLite",
        version=version,
        first=FIRST,
        head=HEAD,
        size_bytes=size,
        foreign=() if is_ours else tuple(tables),
        taken=() if is_ours else tuple(taken(tables, name)),
        write_ms=write_ms,
        skew_seconds=skew,
        has_keys=version == HEAD and await _has_keys(storage),
        attachments_wait=version == HEAD and await _any_attachments(storage),
        offers=frozenset({"sql", "pgvector"} if has_pgvector else {"sql"}),
    )


async def _write(sql: Connection) -> float:
    begun = monotonic()
    await sql.run(_SAME)
    return (monotonic() - begun) * 1000


async def _skew(sql: Connection, now: Callable[[], datetime]) -> float:
    """Return the difference of the clocks, compared with the middle of the query's duration."""
    before = now().timestamp()
    theirs = float((await sql.fetch(_NOW))[0][0])
    return theirs - (before + now().timestamp()) / 2


async def _has_keys(storage: Storage) -> bool:
    async with storage.reading() as uow:
        return await uow.keys.any()


async def _any_attachments(storage: Storage) -> bool:
    async with storage.reading() as uow:
        return await uow.progress.any_noted(work=ATTACHMENTS)


def _check_folder(path: Path) -> None:
    folder = path.resolve().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise StorageUnavailable("folder_unwritable", path=folder)


_TRIES = 20
_PAUSE_SECONDS = 0.25
MERGE_WORDS = "INSERT INTO message_index (message_index) VALUES ('optimize')"
_EMPTY_LOG = Statement(lambda: text("PRAGMA wal_checkpoint(TRUNCATE)"))


async def compact_database(storage: Storage) -> None:
    """Free unused pages and truncate the write-ahead log, so that no removed row can be read in the database's files.
    Waits for other writers, and blocks them meanwhile. SQLite rewrites its file; PostgreSQL makes the space of dead
    rows reusable in the tables."""
    async with storage.outside() as connection:
        if connection.dialect.name == "sqlite":
            await connection.run(MERGE_WORDS)
            await connection.run("VACUUM")
            await _empty_log(connection)
        else:
            await connection.run(f"VACUUM {', '.join(table.name for table in metadata.sorted_tables)}")


async def _empty_log(connection: Connection) -> None:
    """Empty the log. A concurrent reader delays it for a moment."""
    for _ in range(_TRIES):
        busy, *_rest = (await connection.fetch(_EMPTY_LOG))[0]
        if not busy:
            return
        await asyncio.sleep(_PAUSE_SECONDS)
    raise StorageUnavailable("wal_busy")
