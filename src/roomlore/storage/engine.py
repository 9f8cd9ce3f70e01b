"""Statements of both engines, compiled once; translated errors; and the rows that a unit of work has locked, with the
base of everything that reads and writes in it."""

import asyncio
import shutil
import sqlite3
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import sqlalchemy.exc
from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Dialect,
    Float,
    Integer,
    LargeBinary,
    SelectBase,
    String,
    Table,
    Text,
    and_,
    bindparam,
    func,
    literal_column,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ClauseElement
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.sql.selectable import ReturnsRows
from sqlalchemy.types import NullType

from roomlore.core.errors import Conflict, InvalidInput, RoomloreError, StorageDamaged, StorageUnavailable
from roomlore.core.texts import Phrase
from roomlore.storage import schema
from roomlore.storage.rows import MARK, escape, unescape

Row = tuple[Any, ...]
FEW_ROWS, FEW_CHARACTERS = 16, 20_000
"""The most rows that a brief statement writes, and their characters."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """SQL of one engine, with the names of its parameters in order and the values of the constant ones.

    `reads`: True if it only reads. `brief`: True if it is a write of at most `FEW_ROWS` rows. `answers`: True if it
    returns rows. `given`: the places of parameters that may be texts, each with True if it must be one; `shown`: those
    of columns that may be.
    """

    sql: str
    names: tuple[str, ...]
    fixed: Mapping[str, Any]
    reads: bool
    brief: bool
    answers: bool
    given: tuple[tuple[int, bool], ...]
    shown: tuple[int, ...]

    def ordered(self, params: Mapping[str, Any]) -> Row:
        """Return the values of the parameters in order."""
        fixed = self.fixed
        return tuple([fixed[name] if name in fixed else params[name] for name in self.names])

    def stored(self, values: Row) -> Row:
        """Return values of the parameters as they are stored. Raise `InvalidInput` for a value in place of a text."""
        row = list(values)
        for place, is_text in self.given:
            value = row[place]
            # No character that is escaped is printable.
            if not value.isprintable() if isinstance(value, str) else is_text and value is not None:
                row[place] = escape(value)
        return tuple(row)

    def read(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Return rows as they were before they were stored."""
        shown = self.shown
        for row in rows:
            for place in shown:
                value = row[place]
                if value.__class__ is str and MARK in value:
                    return [tuple(unescape(cell) if isinstance(cell, str) else cell for cell in row) for row in rows]
        return rows


class Statement:
    """A Core statement that caches its compiled SQL. Built at the first use, so importing costs nothing.

    Texts are stored in the form of `rows.escape`: what is bound and what is returned is plain.
    `brief`: it writes at most `FEW_ROWS` rows that it finds by their key. SQLite runs it on the event loop.
    """

    __slots__ = ("_brief", "_build", "_compiled")

    def __init__(self, build: Callable[[], ClauseElement], *, brief: bool = False) -> None:
        self._build = build
        self._brief = brief
        self._compiled: dict[str, Compiled] = {}

    def on(self, dialect: Dialect) -> Compiled:
        compiled = self._compiled.get(dialect.name)
        if compiled is None:
            compiled = self._compiled[dialect.name] = _compile(self._build(), dialect, self._brief)
        return compiled

    def bound(self, dialect: Dialect, params: Mapping[str, Any]) -> tuple[Compiled, Row]:
        """Return the compiled statement and its parameters as they are stored."""
        compiled = self.on(dialect)
        return compiled, compiled.stored(compiled.ordered(params))

    def bound_rows(self, dialect: Dialect, rows: Iterable[Row]) -> tuple[str, list[Row]]:
        """Return the SQL, and rows of its parameters as they are stored."""
        compiled = self.on(dialect)
        return compiled.sql, [compiled.stored(row) for row in rows]


def _compile(statement: ClauseElement, dialect: Dialect, brief: bool) -> Compiled:
    compiled = statement.compile(dialect=dialect)
    assert isinstance(compiled, SQLCompiler)
    names = tuple(compiled.positiontup or ())
    fixed = {name: compiled.binds[name].value for name in names if not compiled.binds[name].required}
    reads = isinstance(statement, SelectBase)
    answers = reads or bool(compiled.effective_returning)
    kinds = [(place, compiled.binds[name].type) for place, name in enumerate(names) if name not in fixed]
    columns = statement.exported_columns if answers and isinstance(statement, ReturnsRows) else ()
    return Compiled(
        sql=compiled.string,
        names=names,
        fixed=fixed,
        reads=reads,
        brief=brief,
        answers=answers,
        given=tuple((place, isinstance(kind, String)) for place, kind in kinds if not isinstance(kind, _NO_TEXT)),
        shown=tuple(place for place, column in enumerate(columns) if not isinstance(column.type, _NO_TEXT)),
    )


