"""Opening a database, and units of work on it.

SQLite runs in WAL mode with `synchronous = NORMAL`: a killed process loses nothing that was committed; a power cut or a
crash of the operating system may lose the last transactions but never damages the file. Each process writes over one
connection and reads over several. A database in memory has one connection, used by one call at a time.

Every connection is in autocommit. A reading unit of work opens no transaction: each of its queries sees what was
committed when the query began, on both engines. A writing one begins, and holds SQLite's write lock from its start.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlalchemy import URL, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import StaticPool

from roomlore.adapters.sql.connections import WAIT_SECONDS, Connections, to_the_end
from roomlore.adapters.sql.drivers import Connection, translated
from roomlore.adapters.sql.unit_of_work import SqlUnitOfWork
from roomlore.adapters.sql.upgrade import upgrade
from roomlore.core.errors import InvalidInput, RoomloreError, StorageUnavailable

_FORMS = "use sqlite:///path, sqlite:// (memory), postgresql://user@host/name, or a path that ends in .db"
_POSTGRES_NAMES = {"postgres", "postgresql", "postgresql+psycopg"}
_SQLITE_NAMES = {"sqlite", "sqlite+aiosqlite"}
_READERS = 4
_POSTGRES_POOL = 10
_UNITS_IN_MEMORY = 1_000
"""Units of work on a database in memory share its one connection."""
_WRITING_A_FILE = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA cache_size = -65536",
    "PRAGMA wal_autocheckpoint = 4000",
)
"""64 MiB of pages, so that the indexes of busy rooms stay in memory, and fewer, larger copies out of the log."""
_READING_A_FILE = ("PRAGMA query_only = ON", "PRAGMA cache_size = -16384")
_ALONG_INDEXES = (
    *(
        f"SET {setting} = off"
        for setting in ("jit", "enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin")
    ),
    "SET plan_cache_mode = force_generic_plan",
)
"""Every query here is meant to walk an index; told so, PostgreSQL does even before it has statistics. So no values call
for a plan of their own, and planning, which took most of a short query's time, is done once."""


class SqlStorage:
    """The port `Storage` on SQLite or PostgreSQL. Made by `connect`; belongs to the event loop it was made on."""

    def __init__(self, readers: AsyncEngine, writers: AsyncEngine) -> None:
        self._gate = asyncio.Lock() if isinstance(writers.pool, StaticPool) else None
        if self._gate:
            self._readers = Connections(readers, most=_UNITS_IN_MEMORY, gate=self._gate)
            self._writers = Connections(writers, most=1)
        elif readers is writers:
            self._readers = self._writers = Connections(writers, most=_POSTGRES_POOL)
        else:
            self._readers = Connections(readers, most=_READERS)
            self._writers = Connections(writers, most=1)
        self._closed = False

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[SqlUnitOfWork]:
        """A view for reading."""
        self._check_open()
        async with self._readers.one() as connection:
            yield SqlUnitOfWork(connection, writing=False)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[SqlUnitOfWork]:
        """A view for writing, in one transaction."""
        self._check_open()
        async with self._gate or nullcontext(), self._writers.one() as connection:
            try:
                await connection.run("BEGIN IMMEDIATE" if connection.dialect.name == "sqlite" else "BEGIN")
                yield SqlUnitOfWork(connection, writing=True)
                await connection.run("COMMIT")
            except BaseException:
                await to_the_end(_rollback(connection))
                raise

    @asynccontextmanager
    async def outside(self) -> AsyncIterator[Connection]:
        """The connection that writes, with no transaction begun: for what a database does to itself."""
        self._check_open()
        async with self._gate or nullcontext(), self._writers.one() as connection:
            yield connection

    async def ping(self) -> None:
        """Returns when the database answers."""
        self._check_open()
        async with self._readers.one() as connection:
            await connection.run("SELECT 1")

    async def try_writing(self) -> None:
        """Commit a write that changes nothing."""
        async with self.writing() as work:
            await work.connection.run("UPDATE alembic_version SET version_num = version_num")

    async def close(self) -> None:
        """Closes every connection. What asks for one afterwards gets `StorageUnavailable`."""
        self._closed = True
        await self._readers.close()
        await self._writers.close()

    def _check_open(self) -> None:
        """A pool that was disposed of would open new connections, which nobody closes."""
        if self._closed:
            raise StorageUnavailable("This roomlore is closed; open it again.")


