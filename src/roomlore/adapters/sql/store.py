"""The port `Storage` on SQLite and PostgreSQL: opening a database, its transactions, and the repositories of one
transaction, each built when it is first used."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, nullcontext, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, StaticPool, create_engine

from roomlore.adapters.sql.archives import SqlArchives
from roomlore.adapters.sql.connections import Connections, PostgresSource
from roomlore.adapters.sql.engine import WAIT_SECONDS, Connection, Locks, shielded, the_tenant, translated
from roomlore.adapters.sql.every_row import StoredRows
from roomlore.adapters.sql.group_commit import SAVEPOINT, UNDO, GroupCommit
from roomlore.adapters.sql.integrity import MemoryAudit, MessageAudit
from roomlore.adapters.sql.memories import EvolutionRecords, MemoryReading, NumberedReading
from roomlore.adapters.sql.memory_log import MemoryLog
from roomlore.adapters.sql.messages import MessageReading
from roomlore.adapters.sql.outbox import MEMORIES_DUE, MESSAGES_DUE, IndexStates, SqlOutbox
from roomlore.adapters.sql.people import PeopleInRooms, Rewriting
from roomlore.adapters.sql.postgres import POSTGRES_POOL, SQLITE_NAMES, parse, postgres_engine
from roomlore.adapters.sql.related import ThreadReading
from roomlore.adapters.sql.rooms import ImportPositions, SqlKeys, SqlRooms
from roomlore.adapters.sql.sessions import SqlSessions
from roomlore.adapters.sql.sqlite import Driver, OpenFile, Pace, SqliteSource, opened
from roomlore.adapters.sql.tenants import SqlTenants
from roomlore.adapters.sql.threads import SqlCorrections, SqlTitles
from roomlore.adapters.sql.upgrade import upgrade
from roomlore.adapters.sql.usage import SqlUsage
from roomlore.adapters.sql.words import WordReading
from roomlore.adapters.sql.work import DueRooms, Leases, Watermarks
from roomlore.adapters.sql.writer import MessageWriting
from roomlore.core.errors import RoomloreError, StorageUnavailable

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine


class SqlMessages(MessageReading, ThreadReading, WordReading, MessageWriting):
    """The port `Messages`."""


class SqlMemories(MemoryReading, NumberedReading, EvolutionRecords, MemoryLog):
    """The port `Memories`."""


class SqlProgress(IndexStates, DueRooms, Leases, Watermarks, ImportPositions):
    """The port `Progress`."""

    @cached_property
    def outbox(self) -> SqlOutbox:
        return SqlOutbox(self._sql, self._locks, self._of, MESSAGES_DUE)

    @cached_property
    def memory_outbox(self) -> SqlOutbox:
        return SqlOutbox(self._sql, self._locks, self._of, MEMORIES_DUE)


class SqlMaintenance(PeopleInRooms, Rewriting, StoredRows, MessageAudit, MemoryAudit):
    """The port `Maintenance`."""


class SqlUnitOfWork:
    """The port `UnitOfWork`. `connection`: for other data of this package in the database."""

    def __init__(self, connection: Connection, locks: Locks, tenant: str | None) -> None:
        self.connection = connection
        self._locks = locks
        self._of = tenant

    @property
    def tenant(self) -> str:
        return the_tenant(self._of)

    def of(self, tenant: str) -> "SqlUnitOfWork":
        return SqlUnitOfWork(self.connection, self._locks, tenant)

    @cached_property
    def rooms(self) -> SqlRooms:
        return SqlRooms(self.connection, self._locks, self._of)

    @cached_property
    def messages(self) -> SqlMessages:
        return SqlMessages(self.connection, self._locks, self._of)

    @cached_property
    def corrections(self) -> SqlCorrections:
        return SqlCorrections(self.connection, self._locks, self._of)

    @cached_property
    def titles(self) -> SqlTitles:
        return SqlTitles(self.connection, self._locks, self._of)

    @cached_property
    def sessions(self) -> SqlSessions:
        return SqlSessions(self.connection, self._locks, self._of)

    @cached_property
    def memories(self) -> SqlMemories:
        return SqlMemories(self.connection, self._locks, self._of)

    @cached_property
    def progress(self) -> SqlProgress:
        return SqlProgress(self.connection, self._locks, self._of)

    @cached_property
    def usage(self) -> SqlUsage:
        return SqlUsage(self.connection, self._locks, self._of)

    @cached_property
    def keys(self) -> SqlKeys:
        return SqlKeys(self.connection, self._locks, self._of)

    @cached_property
    def archives(self) -> SqlArchives:
        return SqlArchives(self.connection, self._locks, self._of)

    @cached_property
    def tenants(self) -> SqlTenants:
        return SqlTenants(self.connection, self._locks, self._of)

    @cached_property
    def maintenance(self) -> SqlMaintenance:
        return SqlMaintenance(self.connection, self._locks, self._of)


_READERS = 4
_UNITS_IN_MEMORY = 1_000
"""Units of work that share the one connection of a database in memory."""
_AGAIN_SECONDS = 0.02
_WAL = "PRAGMA journal_mode = WAL"
_WRITING_A_FILE = (
    _WAL,
    "PRAGMA synchronous = NORMAL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA cache_size = -65536",
    "PRAGMA wal_autocheckpoint = 4000",
)
"""64 MiB of pages keep the indexes of busy rooms in memory and make copies from the log fewer and larger."""
_GROWS = """INSERT OR REPLACE INTO import_positions (tenant, source, position, saved_at)
VALUES ('', '', hex(zeroblob(32768)), 0)"""
"""A write of 64 KiB, which is undone."""
_WRITING_IN_MEMORY = ("PRAGMA foreign_keys = ON",)
_READING_A_FILE = ("PRAGMA query_only = ON", "PRAGMA cache_size = -16384")


class SqlStorage:
    """The port `Storage` on SQLite or PostgreSQL, created by `connect`. Belongs to the event loop on which it was
    created."""

    def __init__(
        self,
        readers: Connections[Any],
        writers: Connections[Any],
        *,
        gate: asyncio.Lock | None = None,
        file: OpenFile | None = None,
    ) -> None:
        self._file = file
        self._readers = readers
        self._writers = writers
        self._gate = gate
        self._group = None if readers is writers or gate else GroupCommit(self._transaction)
        self._closed = False

    def reading(self, tenant: str | None = None) -> "_Reading":
        """Yield a unit of work for reading."""
        return _Reading(self._readers, self._check_open, tenant)

    @asynccontextmanager
    async def writing(self, tenant: str | None = None, *, brief: bool = False) -> AsyncIterator[SqlUnitOfWork]:
        """Yield a unit of work for writing, in one transaction; a brief one may share it."""
        self._check_open()
        if brief and self._group is not None:
            async with self._group.unit() as connection:
                yield SqlUnitOfWork(connection, Locks(writing=True), tenant)
            return
        async with self._transaction() as connection:
            yield SqlUnitOfWork(connection, Locks(writing=True), tenant)
            await connection.run("COMMIT")

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Connection]:
        """Yield a connection inside a transaction, which the caller commits."""
        async with self._gate or nullcontext(), self._writers.one() as connection:
            try:
                await connection.run("BEGIN IMMEDIATE" if connection.dialect.name == "sqlite" else "BEGIN")
                yield connection
            except BaseException:
                await shielded(_rollback(connection))
                raise

    @asynccontextmanager
    async def outside(self) -> AsyncIterator[Connection]:
        """Yield the connection that writes, without a transaction, for maintenance commands."""
        self._check_open()
        async with self._gate or nullcontext(), self._writers.one() as connection:
            yield connection

    async def ping(self) -> None:
        """Return when the database answers."""
        self._check_open()
        if self._file:
            self._file.check()
        async with self._readers.one() as connection:
            await connection.run("SELECT 1")

    async def try_writing(self) -> None:
        """Commit a write that changes nothing. A file must have room for more: a full disk may still take small writes
        in the place of earlier ones."""
        if self._file:
            self._file.check_space()
        async with self.writing() as work:
            if self._file:
                await work.connection.run(SAVEPOINT)
                await work.connection.run(_GROWS)
                await work.connection.run(UNDO)
            await work.connection.run("UPDATE alembic_version SET version_num = version_num")

    async def close(self) -> None:
        """Close every connection. Later requests for one raise `StorageUnavailable`."""
        self._closed = True
        await self._readers.close()
        await self._writers.close()

    def _check_open(self) -> None:
        """Raise an error after `close`. A disposed pool would open new connections that nobody closes."""
        if self._closed:
            raise StorageUnavailable("lore_closed")


class _Reading:
    """A unit of work for reading."""

    __slots__ = ("_check_open", "_held", "_readers", "_tenant")

    def __init__(self, readers: Connections[Any], check_open: Callable[[], None], tenant: str | None) -> None:
        self._readers = readers
        self._check_open = check_open
        self._tenant = tenant

    async def __aenter__(self) -> SqlUnitOfWork:
        self._check_open()
        self._held = await self._readers.take()
        return SqlUnitOfWork(self._held.connection, Locks(writing=False), self._tenant)

    async def __aexit__(self, *_: object) -> None:
        await self._readers.give_back(self._held)


async def _rollback(connection: Connection) -> None:
    """Roll back. If this fails the connection is `broken`, and closing it ends the transaction."""
    with suppress(RoomloreError):
        await connection.run("ROLLBACK")


async def connect(url: str) -> SqlStorage:
    """Open a database. Create it if it is new, and bring its schema up to date.

    `url`: `sqlite:///path`, `sqlite://` or `sqlite:///:memory:` (lost when closed), `postgresql://...`, or a path that
    ends in .db. Raises `InvalidInput` for another form or a missing extra, and `StorageUnavailable` if the database
    does not answer or was written by a newer roomlore.
    """
    parsed = parse(url)
    if parsed.drivername not in SQLITE_NAMES:
        return await _connect_postgres(parsed)
    if _is_in_memory(parsed):
        driver = Driver(opened(parsed, *_WRITING_IN_MEMORY))
        with translated():
            await asyncio.to_thread(_upgrade, driver.raw)
        return _in_memory(parsed, driver)
    with translated(file_of(parsed)):
        await asyncio.to_thread(_prepare, parsed)
    return _file(parsed)


def open_as_it_is(url: URL, *, patience_seconds: float = WAIT_SECONDS) -> SqlStorage:
    """Return a database opened without creating or upgrading its tables. `url`: from `parse`. `patience_seconds`: the
    longest wait for another program's lock on a SQLite file."""
    if url.drivername not in SQLITE_NAMES:
        return _pooled(postgres_engine(url))
    if _is_in_memory(url):
        return _in_memory(url, Driver(opened(url, *_WRITING_IN_MEMORY)))
    return _file(url, patience_seconds)