_NO_TEXT = (Integer, Float, Boolean, LargeBinary)


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
    """Return a condition: the text begins or ends with the parameter `part`."""
    part = bindparam("part", type_=Text)
    begins = func.substr(column, 1, func.length(part))
    ends = func.substr(column, func.length(column) - func.length(part) + 1)
    return or_(begins == part, ends == part)


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
    key = select(schema.rooms.c.room_key).where(named_room()).scalar_subquery()
    return and_(table.c.room_key == key, table.c.tenant == bindparam("tenant"))


def insert_row(table: Table) -> Insert:
    """Return an insert of a row, with a parameter for each column under its name."""
    return insert(table).values({column.name: bindparam(column.name) for column in table.c})


def named_room() -> ColumnElement[bool]:
    """Return a condition: the row of the room given by the parameters `tenant` and `room_id`."""
    rooms = schema.rooms
    return and_(rooms.c.tenant == bindparam("tenant"), rooms.c.room_id == bindparam("room_id"), in_use)


in_use = schema.rooms.c.kind != literal_column(f"'{schema.BEING_DELETED}'")
"""A condition: the room is not being deleted. Without it nobody but the deletion may see a room."""


def in_scope(table: Any) -> ColumnElement[bool]:
    """Return a condition: rows of the scope given by the parameters `tenant` and `scope`."""
    return and_(table.c.scope_key == key_of_scope(), table.c.tenant == bindparam("tenant"))


def key_of_scope() -> Any:
    """Return the key of the scope given by the parameters `tenant` and `scope`, as a subquery."""
    scopes = schema.scopes
    named = and_(scopes.c.tenant == bindparam("tenant"), scopes.c.scope == bindparam("scope"))
    return select(scopes.c.scope_key).where(named).scalar_subquery()


def in_locked_room(table: Table) -> ColumnElement[bool]:
    """Return a condition: rows of the room given by the parameters `tenant` and `room_key`."""
    return and_(table.c.room_key == bindparam("room_key"), table.c.tenant == bindparam("tenant"))


Errors = tuple[type[Exception], ...]
_INTEGRITY: Errors = (sqlite3.IntegrityError,)
_DATA: Errors = (sqlite3.DataError, OverflowError)
DRIVER_ERRORS: Errors = (sqlite3.Error, sqlalchemy.exc.SQLAlchemyError, OverflowError, OSError)


def _with_psycopg(errors: Errors, name: str) -> Errors:
    """Return the errors with psycopg's of this name. An open PostgreSQL has loaded psycopg; SQLite needs it not."""
    error = getattr(sys.modules.get("psycopg"), name, None)
    return (*errors, error) if error else errors


_CLOSED = "closed database"
_OUT_OF_SPACE = ("disk is full", "No space left", "disk full")
_MIN_SPACE = 1_048_576


class translated:  # noqa: N801 - used as a function
    """Translate the errors of drivers to the project's errors. `file`: the SQLite database, whose disk is checked after
    an I/O error: SQLite reports a full disk and a broken one alike.

    """

    __slots__ = ("_file",)

    def __init__(self, file: Path | None = None) -> None:
        self._file = file

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, _: object, error: BaseException | None, trace: object) -> None:
        if error is not None and isinstance(error, _with_psycopg(DRIVER_ERRORS, "Error")):
            raise translation(error, self._file) from error


def _of_the_driver(exc: Exception) -> Exception:
    """Return the driver's error if SQLAlchemy wrapped it, else the error itself."""
    wrapped = exc.orig if isinstance(exc, sqlalchemy.exc.DBAPIError) else None
    return wrapped if isinstance(wrapped, Exception) else exc


def translation(error: Exception, file: Path | None) -> RoomloreError:
    """Return the project's error for one of a driver."""
    exc = _of_the_driver(error)
    if isinstance(exc, _with_psycopg(_INTEGRITY, "IntegrityError")):
        return Conflict("database_row_exists", why=exc)
    if isinstance(exc, _with_psycopg(_DATA, "DataError")):
        return InvalidInput("database_value_unfit", why=exc)
    if _is_out_of_space(str(exc), file):
        return StorageUnavailable("database_disk_full_of", why=exc)
    if _CLOSED in str(exc):
        return StorageUnavailable("database_connection_closed")
    if "malformed" in str(exc):
        return StorageDamaged("database_damaged", why=exc)
    return StorageUnavailable("database_failing", why=exc, advice=_advice(exc))


def _is_out_of_space(text: str, file: Path | None) -> bool:
    if any(sign in text for sign in _OUT_OF_SPACE):
        return True
    return file is not None and "disk I/O error" in text and is_full(file)


def is_full(file: Path) -> bool:
    """Return True if the disk of a file has hardly any space left; False if that cannot be found out."""
    with suppress(OSError):
        return shutil.disk_usage(file.resolve().parent).free < _MIN_SPACE
    return False


