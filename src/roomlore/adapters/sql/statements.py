"""Core statements, compiled once for each engine and run with bare driver parameters.

Compiling, cache keys and result rows of SQLAlchemy cost more than the short queries here do, so a statement is written
in Core, once, and what runs is the SQL the engine's dialect makes of it, with a tuple of parameters.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Dialect, Integer, Table, Text, and_, bindparam, func, or_, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ClauseElement
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import NullType

from roomlore.adapters.sql import schema


@dataclass(frozen=True, slots=True)
class Compiled:
    """SQL of one engine, with the names of its parameters in order and the values of those that never change."""

    sql: str
    names: tuple[str, ...]
    fixed: Mapping[str, Any]

    def bind(self, params: Mapping[str, Any]) -> tuple[Any, ...]:
        fixed = self.fixed
        return tuple([fixed[name] if name in fixed else params[name] for name in self.names])


class Statement:
    """A Core statement that remembers what it compiles to. Built on first use: importing costs nothing."""

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
    """`column, list`: whether the column is one of the members of a JSON list.

    Typed as nothing: SQLAlchemy would write `... = 1` behind a boolean on SQLite, and hide it from the index.
    """

    inherit_cache = True
    type = NullType()


@compiles(_Among, "sqlite")
def _on_sqlite(element: _Among, compiler: SQLCompiler, **options: Any) -> str:
    """The cast lets SQLite walk the column's index."""
    column, members, numbers = _parts(element, compiler, options)
    kind = "INTEGER" if numbers else "TEXT"
    return f"{column} IN (SELECT CAST(value AS {kind}) FROM json_each({members}))"  # noqa: S608


@compiles(_Among, "postgresql")
def _on_postgresql(element: _Among, compiler: SQLCompiler, **options: Any) -> str:
    """An array, because PostgreSQL walks an index along one and rarely along a sub-query."""
    column, members, numbers = _parts(element, compiler, options)
    kind = "BIGINT" if numbers else "TEXT"
    return f"{column} = ANY (CAST(ARRAY(SELECT jsonb_array_elements_text(CAST({members} AS jsonb))) AS {kind}[]))"


class _AmongMany(_Among):
    inherit_cache = True


@compiles(_AmongMany, "postgresql")
def _hashed_on_postgresql(element: _AmongMany, compiler: SQLCompiler, **options: Any) -> str:
    """`IS TRUE` keeps it from becoming a join, which connections here are told to walk along an index."""
    column, members, _ = _parts(element, compiler, options)
    return f"({column} IN (SELECT jsonb_array_elements_text(CAST({members} AS jsonb)))) IS TRUE"


def _parts(element: _Among, compiler: SQLCompiler, options: Any) -> tuple[str, str, bool]:
    column, members = element.clauses
    numbers = isinstance(column.type, BigInteger)
    return compiler.process(column, **options), compiler.process(members, **options), numbers


def among(column: ColumnElement[Any], parameter: str) -> ColumnElement[bool]:
    """Whether the column is in the list bound as `values.names_text` or `values.numbers_text`.

    One parameter however long the list, so the statement is one and the same.
    """
    return _Among(column, bindparam(parameter, type_=Text))


def among_many(column: ColumnElement[Any], parameter: str) -> ColumnElement[bool]:
    """As `among`, of texts that no index has, and many: PostgreSQL hashes them, where it would compare each row with
    every member of an array."""
    return _AmongMany(column, bindparam(parameter, type_=Text))


def begins_or_ends(column: ColumnElement[Any]) -> ColumnElement[bool]:
    """Whether the text begins or ends with the parameter `part`, which has `size` characters."""
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
    """A column of whole numbers, none of them NULL, as one text with commas: much quicker to read than many rows.

    Columns gathered in one statement have their rows in one order.
    """
    return _Numbers(column)


def texts_in(column: ColumnElement[Any]) -> ColumnElement[str]:
    """A column of texts as one JSON list, as `numbers_in` does it."""
    return _Texts(column)


def in_room(table: Any) -> ColumnElement[bool]:
    """Rows of the room that the parameters `tenant` and `room_id` name."""
    return and_(table.c.room_key == _key_of_room(), table.c.tenant == bindparam("tenant"))


def _key_of_room() -> Any:
    rooms = schema.rooms
    named = and_(rooms.c.tenant == bindparam("tenant"), rooms.c.room_id == bindparam("room_id"))
    return select(rooms.c.room_key).where(named).scalar_subquery()


def in_locked_room(table: Table) -> ColumnElement[bool]:
    """Rows of the room that the parameters `tenant` and `room_key` name."""
    return and_(table.c.room_key == bindparam("room_key"), table.c.tenant == bindparam("tenant"))
