"""Connections to SQLite: brief statements run on the event loop, all others in a thread.

For a short statement a hop to a thread and back costs more than the statement, most of all on a busy processor. So a
read is given a moment on the event loop first. One that takes longer is interrupted and runs in a thread.
"""

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, closing, suppress
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic, perf_counter, thread_time
from typing import Any, TypeVar

from sqlalchemy import URL, Dialect
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

from roomlore.core.errors import StorageUnavailable
from roomlore.storage.engine import (
    DRIVER_ERRORS,
    FEW_CHARACTERS,
    FEW_ROWS,
    SAVEPOINT,
    UNDO,
    WAIT_SECONDS,
    Change,
    Compiled,
    Row,
    Statement,
    is_full,
    shielded,
    translated,
    translation,
)

T = TypeVar("T")

_READ_SECONDS = 0.002
"""A read may keep the event loop for this long, in processor time: on a busy machine the system may stop the process in
the middle of the shortest read."""
_WRITE_SECONDS = 0.1
"""A disk on which a brief commit took longer keeps the next ones off the event loop."""
_WAITED = 10
"""So many times as long it may take on the clock, as it may wait for the disk."""
_TURN_SECONDS = 0.003
"""The event loop has its turn when brief statements have run for this long one after another."""
_STEPS = 2_000
"""Steps of SQLite's machine between two looks at the clock: a fraction of a millisecond."""
_RUNS_ASIDE = 50
"""A read that took too long goes to a thread at once this many times."""
_AGAIN_SECONDS = 0.002
_STATEMENTS = 512
"""Prepared statements that a connection keeps."""
_COPIED_AFTER = 200
"""Brief commits after which the write-ahead log is copied into the database. SQLite would do it in a commit, once the
log is several times as long."""
_COPY = "PRAGMA wal_checkpoint(PASSIVE)"
_DIALECT = SQLiteDialect_pysqlite(paramstyle="qmark")


class Pace:
    """Decides for the connections of one database which statements run on the event loop, and when it has its turn.

    `threads` run the others. They end when the last connection does. `copying`: opens the connection that copies the
    write-ahead log.
    """

    def __init__(self, *, connections: int, copying: Callable[[], sqlite3.Connection] | None = None) -> None:
        self.threads = ThreadPoolExecutor(connections, thread_name_prefix="roomlore-sqlite")
        self._aside: dict[str, int] = {}
        self._turned = 0.0
        self._copying = copying
        self._commits = 0
        self._copied: asyncio.Future[None] | None = None

    def is_slow(self, sql: str) -> bool:
        """Return True if the read took too long lately."""
        left = self._aside.get(sql, 0)
        if left:
            self._aside[sql] = left - 1
        return left > 0

    def was_slow(self, sql: str) -> None:
        self._aside[sql] = _RUNS_ASIDE

    def committed(self) -> None:
        """Count a brief commit, and have the log copied by a thread if it is time."""
        self._commits += 1
        if self._commits >= _COPIED_AFTER and self._copying and (self._copied is None or self._copied.done()):
            self._commits = 0
            self._copied = _in_thread(self.threads, partial(_copy_log, self._copying))

    async def settled(self) -> None:
        """Return when no thread copies the log."""
        if self._copied is not None:
            await shielded(self._copied)

    async def turn(self) -> None:
        """Let others run if brief statements have kept the event loop for long."""
        if perf_counter() - self._turned > _TURN_SECONDS:
            self._turned = perf_counter()  # before it, so that only one of many requests waits
            await asyncio.sleep(0)