def _advice(exc: Exception) -> str:
    text = str(exc)
    if "locked" in text:
        return Phrase("advice_write_lock")
    if "unable to open" in text:
        return Phrase("advice_check_folder")
    if "not a database" in text:
        return Phrase("advice_other_path")
    return Phrase("advice_check_server")


Change = tuple["Statement", Sequence[Row]]
"""A statement, and the rows of parameters that it is run with."""


class Connection(Protocol):
    """A connection in autocommit mode; transactions are begun and ended by statements."""

    dialect: Dialect

    async def fetch(self, statement: Statement, **params: Any) -> Sequence[Row]:
        """Run a statement and return all rows as tuples."""

    async def fetch_locked(self, lock: Statement, statement: Statement, **params: Any) -> Sequence[Row]:
        """Run a statement once another one has locked rows, in one round trip, and return its rows. SQLite needs no
        lock: the transaction has one."""

    async def many(self, statement: Statement, rows: Iterable[Row]) -> None:
        """Run a statement once for each tuple of parameters, in the order of the statement's parameters."""

    async def run(self, sql: str) -> None:
        """Run a constant SQL text."""

    async def commit(self, *, brief: bool) -> None:
        """Commit. `brief`: the transaction wrote a few rows."""

    async def write(
        self, changes: Sequence[Change], statement: Statement, params: Mapping[str, Any], *, brief: bool
    ) -> Sequence[Row]:
        """Run statements, each once for each of its rows as in `many`, and then `statement` as in `fetch`, in one round
        trip. `brief`: the rows are few and short."""

    @property
    def interrupted(self) -> bool:
        """True if a call was cancelled, after which this connection, and no other, is not used again."""

    def broken(self) -> bool:
        """Return True if the connection cannot be reused: it is closed, or still inside a transaction or call."""

    def committed_elsewhere(self) -> int | None:
        """Return a number that changes when another connection commits; None if that is not known at once."""


WAIT_SECONDS = 30
"""The longest wait for a connection or for another program's lock."""
SAVEPOINT, UNDO = "SAVEPOINT unit", "ROLLBACK TO unit"


async def shielded(work: Awaitable[Any]) -> None:
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


@dataclass(frozen=True, slots=True)
class LockedRoom:
    """A room whose row this unit of work has locked. `keeps_vectors`: a vector index of messages existed at that time;
    the lock reads it too, as a statement of its own would cost a round trip. `pending_from`: as its column is now."""

    key: int
    tenant: str
    room_id: str
    keeps_vectors: bool
    pending_from: int | None


@dataclass(frozen=True, slots=True)
class LockedScope:
    """The same for a scope of memories."""

    key: int
    tenant: str
    scope: str
    keeps_vectors: bool


class Locks:
    """The rooms and scopes that a unit of work has locked. `writing`: False in a unit of work that only reads."""

    def __init__(self, *, writing: bool) -> None:
        self._writing = writing
        self._rooms: dict[tuple[str, str], LockedRoom] = {}
        self._scopes: dict[tuple[str, str], LockedScope] = {}

    def check_writing(self) -> None:
        if not self._writing:
            raise InvalidInput("unit_of_work_reads")

    def take(self, locked: LockedRoom) -> None:
        self._rooms[locked.tenant, locked.room_id] = locked

    def held(self, tenant: str, room_id: str) -> LockedRoom:
        """Return the lock on this room. Raises `InvalidInput` if it was not taken."""
        locked = self._rooms.get((tenant, room_id))
        if locked is None:
            raise InvalidInput("room_not_locked")
        return locked

    def pending(self, locked: LockedRoom, pending_from: int | None) -> LockedRoom:
        """Note from where on messages of a locked room are pending, and return its lock."""
        if locked.pending_from != pending_from:
            locked = replace(locked, pending_from=pending_from)
            self.take(locked)
        return locked

    def take_scope(self, locked: LockedScope) -> None:
        self._scopes[locked.tenant, locked.scope] = locked

    def held_scope(self, tenant: str, scope: str) -> LockedScope:
        """Return the lock on this scope. Raises `InvalidInput` if it was not taken."""
        locked = self._scopes.get((tenant, scope))
        if locked is None:
            raise InvalidInput("scope_not_locked")
        return locked


def the_tenant(tenant: str | None) -> str:
    """Return the tenant of a unit of work; raise `RuntimeError` if that is over all tenants."""
    if tenant is None:
        raise RuntimeError("This unit of work is over all tenants; open one for a tenant.")
    return tenant


class Repository:
    """Statements on the connection of a unit of work, under its locks. `tenant`: None is over all tenants."""

    def __init__(self, connection: Connection, locks: Locks, tenant: str | None) -> None:
        self._sql = connection
        self._locks = locks
        self._of = tenant

    @property
    def _tenant(self) -> str:
        return the_tenant(self._of)