async def _rollback(connection: Connection) -> None:
    """Where this fails the connection is `broken`, and its end is the transaction's."""
    with suppress(RoomloreError):
        await connection.run("ROLLBACK")


async def connect(url: str) -> SqlStorage:
    """Opens a database, makes it if it is new, and brings its schema up to date.

    `url`: `sqlite:///path`, `sqlite://` or `sqlite:///:memory:` (gone when closed), `postgresql://...`, or a bare path
    that ends in .db. Raises `InvalidInput` for another form or a missing extra, `StorageUnavailable` where the database
    does not answer or was written by a newer roomlore.
    """
    parsed = parse(url)
    readers, writers = _engines(parsed)
    storage = SqlStorage(readers, writers)
    try:
        with translated(file_of(parsed)):
            await _try(parsed)
            await upgrade(writers)
    except BaseException:
        await storage.close()
        raise
    return storage


def open_as_it_is(url: URL) -> SqlStorage:
    """A database opened without making or upgrading its tables; `url` from `parse`."""
    return SqlStorage(*_engines(url))


def file_of(url: URL) -> Path | None:
    """The file of a SQLite database; None for one in memory and for PostgreSQL."""
    if url.drivername not in _SQLITE_NAMES or url.database in (None, "", ":memory:") or url.query:
        return None
    return Path(str(url.database))


async def _try(url: URL) -> None:
    """Opens a file once, plainly: where that fails, aiosqlite leaves a thread behind that may outlive the loop."""
    if url.drivername in _SQLITE_NAMES and url.database and not url.query:
        await asyncio.to_thread(lambda: sqlite3.connect(url.database or "").close())


def parse(url: str) -> URL:
    """Raises `InvalidInput` for what names no database of a kind that is supported."""
    if not isinstance(url, str):
        raise InvalidInput(f"A database address is a string, not {url!r:.60}: {_FORMS}.")
    if "://" not in url and url.endswith(".db"):
        return URL.create("sqlite", database=url)
    try:
        parsed = make_url(url)
    except ArgumentError as exc:
        raise InvalidInput(f"This is no database address: {_FORMS}.") from exc
    if parsed.drivername not in _SQLITE_NAMES | _POSTGRES_NAMES:
        raise InvalidInput(f"Databases of the kind {parsed.drivername!r} are not supported: {_FORMS}.")
    return parsed


def _engines(url: URL) -> tuple[AsyncEngine, AsyncEngine]:
    """Those that read and those that write."""
    return _sqlite(url) if url.drivername in _SQLITE_NAMES else _postgres(url)


def _sqlite(url: URL) -> tuple[AsyncEngine, AsyncEngine]:
    url = url.set(drivername="sqlite+aiosqlite")
    options: dict[str, Any] = {
        "pool_reset_on_return": None,
        "connect_args": {"timeout": WAIT_SECONDS, "isolation_level": None},
    }
    if url.database in (None, "", ":memory:"):
        engine = create_async_engine(url, poolclass=StaticPool, **options)
        _on_connect(engine, "PRAGMA foreign_keys = ON")
        return engine, engine
    waiting = {"max_overflow": 0, "pool_timeout": WAIT_SECONDS}
    writers = create_async_engine(url, pool_size=1, **waiting, **options)
    _on_connect(writers, *_WRITING_A_FILE)
    readers = create_async_engine(url, pool_size=_READERS, **waiting, **options)
    _on_connect(readers, *_READING_A_FILE)
    return readers, writers


def _on_connect(engine: AsyncEngine, *settings: str) -> None:
    def prepare(connection: Any, _record: Any) -> None:
        try:
            cursor = connection.cursor()
            for setting in settings:
                cursor.execute(setting)
            cursor.close()
            connection.commit()
        except BaseException:
            connection.close()
            raise

    event.listen(engine.sync_engine, "connect", prepare)


def _postgres(url: URL) -> tuple[AsyncEngine, AsyncEngine]:
    if find_spec("psycopg") is None:
        raise InvalidInput("PostgreSQL needs the extra: pip install 'roomlore[postgres]'.")
    from roomlore.adapters.sql import half_vectors

    half_vectors.register()
    engine = create_async_engine(
        url.set(drivername="postgresql+psycopg"),
        isolation_level="AUTOCOMMIT",
        paramstyle="format",
        pool_size=_POSTGRES_POOL,
        pool_timeout=WAIT_SECONDS,
        pool_reset_on_return=None,
        connect_args={"connect_timeout": 10},
    )
    _on_connect(engine, *_ALONG_INDEXES)
    return engine, engine