class Driver:
    """A connection of Python's sqlite3, and the time that its statement may keep the event loop."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self.raw = raw
        self._allowed = inf
        self._begun = 0.0
        self._begun_working: float | None = None
        self.was_late = False
        self._watch()

    def here(self, work: Callable[[sqlite3.Connection], T], seconds: float) -> T:
        """Do the work in this thread. After so many seconds its statement fails, and `was_late` is True."""
        self.was_late = False
        self._allowed = seconds
        self._begun, self._begun_working = perf_counter(), None
        return work(self.raw)

    def unwatched(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do the work without a look at the clock, for which another thread would need the interpreter."""
        self.raw.set_progress_handler(None, 0)
        try:
            return work(self.raw)
        finally:
            with suppress(sqlite3.ProgrammingError):  # it is closed
                self._watch()

    def _watch(self) -> None:
        self.raw.set_progress_handler(self._is_late, _STEPS)

    def _is_late(self) -> bool:
        if self._begun_working is None:  # not read before, since it costs as much as a short statement
            self._begun_working = thread_time()
        passed = perf_counter() - self._begun
        if passed > self._allowed:
            self.was_late = passed > _WAITED * self._allowed or thread_time() - self._begun_working > self._allowed
        return self.was_late


class OpenFile:
    """The database file of a storage, and its write-ahead log, as the connections opened them: SQLite goes on writing
    to files that were removed or replaced, and what it writes there is lost."""

    def __init__(self, file: Path) -> None:
        self._file = file.absolute()
        self._log = f"{self._file.resolve()}-wal"
        self._known: dict[str, tuple[int, int]] = {}

    def opened(self, *, writes: bool) -> None:
        """Note what a connection opened. Raise `StorageUnavailable` if it is not the file that the others have open.
        `writes`: the log stays the same as long as this connection is open."""
        self._known.setdefault(str(self._file), _identity(self._file))
        if writes:
            self._known[self._log] = _identity(self._log)
        self.check()

    def check(self) -> None:
        """Raise `StorageUnavailable` unless the files are there and the same."""
        for path, known in self._known.items():
            if _identity(path) != known:
                raise StorageUnavailable("database_file_replaced", name=Path(path).name)

    def check_space(self) -> None:
        """Raise `StorageUnavailable` if the disk is full."""
        if is_full(self._file):
            raise StorageUnavailable("database_disk_full")


def _identity(path: Path | str) -> tuple[int, int]:
    """Return the device and the number of a file, zeros if it is not there."""
    try:
        status = os.stat(path)  # noqa: PTH116 - twice as fast, and called with every commit
    except OSError:
        return 0, 0
    return status.st_dev, status.st_ino