def file_of(url: URL) -> Path | None:
    """Return the file of a SQLite database; None for one in memory and for PostgreSQL."""
    if url.drivername not in SQLITE_NAMES or _is_in_memory(url) or url.query:
        return None
    return Path(str(url.database))


def is_in_memory(url: str) -> bool:
    """Return True if no other process can see the database at this URL."""
    parsed = parse(url)
    return parsed.drivername in SQLITE_NAMES and (_is_in_memory(parsed) or bool(parsed.query))


def _is_in_memory(url: URL) -> bool:
    return url.database in (None, "", ":memory:")


def _prepare(url: URL) -> None:
    """Switch a file to WAL mode and bring its schema up to date."""
    if not url.query:
        _use_wal(str(url.database))
    with closing(opened(url, *_WRITING_A_FILE)) as raw:
        _upgrade(raw)


def _upgrade(raw: sqlite3.Connection) -> None:
    engine = create_engine("sqlite://", creator=lambda: raw, poolclass=StaticPool, pool_reset_on_return=None)
    with engine.connect() as connection:
        upgrade(connection)


def _use_wal(database: str) -> None:
    """Switch a file to WAL mode. SQLite does not wait for its lock if two connections switch at once: one is told at
    once that the database is locked, and has to try again."""
    until = time.monotonic() + WAIT_SECONDS
    with closing(sqlite3.connect(database, timeout=WAIT_SECONDS)) as connection:
        while True:
            try:
                connection.execute(_WAL)
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
            time.sleep(_AGAIN_SECONDS)


