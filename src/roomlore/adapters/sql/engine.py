"""Connections to SQLite and PostgreSQL, prepared statements, and translated errors."""

import asyncio
import shutil
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import aiosqlite
import sqlalchemy.exc
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Dialect,
    Integer,
    PoolProxiedConnection,
    Table,
    Text,
    and_,
    bindparam,
    func,
    or_,
    select,
)
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ClauseElement
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import NullType
from sqlalchemy.util import greenlet_spawn

from roomlore.adapters.sql import schema
from roomlore.core.errors import Conflict, InvalidInput, RoomloreError, StorageBusy, StorageDamaged, StorageUnavailable

if TYPE_CHECKING:
    import psycopg


@dataclass(frozen=True, slots=True)
class Compiled:
    """SQL of one engine, with the names of its parameters in order and the values of the constant ones."""

    sql: str
    names: tuple[str, ...]
    fixed: Mapping[str, Any]

    def bind(self, params: Mapping[str, Any]) -> tuple[Any, ...]:
        fixed = self.fixed
        return tuple([fixed[name] if name in fixed else params[name] for name in self.names])


class Statement:
    """A Core statement that caches its compiled SQL. Built at the first use, so importing costs nothing."""

    __slots__ = ("_build", "_compiled")

    def __init__(self, build: Callable[[], ClauseElement]) -> None:
        self._build = build
        self._compiled: dict[str, Compiled] = {}

    def on(self, dialect: Dialect) -> Compiled:
        compiled = self._compiled.get(dialect.name)
        if compiled is None:
            compiled = self._compiled[dialect.name] = _compile(self._build(), dialect)
        return compiled


def _compile(statement: ClauseElement, dialect: Dialect) -> Compiled:
    compiled = statement.compile(dialect=dialect)
    assert isinstance(compiled, SQLCompiler)
    names = tuple(compiled.positiontup or ())
    fixed = {name: compiled.binds[name].value for name in names if not compiled.binds[name].required}
    return Compiled(compiled.string, names, fixed)


class _Among(FunctionElement[Any]):
    """`column, list`: true if the column is a member of a JSON list.

    Has no boolean type: SQLAlchemy would write `... = 1` behind a boolean on SQLite, which hides it from the index.
    """

    inherit_cache = True
    type = NullType()


@compiles(_Among, "sqlite")
def _on_sqlite(element: _Among, compiler: SQLCompiler, **options: Any) -> str:
    """Compile it. The cast lets SQLite use the column's index."""
    column, members, numbers = _parts(element, compiler, options)
    kind = "INTEGER" if numbers else "TEXT"
    return f"{column} IN (SELECT CAST(value AS {kind}) FROM json_each({members}))"  # noqa: S608


@compiles(_Among, "postgresql")
def _on_postgresql(element: _Among, compiler: SQLCompiler, **options: Any) -> str:
    """Compile it as an array: PostgreSQL scans an index for an array and rarely for a sub-query."""
    column, members, numbers = _parts(element, compiler, options)
    kind = "BIGINT" if numbers else "TEXT"
    return f"{column} = ANY (CAST(ARRAY(SELECT jsonb_array_elements_text(CAST({members} AS jsonb))) AS {kind}[]))"


class _AmongMany(_Among):
    inherit_cache = True


@compiles(_AmongMany, "postgresql")
def _hashed_on_postgresql(element: _AmongMany, compiler: SQLCompiler, **options: Any) -> str:
    """Compile it. `IS TRUE` prevents a join, for which these connections would scan an index."""
    column, members, _ = _parts(element, compiler, options)
    return f"({column} IN (SELECT jsonb_array_elements_text(CAST({members} AS jsonb)))) IS TRUE"


def _parts(element: _Among, compiler: SQLCompiler, options: Any) -> tuple[str, str, bool]:
    column, members = element.clauses
    numbers = isinstance(column.type, BigInteger)
    return compiler.process(column, **options), compiler.process(members, **options), numbers


def among(column: ColumnElement[Any], parameter: str) -> ColumnElement[bool]:
    """Return a condition: the column is in the list bound as `values.names_text` or `values.numbers_text`.

    The list is one parameter, so the statement is the same for every length.
    """
    return _Among(column, bindparam(parameter, type_=Text))