class SqliteConnection:
    """A connection to SQLite.

    `gate` is held during each call. It is the lock of a database in memory, whose single connection is shared. Its
    holder begins no transaction, as an open one belongs to another caller. `file`: the database file, None in memory.
    `checked`: the same, if it is checked with every commit.
    """

    def __init__(
        self,
        driver: Driver,
        *,
        pace: Pace,
        gate: AbstractAsyncContextManager[Any] | None = None,
        file: Path | None = None,
        checked: OpenFile | None = None,
        patience_seconds: float = WAIT_SECONDS,
    ) -> None:
        self.driver = driver
        self._checked = checked
        self._pace = pace
        self._gate = gate
        self._own = gate is None
        self._file = file
        self._patience_seconds = patience_seconds
        self.dialect: Dialect = _DIALECT
        self.interrupted = False

    async def fetch_locked(self, lock: Statement, statement: Statement, **params: Any) -> Sequence[Row]:
        return await self.fetch(statement, **params)

    async def fetch(self, statement: Statement, **params: Any) -> Sequence[Row]:
        compiled, bound = statement.bound(self.dialect, params)
        try:
            if self._gate is None:
                rows = await self._fetched(compiled, bound)
            else:
                async with self._gate:
                    rows = await self._fetched(compiled, bound)
        except DRIVER_ERRORS as error:
            raise translation(error, self._file) from error
        return compiled.read(rows) if rows and compiled.shown else rows

    async def _fetched(self, compiled: Compiled, bound: Row) -> Sequence[Row]:
        sql = compiled.sql

        def fetched(raw: sqlite3.Connection) -> Sequence[Row]:
            return raw.execute(sql, bound).fetchall()

        await self._pace.turn()
        if compiled.brief or (compiled.reads and not self._pace.is_slow(sql)):
            try:
                return self.driver.here(fetched, inf if compiled.brief else _READ_SECONDS)
            except sqlite3.OperationalError as error:
                self._check_is_worth_another_try(error, sql)
        return await self._patiently(fetched, stops=compiled.reads)

    async def many(self, statement: Statement, rows: Iterable[Row]) -> None:
        rows = list(rows)
        await self._written([(statement, rows)], lambda _: None, here=_are_few(rows))

    async def write(
        self, changes: Sequence[Change], statement: Statement, params: Mapping[str, Any], *, brief: bool
    ) -> Sequence[Row]:
        compiled, bound = statement.bound(self.dialect, params)

        def fetched(raw: sqlite3.Connection) -> Sequence[Row]:
            return compiled.read(raw.execute(compiled.sql, bound).fetchall())

        return await self._written(changes, fetched, here=brief)

    async def _written(self, changes: Sequence[Change], then: Callable[[sqlite3.Connection], T], *, here: bool) -> T:
        """Run the changes and then `then`: on the event loop, or all in a thread."""

        def written(raw: sqlite3.Connection) -> T:
            for statement, rows in changes:
                raw.executemany(*statement.bound_rows(self.dialect, rows))
            return then(raw)

        try:
            await self._pace.turn()
            if here:
                return self.driver.here(written, inf)
            return await self._aside(written, stops=False)
        except DRIVER_ERRORS as error:
            raise translation(error, self._file) from error

    async def run(self, sql: str) -> None:
        await self._run(sql, here=sql in _AT_ONCE)

    async def commit(self, *, brief: bool) -> None:
        if self._checked:
            self._checked.check()
        await self._run("COMMIT", here=brief and not self._pace.is_slow("COMMIT"))
        if brief:
            self._pace.committed()
        elif self._checked:
            self._checked.check()  # it may have changed meanwhile, and the caller counts on what is committed

    async def _run(self, sql: str, *, here: bool) -> None:
        """Run a text, on the event loop or else in a thread. What took long there is aside for a while."""

        def ran(raw: sqlite3.Connection) -> None:
            raw.execute(sql).fetchall()

        try:
            if here:
                await self._pace.turn()
                begun = perf_counter()
                try:
                    self.driver.here(ran, inf)
                    if perf_counter() - begun > _WRITE_SECONDS:
                        self._pace.was_slow(sql)
                    return
                except sqlite3.OperationalError as error:
                    self._check_is_worth_another_try(error, sql)
            await self._patiently(ran, stops=False)
        except DRIVER_ERRORS as error:
            raise translation(error, self._file) from error

    def broken(self) -> bool:
        try:
            return self.driver.raw.in_transaction and self._own
        except sqlite3.ProgrammingError:  # it is closed
            return True

    def committed_elsewhere(self) -> int | None:
        with suppress(sqlite3.Error):
            number: int = self.driver.raw.execute("PRAGMA data_version").fetchone()[0]
            return number
        return None

    def _check_is_worth_another_try(self, error: sqlite3.OperationalError, sql: str) -> None:
        """Raise the error unless the statement took too long here, or another program holds the lock."""
        if self.driver.was_late:
            self._pace.was_slow(sql)
        elif not _is_busy(error):
            raise error

    async def _aside(self, work: Callable[[sqlite3.Connection], T], *, stops: bool) -> T:
        """Do the work in a thread. A cancellation waits for its end, since the connection is of no use before. `stops`:
        it interrupts the work, which must not write: SQLite would undo the whole transaction."""
        doing = _in_thread(self._pace.threads, partial(self.driver.unwatched, work))
        try:
            return await asyncio.shield(doing)
        except asyncio.CancelledError:
            if stops and not doing.done():
                self.driver.raw.interrupt()
            with suppress(sqlite3.Error):
                await shielded(doing)
            raise

    async def _patiently(self, work: Callable[[sqlite3.Connection], T], *, stops: bool) -> T:
        """Do the work in a thread, and again while another program holds the lock. The connection itself does not wait:
        it would keep the event loop waiting too."""
        until = monotonic() + self._patience_seconds
        while True:
            try:
                return await self._aside(work, stops=stops)
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or monotonic() > until:
                    raise
            await asyncio.sleep(_AGAIN_SECONDS)


