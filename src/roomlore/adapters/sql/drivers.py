"""One connection of either engine, spoken to in prepared statements, its errors translated.

This is the only place that meets a driver's exceptions: `Conflict` for a broken uniqueness, `InvalidInput` for a value
the engine cannot hold, `StorageUnavailable` for the rest.
"""

import asyncio
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Protocol

import aiosqlite
import sqlalchemy.exc
from sqlalchemy import Dialect

from roomlore.adapters.sql.statements import Statement
from roomlore.core.errors import Conflict, InvalidInput, RoomloreError, StorageUnavailable

try:
    import psycopg
    from psycopg.pq import TransactionStatus
except ImportError:  # the extra `postgres` is not installed
    _PG_ERRORS: tuple[type[Exception], ...] = ()
    _PG_INTEGRITY: tuple[type[Exception], ...] = ()
    _PG_DATA: tuple[type[Exception], ...] = ()
else:
    _PG_ERRORS = (psycopg.Error,)
    _PG_INTEGRITY = (psycopg.IntegrityError,)
    _PG_DATA = (psycopg.DataError,)

Row = Sequence[Any]

_INTEGRITY: tuple[type[Exception], ...] = (sqlite3.IntegrityError, *_PG_INTEGRITY)
_DATA: tuple[type[Exception], ...] = (sqlite3.DataError, OverflowError, *_PG_DATA)
_ANY: tuple[type[Exception], ...] = (sqlite3.Error, sqlalchemy.exc.SQLAlchemyError, OverflowError, OSError, *_PG_ERRORS)
_CLOSED = {"no active connection", "Connection closed"}
"""What aiosqlite says in a bare ValueError once its connection is closed."""
_OUT_OF_SPACE = ("disk is full", "No space left", "disk full")
_LEAST_SPACE = 1_048_576


@contextmanager
def translated(file: Path | None = None) -> Iterator[None]:
    """Turn what drivers raise into the project's errors. `file`: that of a SQLite database, whose disk is looked at
    after an error of input or output: SQLite says the same of a disk that is full and of one that is broken."""
    try:
        yield
    except _ANY as exc:
        raise _translate(_of_the_driver(exc), file) from exc
    except ValueError as exc:
        if str(exc) not in _CLOSED:
            raise
        raise StorageUnavailable("The connection to the database was closed meanwhile; try again.") from exc


def _of_the_driver(exc: Exception) -> Exception:
    """What SQLAlchemy wrapped, where it did."""
    wrapped = exc.orig if isinstance(exc, sqlalchemy.exc.DBAPIError) else None
    return wrapped if isinstance(wrapped, Exception) else exc


def _translate(exc: Exception, file: Path | None) -> RoomloreError:
    if isinstance(exc, _INTEGRITY):
        return Conflict(f"The database holds this already: {exc}")
    if isinstance(exc, _DATA):
        return InvalidInput(f"The database cannot hold this value: {exc}")
    if _is_out_of_space(str(exc), file):
        return StorageUnavailable(f"The database has no space left on its disk: {exc}. Make room there, and try again.")
    return StorageUnavailable(f"The database does not answer as it should: {exc}. {_advice(exc)}")


def _is_out_of_space(text: str, file: Path | None) -> bool:
    if any(said in text for said in _OUT_OF_SPACE):
        return True
    if file is None or "disk I/O error" not in text:
        return False
    with suppress(OSError):
        return shutil.disk_usage(file.resolve().parent).free < _LEAST_SPACE
    return False


def _advice(exc: Exception) -> str:
    text = str(exc)
    if "locked" in text:
        return "Another program holds its write lock: end that program or try again."
    if "unable to open" in text:
        return "Check that the folder exists and may be written to."
    if "not a database" in text:
        return "The file is no roomlore database: name another path."
    if "malformed" in text:
        return "The file is damaged: bring back a backup, or read what can be read with `sqlite3 FILE .recover`."
    return "Check that it runs, that its address is right, and try again."


class Connection(Protocol):
    """One connection in autocommit; transactions are begun and ended by statement."""

    dialect: Dialect

    async def fetch(self, statement: Statement, **params: Any) -> Sequence[Row]:
        """Runs a statement and returns all its rows, as tuples."""

    async def many(self, statement: Statement, rows: Iterable[Row]) -> None:
        """Runs a statement once for each tuple of parameters, given in the statement's own order."""

    async def run(self, sql: str) -> None:
        """Runs a fixed line of SQL."""

    def broken(self) -> bool:
        """Whether the connection can serve nobody else: it is closed, or still in the middle of something."""


class SqliteConnection:
    """aiosqlite: one thread per connection, one hop of threads per call.

    `gate` is held for each call: the lock of a database in memory, which has a single connection for all. Who has it
    begins no transaction: one that is open is another's. `file`: where the database lies, None in memory.
    """

    def __init__(
        self,
        driver: aiosqlite.Connection,
        dialect: Dialect,
        gate: AbstractAsyncContextManager[Any] | None = None,
        *,
        file: Path | None = None,
    ) -> None:
        self._driver = driver
        self._file = file
        self._gate = gate or nullcontext()
        self._own = gate is None
        self.dialect = dialect

    async def fetch(self, statement: Statement, **params: Any) -> Sequence[Row]:
        compiled = statement.on(self.dialect)
        bound = compiled.bind(params)
        with translated(self._file):
            async with self._gate:
                return await self._interruptible(compiled.sql, bound)

    async def _interruptible(self, sql: str, bound: Row) -> Sequence[Row]:
        try:
            return await self._driver.execute_fetchall(sql, bound)  # type: ignore[return-value]
        except asyncio.CancelledError:
            with suppress(ValueError):  # it is closed already
                await self._driver.interrupt()
            raise

    async def many(self, statement: Statement, rows: Iterable[Row]) -> None:
        with translated(self._file):
            await self._driver.executemany(statement.on(self.dialect).sql, rows)

    async def run(self, sql: str) -> None:
        with translated(self._file):
            await self._driver.execute_fetchall(sql)

    def broken(self) -> bool:
        try:
            return self._driver.in_transaction and self._own
        except ValueError:  # it is closed
            return True


class PostgresConnection:
    """psycopg 3, with server-side prepared statements after a few uses."""

    def __init__(self, driver: "psycopg.AsyncConnection[Any]", dialect: Dialect) -> None:
        self._driver = driver
        self.dialect = dialect

    async def fetch(self, statement: Statement, **params: Any) -> Sequence[Row]:
        compiled = statement.on(self.dialect)
        with translated():
            cursor = await self._driver.execute(compiled.sql, compiled.bind(params))
            return await cursor.fetchall() if cursor.description else []

    async def many(self, statement: Statement, rows: Iterable[Row]) -> None:
        with translated():
            async with self._driver.cursor() as cursor:
                await cursor.executemany(statement.on(self.dialect).sql, rows)

    async def run(self, sql: str) -> None:
        with translated():
            await self._driver.execute(sql.encode())

    def broken(self) -> bool:
        return self._driver.closed or self._driver.info.transaction_status != TransactionStatus.IDLE