def _in_memory(url: URL, driver: Driver) -> SqlStorage:
    gate, pace = asyncio.Lock(), Pace(connections=1)
    readers = SqliteSource(url, pace=pace, shared=driver, gate=gate)
    writers = SqliteSource(url, pace=pace, shared=driver)
    return SqlStorage(Connections(readers, most=_UNITS_IN_MEMORY), Connections(writers, most=1), gate=gate)


def _file(url: URL, patience_seconds: float = WAIT_SECONDS) -> SqlStorage:
    pace = Pace(connections=_READERS + 1)
    file = file_of(url)
    checked = OpenFile(file) if file else None
    readers, writers = (
        SqliteSource(
            url,
            settings,
            pace=pace,
            file=file,
            checked=checked,
            writes=settings is _WRITING_A_FILE,
            patience_seconds=patience_seconds,
        )
        for settings in (_READING_A_FILE, _WRITING_A_FILE)
    )
    return SqlStorage(Connections(readers, most=_READERS), Connections(writers, most=1), file=checked)


async def _connect_postgres(url: URL) -> SqlStorage:
    engine = postgres_engine(url)
    storage = _pooled(engine)
    try:
        with translated():
            async with engine.connect() as connection:
                await connection.run_sync(upgrade)
    except BaseException:
        await storage.close()
        raise
    return storage


def _pooled(engine: "AsyncEngine") -> SqlStorage:
    pool = Connections(PostgresSource(engine), most=POSTGRES_POOL)
    return SqlStorage(pool, pool)