def _in_thread(threads: ThreadPoolExecutor | None, work: Callable[[], T]) -> asyncio.Future[T]:
    """Do the work in a thread; here if the interpreter ends, which begins no more threads."""
    loop = asyncio.get_running_loop()
    try:
        return loop.run_in_executor(threads, work)
    except RuntimeError:
        done: asyncio.Future[T] = loop.create_future()
        try:
            done.set_result(work())
        except Exception as error:  # noqa: BLE001 - the future hands it on
            done.set_exception(error)
        return done


_AT_ONCE = frozenset({"BEGIN IMMEDIATE", "ROLLBACK", "SELECT 1", SAVEPOINT, UNDO})


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _are_few(rows: Sequence[Row]) -> bool:
    if len(rows) > FEW_ROWS:
        return False
    return sum([len(value) for row in rows for value in row if isinstance(value, str)]) < FEW_CHARACTERS


def opened(url: URL, *settings: str) -> sqlite3.Connection:
    """Return an open connection in autocommit mode, with these settings."""
    (name,), options = _DIALECT.create_connect_args(url)
    given = {**options, "timeout": WAIT_SECONDS, "isolation_level": None, "check_same_thread": False}
    raw: sqlite3.Connection = sqlite3.connect(name, cached_statements=_STATEMENTS, **given)
    try:
        for setting in settings:
            raw.execute(setting).fetchall()
    except BaseException:
        raw.close()
        raise
    return raw


def _copy_log(connect: Callable[[], sqlite3.Connection]) -> None:
    """Copy what the write-ahead log has into the database, as far as no reader is in the way. A log that could not be
    copied is copied later."""
    with suppress(sqlite3.Error), closing(connect()) as raw:
        raw.execute(_COPY).fetchall()


class SqliteSource:
    """The maker of connections to a file, or of views of `shared`, the one connection to a database in memory."""

    def __init__(
        self,
        url: URL,
        settings: Sequence[str] = (),
        *,
        pace: Pace,
        file: Path | None = None,
        checked: OpenFile | None = None,
        writes: bool = False,
        shared: Driver | None = None,
        gate: asyncio.Lock | None = None,
        patience_seconds: float = WAIT_SECONDS,
    ) -> None:
        self._url = url
        self._settings = settings
        self._pace = pace
        self._file = file
        self._checked = checked
        self._writes = writes
        self._shared = shared
        self._gate = gate
        self._patience_seconds = patience_seconds

    async def open(self) -> SqliteConnection:
        driver = self._shared
        if driver is None:
            with translated(self._file):
                raw = await asyncio.to_thread(opened, self._url, *self._settings, "PRAGMA busy_timeout = 0")
            driver = Driver(raw)
            try:
                if self._checked:
                    self._checked.opened(writes=self._writes)
            except StorageUnavailable:
                raw.close()
                raise
        return SqliteConnection(
            driver,
            pace=self._pace,
            file=self._file,
            checked=self._checked,
            gate=self._gate,
            patience_seconds=self._patience_seconds,
        )

    async def close(self, connection: SqliteConnection) -> None:
        if self._shared is None:
            await self.drop(connection)

    async def drop(self, connection: SqliteConnection) -> None:
        await _in_thread(None, connection.driver.raw.close)

    async def end(self) -> None:
        await self._pace.settled()
        if self._shared is not None:
            self._shared.raw.close()