def among_many(column: ColumnElement[Any], parameter: str) -> ColumnElement[bool]:
    """Return the condition of `among` for many texts without an index. PostgreSQL hashes them instead of comparing each
    row with every member of an array."""
    return _AmongMany(column, bindparam(parameter, type_=Text))


def begins_or_ends(column: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return a condition: the text begins or ends with the parameter `part`, which has `size` characters."""
    size = bindparam("size", type_=Integer)
    begins = func.substr(column, 1, size)
    ends = func.substr(column, func.length(column) - size + 1)
    return or_(begins == bindparam("part"), ends == bindparam("part"))


class _Numbers(FunctionElement[str]):
    """An aggregate of one column."""

    inherit_cache = True
    type = Text()


class _Texts(_Numbers):
    inherit_cache = True


_GATHERED = {
    (_Numbers, "sqlite"): "group_concat({})",
    (_Texts, "sqlite"): "json_group_array({})",
    (_Numbers, "postgresql"): "string_agg(CAST({} AS TEXT), ',')",
    (_Texts, "postgresql"): "CAST(json_agg({}) AS TEXT)",
}


@compiles(_Numbers)
@compiles(_Texts)
def _gathered(element: _Numbers, compiler: SQLCompiler, **options: Any) -> str:
    form = _GATHERED[type(element), compiler.dialect.name]
    return form.format(compiler.process(element.clauses, **options))


def numbers_in(column: ColumnElement[Any]) -> ColumnElement[str]:
    """Return a column of whole numbers without NULL as one text with commas, which is much faster to read than many
    rows.

    Columns that are gathered in one statement have the same order of rows.
    """
    return _Numbers(column)


def texts_in(column: ColumnElement[Any]) -> ColumnElement[str]:
    """Return a column of texts as one JSON list, gathered as in `numbers_in`."""
    return _Texts(column)


def in_room(table: Any) -> ColumnElement[bool]:
    """Return a condition: rows of the room given by the parameters `tenant` and `room_id`."""
    return and_(table.c.room_key == _key_of_room(), table.c.tenant == bindparam("tenant"))


def _key_of_room() -> Any:
    rooms = schema.rooms
    named = and_(rooms.c.tenant == bindparam("tenant"), rooms.c.room_id == bindparam("room_id"))
    return select(rooms.c.room_key).where(named).scalar_subquery()


def in_locked_room(table: Table) -> ColumnElement[bool]:
    """Return a condition: rows of the room given by the parameters `tenant` and `room_key`."""
    return and_(table.c.room_key == bindparam("room_key"), table.c.tenant == bindparam("tenant"))


Row = Sequence[Any]

Errors = tuple[type[Exception], ...]
_INTEGRITY: Errors = (sqlite3.IntegrityError,)
_DATA: Errors = (sqlite3.DataError, OverflowError)
_ANY: Errors = (sqlite3.Error, sqlalchemy.exc.SQLAlchemyError, OverflowError, OSError)


def _with_psycopg(errors: Errors, name: str) -> Errors:
    """Return the errors with psycopg's of this name. An open PostgreSQL has loaded psycopg; SQLite needs it not."""
    error = getattr(sys.modules.get("psycopg"), name, None)
    return (*errors, error) if error else errors


_CLOSED = {"no active connection", "Connection closed"}
"""The text of aiosqlite's bare ValueError after its connection is closed."""
_RESTORE = "Bring back a backup, or read what can be read with `sqlite3 FILE .recover`."
_OUT_OF_SPACE = ("disk is full", "No space left", "disk full")
_LEAST_SPACE = 1_048_576


@contextmanager
def translated(file: Path | None = None) -> Iterator[None]:
    """Translate the errors of drivers to the project's errors. `file`: the SQLite database, whose disk is checked after
    an I/O error: SQLite reports a full disk and a broken one alike."""
    try:
        yield
    except _with_psycopg(_ANY, "Error") as exc:
        raise _translate(_of_the_driver(exc), file) from exc
    except ValueError as exc:
        if str(exc) not in _CLOSED:
            raise
        raise StorageUnavailable("The connection to the database was closed meanwhile; try again.") from exc


def _of_the_driver(exc: Exception) -> Exception:
    """Return the driver's error if SQLAlchemy wrapped it, else the error itself."""
    wrapped = exc.orig if isinstance(exc, sqlalchemy.exc.DBAPIError) else None
    return wrapped if isinstance(wrapped, Exception) else exc


def _translate(exc: Exception, file: Path | None) -> RoomloreError:
    if isinstance(exc, _with_psycopg(_INTEGRITY, "IntegrityError")):
        return Conflict(f"The database holds this already: {exc}")
    if isinstance(exc, _with_psycopg(_DATA, "DataError")):
        return InvalidInput(f"The database cannot hold this value: {exc}")
    if _is_out_of_space(str(exc), file):
        return StorageUnavailable(f"The database has no space left on its disk: {exc}. Make room there, and try again.")
    if "malformed" in str(exc):
        return StorageDamaged(f"The database file is damaged: {exc}. {_RESTORE}")
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
    return "Check that it runs, that its address is right, and try again."


class Connection(Protocol):
    """A connection in autocommit mode; transactions are begun and ended by statements."""

    dialect: Dialect

    async def fetch(self, statement: Statement, **params: Any) -> Sequence[Row]:
        """Run a statement and return all rows as tuples."""

    async def many(self, statement: Statement, rows: Iterable[Row]) -> None:
        """Run a statement once for each tuple of parameters, in the order of the statement's parameters."""

    async def run(self, sql: str) -> None:
        """Run a constant SQL text."""

    def broken(self) -> bool:
        """Return True if the connection cannot be reused: it is closed, or still inside a transaction or call."""


class SqliteConnection:
    """aiosqlite: one thread for each connection, one thread switch for each call.

    `gate` is held during each call. It is the lock of a database in memory, whose single connection is shared. Its
    holder begins no transaction, as an open one belongs to another caller. `file`: the database file, None in memory.
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
            with suppress(ValueError):  # it is already closed
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
        return self._driver.closed or self._driver.info.transaction_status.name != "IDLE"


WAIT_SECONDS = 30


@dataclass(frozen=True, slots=True)
class _Held:
    """A connection in use, with the generation of the pool at that time."""

    pooled: PoolProxiedConnection
    connection: Connection
    age: int


class Connections:
    """A pool of at most `most` connections. After one breaks, all are replaced, as the others broke with it.

    `gate`: the lock for calls on a single shared connection (a database in memory).
    """

    def __init__(self, engine: AsyncEngine, *, most: int, gate: asyncio.Lock | None = None) -> None:
        self._engine = engine
        self._gate = gate
        name = engine.url.database if engine.dialect.name == "sqlite" and not engine.url.query else None
        self._file = Path(name) if name and name != ":memory:" else None
        self._turns = asyncio.Semaphore(most)
        self._idle: list[_Held] = []
        self._age = 0

    @asynccontextmanager
    async def one(self) -> AsyncIterator[Connection]:
        """Yield a connection for one unit of work. Raises `StorageUnavailable` if none is available."""
        await self._turn()
        try:
            held = self._idle.pop() if self._idle else await self._take()
            try:
                yield held.connection
            finally:
                await self._give_back(held)
        finally:
            self._turns.release()

    async def close(self) -> None:
        """Close idle connections now, and the others when they are returned."""
        self._age += 1
        idle, self._idle = self._idle, []
        for held in idle:
            held.pooled.close()
        await self._engine.dispose()

    async def _turn(self) -> None:
        if not self._turns.locked():
            await self._turns.acquire()
            return
        try:
            async with asyncio.timeout(WAIT_SECONDS):  # `wait_for` may swallow a cancellation that comes now
                await self._turns.acquire()
        except TimeoutError as exc:
            raise StorageBusy("All connections to the database are busy; try again.") from exc

    async def _take(self) -> _Held:
        age = self._age
        with translated(self._file):
            pooled = await self._engine.raw_connection()
        driver: Any = pooled.driver_connection
        dialect = self._engine.dialect
        if dialect.name == "sqlite":
            return _Held(pooled, SqliteConnection(driver, dialect, self._gate, file=self._file), age)
        return _Held(pooled, PostgresConnection(driver, dialect), age)

    async def _give_back(self, held: _Held) -> None:
        if held.age == self._age and not held.connection.broken():
            self._idle.append(held)
        else:
            await shielded(self._drop(held))

    async def _drop(self, held: _Held) -> None:
        await greenlet_spawn(held.pooled.invalidate)
        if held.age == self._age:
            await self.close()


async def shielded(work: Coroutine[Any, Any, None]) -> None:
    """Wait for the work even during a cancellation, so that no connection is returned in the middle of it."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
