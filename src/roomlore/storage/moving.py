"""The two sides of a move of a whole store: rows in the order of their keys, from one moment, and written as they are.

Calls block. While a move is under way the target has the stamp `MOVING`, so that nobody opens it, and no foreign keys:
rows of different moments may stand in it. Its table `moving` says how far the first copy of each table is, and what is
made again at the end.
"""

import json
import sqlite3
import struct
from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import StaticPool, create_engine
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

from roomlore.core.errors import InvalidInput, StorageBusy, StorageDamaged, StorageUnavailable
from roomlore.core.moving import MOVING, OWN, WAYS, Key, Row
from roomlore.storage import migrations
from roomlore.storage.inspection import MERGE_WORDS
from roomlore.storage.opening import file_of, is_in_memory, parse, upgrade
from roomlore.storage.rows import unescape
from roomlore.storage.schema import metadata
from roomlore.storage.shapes import MESSAGE
from roomlore.storage.sqlite import opened
from roomlore.storage.words import MAX_LENGTH, before, spell_message, vector_text, words_in

_PAGE = 1_000
_DELETED_AT_ONCE = 5_000
_STAMPS = 1 << 36
"""As in the keys of vectors in SQL: those of a scope begin at so many times the scope's key."""
_SIGNS = {"after": ">", "first": ">=", "last": "<="}
_LOCK = 7_266_716
_STATE = "CREATE TABLE IF NOT EXISTS moving (name TEXT PRIMARY KEY, value TEXT NOT NULL)"
_NOTE = "INSERT INTO moving (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_DIALECT = SQLiteDialect_pysqlite()
_OF_CURRENT = (
    "(SELECT v.scope_key, v.number, v.vector FROM vectors v JOIN vector_scopes s ON s.scope_key = v.scope_key"
    " JOIN vector_collections c ON c.collection = s.collection AND c.epoch = s.epoch WHERE v.vector IS NOT NULL) its"
)


@dataclass(frozen=True, slots=True)
class _Form:
    """How the rows of a table are read: `columns` as they are called, those of the key first, and `read` as SQL."""

    columns: tuple[str, ...]
    key: int
    read: tuple[str, ...]
    place: str


class Side(ABC):
    """A store at one end of a move."""

    engine: str
    clash: type[Exception]
    """What is raised for a row whose key, or another unique value, is there."""
    _raw: Any
    _dialect: str
    _size: str
    _names: str
    compacting: Sequence[str]
    """The statements after which deleted rows cannot be read in files."""
    vectors = vectors_there = "sql"
    """How this side keeps vectors, 'sql' or 'pgvector', and how the target does."""
    vector_tables: Mapping[str, str] = {}
    """The tables of pgvector, by collection."""
    vectors_alone = False
    """Vectors are told without their stamps, since one side has none."""

    def __init__(self, name: str) -> None:
        self.name = name
        """The address, without a password."""

    @abstractmethod
    def run(self, sql: str, *params: Any) -> list[Row]:
        """Return the rows of a statement with `?` for its parameters."""

    @abstractmethod
    def _stream(self, sql: str, params: Sequence[Any]) -> Iterator[list[Row]]: ...

    @abstractmethod
    def _insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None: ...

    @abstractmethod
    def _many(self, sql: str, rows: Sequence[Row]) -> None: ...

    @abstractmethod
    def snapshot(self) -> Any:
        """Return a context in which everything is read as it is at one moment."""

    @abstractmethod
    def transaction(self) -> Any: ...

    @abstractmethod
    def claim(self) -> None:
        """Keep another move away. Raise `StorageBusy`."""

    @abstractmethod
    def others(self) -> int:
        """Return how many other programs have the store open, as far as that is known."""

    def size(self) -> int:
        """Return the bytes of the store."""
        return int(self.run(self._size)[0][0])

    def _tables(self) -> set[str]:
        return {name for (name,) in self.run(self._names)}

    def _loosen(self, *, fresh: bool) -> list[str]:
        """Give up what is in the way of single rows. Return the statements that make it again."""
        return []

    @abstractmethod
    def _tighten(self, later: Sequence[str]) -> None: ...

    def close(self) -> None:
        self._raw.close()

    def version(self) -> str | None:
        """Return the stamp; None without one."""
        stamped = "alembic_version" in self._tables()
        return self.run("SELECT version_num FROM alembic_version")[0][0] if stamped else None

    def is_older(self) -> bool:
        """Return True if the tables are of an earlier version. Raise `StorageUnavailable` if they are being filled, or
        of a later one."""
        version = self.version() or ""
        if version > migrations.HEAD:
            raise StorageUnavailable("database_being_moved" if version == MOVING else "database_too_new")
        return version != migrations.HEAD

    def existing(self, names: Iterable[str]) -> list[str]:
        """Return which of these tables there are."""
        there = self._tables()
        return [name for name in names if name in there]

    def counts(self, names: Iterable[str]) -> dict[str, int]:
        """Return the number of rows of each of these tables. That of vectors is without the removed ones."""
        counted = "SELECT count(*) FROM {}"
        return {name: self.run(counted.format(self._form(name).place))[0][0] for name in names}

    def bring_on(self) -> None:
        """Make the tables of a new store, or run the missing migrations, unless a move into it is under way."""
        if self.version() != MOVING:
            alone: Any = {"poolclass": StaticPool, "pool_reset_on_return": None, "isolation_level": "AUTOCOMMIT"}
            with create_engine(self._dialect, creator=lambda: self._raw, **alone).connect() as connection:
                upgrade(connection)

    def mark(self, *, without: Container[str] = ()) -> str:
        """Return a text that changes with the store, but not with the tables left out. Every row is read, so this takes
        time in proportion to them. Call it in a snapshot or a transaction."""
        digest = blake2b(digest_size=16)
        for name in (name for name in copied_tables() if name not in without):
            keys = ", ".join(column.name for column in metadata.tables[name].primary_key)
            digest.update(name.encode())
            for row in chain.from_iterable(self._stream(f"SELECT * FROM {name} ORDER BY {keys}", ())):  # noqa: S608
                digest.update(repr(row).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def pages(self, table: str, *, form: str, **ends: Key | None) -> Iterator[list[Row]]:
        """Yield the rows by key, as the engine `form` is given them: those above `after`, or from `first` to `last`."""
        its = self._form(table)
        keys, marks = ", ".join(its.columns[: its.key]), ", ".join("?" * its.key)
        within = {f"({keys}) {_SIGNS[name]} ({marks})": at for name, at in ends.items() if at}
        where = f" WHERE {' AND '.join(within)}" if within else ""
        sql = f"SELECT {', '.join(its.read)} FROM {its.place}{where} ORDER BY {keys}"  # noqa: S608
        for page in self._stream(sql, list(chain(*within.values()))):
            yield self._formed(table, page, form)

    def put(self, table: str, rows: Sequence[Row], *, noted: Mapping[str, str] | None = None) -> None:
        """Insert rows in this engine's form, and note what is to be known then, all or nothing."""
        columns = self._form(table).columns
        if table == "vectors" and self.vectors_alone and self.vectors == "sql":
            tenants: dict[int, str] = dict(self.run("SELECT scope_key, tenant FROM vector_scopes"))
            columns = (*columns, "vector_key", "tenant")
            rows = [(*row, row[0] * _STAMPS + row[1], tenants[row[0]]) for row in rows]
        with self.transaction():
            self._insert(table, columns, rows)
            for name, value in (noted or {}).items():
                self.note(name, value)

    def drop(self, table: str, keys: Sequence[Key]) -> None:
        """Delete the rows with these keys."""
        its = self._form(table)
        same = " AND ".join(f"{name} = ?" for name in its.columns[: its.key])
        statements = [f"DELETE FROM {place} WHERE {same}" for place in self._places(table)]  # noqa: S608
        if table == "message_words":  # the index of SQLite follows updates, not deletions
            statements.insert(0, f"UPDATE message_words SET words = '', length = 0 WHERE {same}")  # noqa: S608
        for begin in range(0, len(keys), _DELETED_AT_ONCE):
            with self.transaction():
                self.note("dropped", table)
                for statement in statements:
                    self._many(statement, keys[begin : begin + _DELETED_AT_ONCE])

    def noted(self) -> dict[str, str]:
        """Return what was noted of a move; nothing without one."""
        return dict(self.run("SELECT name, value FROM moving")) if "moving" in self._tables() else {}

    def begin(self, source: str, *, fresh: bool) -> None:
        """Close the store to all but the move. `fresh`: it is empty."""
        with self.transaction():
            self.run(_STATE)
            self.run("DELETE FROM moving WHERE name = 'finished'")
            self.note("source", source)
            self.note("later", json.dumps(self._loosen(fresh=fresh)))
            self.run("UPDATE alembic_version SET version_num = ?", MOVING)

    def finish(self) -> None:
        """Make again what `begin` gave up, and open the store to all. Deleted rows cannot be read in its files. Raise
        `StorageDamaged` if rows refer to missing ones."""
        if "dropped" in self.noted():
            for statement in self.compacting:
                self.run(statement)
        with self.transaction():
            self._tighten(json.loads(self.noted()["later"]))
            self.run("DELETE FROM moving WHERE name <> 'source'")
            self.note("finished", self.mark(without=READ))
            self.run("UPDATE alembic_version SET version_num = ?", migrations.HEAD)

    def collections(self) -> list[Row]:
        """Return each collection of vectors: its name, model, dimensions and generation, and its kind."""
        return self.run("SELECT collection, model, dimensions, generation, kind FROM vector_collections")

    def note(self, name: str, value: str) -> None:
        self.run(_NOTE, name, value)

    def holds_data(self) -> list[str]:
        """Return the tables of `OWN` that have rows."""
        return [name for name, count in self.counts(self.existing(OWN)).items() if count]

    def key_size(self, table: str) -> int:
        """Return how many columns the key of a table has."""
        return self._form(table).key

    def _places(self, table: str) -> list[str]:
        """Return the tables that hold the rows."""
        own = table == "vectors" and self.vectors == "pgvector"
        return list(self.vector_tables.values()) if own else [table]

    def _form(self, table: str) -> _Form:
        if table == "vectors" and self.vectors_alone:
            of_vectors = ("scope_key", "number", "vector")
            return _Form(of_vectors, 2, of_vectors, self._current())
        its = metadata.tables[table]
        keys = [column.name for column in its.primary_key]
        columns: tuple[str, ...] = (*keys, *(column.name for column in its.c if column.name not in keys))
        return _Form(columns, len(keys), tuple(self._read(table, name) for name in columns), table)

    def _read(self, table: str, column: str) -> str:
        """Return how a column is read."""
        if column in WAYS[table].idle:
            return "NULL"
        if (table, column) == ("message_words", "words"):
            return f"CAST({column} AS TEXT)"
        if self.vectors_there == self.vectors:
            return column
        if (table, column) == ("vector_collections", "kind"):
            return f"'{self.vectors_there}'"
        if (table, column) == ("vector_scopes", "stamp") and self.vectors == "pgvector":
            highest = f"SELECT max(number) FROM {self._current()} WHERE its.scope_key = vector_scopes.scope_key"  # noqa: S608
            return f"greatest(stamp, coalesce(({highest}), 0))"
        return column

    def _current(self) -> str:
        """Return the vectors that are searched: scope, number, and the vector in the form of pgvector, or of SQL."""
        if self.vectors != "pgvector":
            return _OF_CURRENT
        halves = "SELECT scope_key, number, halfvec_send(embedding) AS vector FROM {}"
        every = [halves.format(place) for place in self._places("vectors")]
        none = "SELECT NULL::bigint AS scope_key, NULL::bigint AS number, NULL::bytea AS vector WHERE false"
        return f"({' UNION ALL '.join(every or [none])}) its"

    def _formed(self, table: str, rows: list[Row], form: str) -> list[Row]:
        if table == "message_words":
            return [self._words(row, form) for row in rows]
        if table == "vectors" and self.vectors == "pgvector":
            return [(scope, number, _turned(vector[4:], ">f2", "<f2")) for scope, number, vector in rows]
        return rows

    def _words(self, row: Row, form: str) -> Row:
        """Return a row of words as the engine `form` has it, the words in order of the alphabet."""
        room_key, arrival, _, length, _, text, _ = row
        if form == "sqlite":
            words = words_in(text).split(" ")
            if self.engine != form and text and (length >= MAX_LENGTH or len(words) != length):
                words = self._spelled(room_key, arrival).split(" ")
        else:
            spelled = vector_text(text.split(" "), before(room_key)) if self.engine != form and text else text
            words = spelled.split(" ")
        return (*row[:5], " ".join(sorted(words)), row[6])

    def _spelled(self, room_key: int, arrival: int) -> str:
        """Return the words of a message that repeats some more often than a tsvector counts, as SQLite has them."""
        columns = ", ".join(column.name for column in MESSAGE.columns)
        row = self.run(f"SELECT {columns} FROM messages WHERE room_key = ? AND arrival = ?", room_key, arrival)[0]  # noqa: S608
        restored = tuple(unescape(value) if isinstance(value, str) else value for value in row)
        message = MESSAGE.read_checked(restored, "")
        return spell_message(message, room_key, _DIALECT, arrival).words


def _turned(data: bytes, given: str, wanted: str) -> bytes:
    return np.frombuffer(data, given).astype(wanted).tobytes()


READ = ("context_usage_records",)
"""The tables that reading writes: a target is not used by a few contexts that were asked of it to check the move."""


def copied_tables() -> list[str]:
    return [name for name, way in WAYS.items() if not way.left]


class SqliteSide(Side):
    """A file of SQLite."""

    engine = "sqlite"
    clash = sqlite3.IntegrityError
    _dialect = "sqlite://"
    compacting = (MERGE_WORDS, "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)")
    _size = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
    _names = "SELECT name FROM sqlite_master WHERE type = 'table'"

    def __init__(self, name: str, file: Path, *, writes: bool) -> None:
        super().__init__(name)
        self._file, self._settings = file, _AS_TARGET if writes else _AS_SOURCE
        with _busy():
            self._raw = opened(parse(f"sqlite:///{file}"), *self._settings)

    def run(self, sql: str, *params: Any) -> list[Row]:
        rows: list[Row] = self._raw.execute(sql, params).fetchall()
        return rows

    def _stream(self, sql: str, params: Sequence[Any]) -> Iterator[list[Row]]:
        cursor = self._raw.execute(sql, params)
        while page := cursor.fetchmany(_PAGE):
            yield page

    def _insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        names, values = ", ".join(columns), ", ".join("?" * len(columns))
        self._many(f"INSERT INTO {table} ({names}) VALUES ({values})", rows)  # noqa: S608

    def _many(self, sql: str, rows: Sequence[Row]) -> None:
        self._raw.executemany(sql, rows)

    @contextmanager
    def transaction(self, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
        self._raw.execute(begin)
        try:
            yield
            self._raw.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._raw.execute("ROLLBACK")
            raise

    def snapshot(self) -> Any:
        return self.transaction("BEGIN")

    def claim(self) -> None:
        with _busy(), self.transaction("BEGIN EXCLUSIVE"):
            pass

    def others(self) -> int:
        self._raw.close()  # it would be counted
        try:
            with closing(opened(parse(f"sqlite:///{self._file}"), *_ALONE)) as alone:
                alone.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            return 1
        finally:
            self._raw = opened(parse(f"sqlite:///{self._file}"), *self._settings)
        return 0

    def _tighten(self, later: Sequence[str]) -> None:
        if missing := self.run("PRAGMA foreign_key_check"):
            raise StorageDamaged("move_rows_missing", table=missing[0][0], count=len(missing))


_ALONE = ("PRAGMA busy_timeout = 0", "PRAGMA locking_mode = EXCLUSIVE")
"""In this mode SQLite lets nobody else have the file open."""
_AS_SOURCE = ("PRAGMA query_only = ON",)
_AS_TARGET = (
    *_ALONE,
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA foreign_keys = OFF",
    "PRAGMA cache_size = -131072",
    "PRAGMA wal_autocheckpoint = 16000",
)


@contextmanager
def _busy() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise
        raise StorageBusy("move_target_in_use") from error


_SETTINGS = (
    "synchronous_commit = off",
    "extra_float_digits = 1",
    "maintenance_work_mem = '256MB'",
    "work_mem = '64MB'",
    "client_connection_check_interval = '500ms'",
    "lock_timeout = '3s'",
)
"""Lost batches are found by comparing. The server lets a killed move go within the time that the next one waits."""
_FOREIGN_KEYS = """
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE contype = 'f' AND conparentid = 0 AND conrelid = ANY (SELECT to_regclass(name) FROM unnest(?::text[]) AS name)
"""
_WORDS = "SELECT pg_get_indexdef(to_regclass('ix_message_words_words'))"
_OTHERS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND coalesce(backend_type, 'client backend') = 'client backend'"
)
"""A role without `pg_monitor` is not told the kinds of other roles' processes."""


class PostgresSide(Side):
    """A database of PostgreSQL."""

    engine = "postgresql"
    _dialect = "postgresql+psycopg://"
    compacting = (f"VACUUM {', '.join(WAYS)}",)
    _size = "SELECT pg_database_size(current_database())"
    _names = "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND pg_table_is_visible(oid)"

    def __init__(self, name: str, url: str) -> None:
        import psycopg

        super().__init__(name)
        self.clash = psycopg.IntegrityError
        given = parse(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._raw: psycopg.Connection[Any] = psycopg.connect(given, autocommit=True, connect_timeout=10)
        if self.run("SELECT pg_backend_pid()")[0][0] != self._raw.info.backend_pid:
            self.close()
            raise InvalidInput("move_through_pooler")
        for setting in _SETTINGS:
            with suppress(psycopg.Error):  # an older server does not know it
                self.run(f"SET {setting}")

    def run(self, sql: str, *params: Any) -> list[Row]:
        cursor = self._raw.execute(sql.replace("?", "%s").encode(), params or None)
        return cursor.fetchall() if cursor.description else []

    def _stream(self, sql: str, params: Sequence[Any]) -> Iterator[list[Row]]:
        with self._raw.cursor("moved") as cursor:
            cursor.execute(sql.replace("?", "%s").encode(), params or None)
            while page := cursor.fetchmany(_PAGE):
                yield page

    def _insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        if table == "vectors" and self.vectors == "pgvector":
            self._insert_halves(rows)
            return
        into = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
        with self._raw.cursor() as cursor, cursor.copy(into.encode()) as copy:
            for row in rows:
                copy.write_row(row)

    def _insert_halves(self, rows: Sequence[Row]) -> None:
        """Copy vectors into the tables of their collections, in the binary form of pgvector."""
        collection: dict[int, str] = dict(self.run("SELECT scope_key, collection FROM vector_scopes"))
        for name, place in self.vector_tables.items():
            into = f"COPY {place} (scope_key, number, embedding) FROM STDIN (FORMAT BINARY)"
            with self._raw.cursor() as cursor, cursor.copy(into.encode()) as copy:
                copy.write(_HEAD)
                for scope_key, number, vector in rows:
                    if collection[scope_key] == name:
                        half = struct.pack(">HH", len(vector) // 2, 0) + _turned(vector, "<f2", ">f2")
                        copy.write(struct.pack(">hiqiqi", 3, 8, scope_key, 8, number, len(half)) + half)
                copy.write(_TAIL)

    def _many(self, sql: str, rows: Sequence[Row]) -> None:
        with self._raw.cursor() as cursor:
            cursor.executemany(sql.replace("?", "%s").encode(), rows)

    def transaction(self) -> Any:
        return self._raw.transaction()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._raw.transaction():
            self.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield

    def claim(self) -> None:
        import psycopg

        try:
            self.run("SELECT pg_advisory_lock(?)", _LOCK)
        except psycopg.errors.LockNotAvailable as error:
            raise StorageBusy("move_target_in_use") from error
        self.run("RESET lock_timeout")

    def others(self) -> int:
        return int(self.run(_OTHERS)[0][0])

    def _loosen(self, *, fresh: bool) -> list[str]:
        later = []
        for table, name, definition in self.run(_FOREIGN_KEYS, list(WAYS)):
            self.run(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
            later.append(f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}")
        if fresh:
            later.append(self.run(_WORDS)[0][0].replace(" ON ONLY ", " ON "))
            self.run("DROP INDEX ix_message_words_words")
        return later

    def _tighten(self, later: Sequence[str]) -> None:
        for statement in ("SET LOCAL synchronous_commit = on", *later):
            self.run(statement)
        for name in copied_tables():
            if (column := metadata.tables[name].autoincrement_column) is not None:
                highest = f"greatest(max({column.name}), 1), max({column.name}) IS NOT NULL"
                self.run(f"SELECT setval(pg_get_serial_sequence('{name}', '{column.name}'), {highest}) FROM {name}")  # noqa: S608


_HEAD, _TAIL = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"
"""What stands before and after the rows of a copy in binary."""


def side_name(url: str) -> str:
    """Return the address by which a store is called, without a password. Raise `InvalidInput` for one in memory."""
    parsed, file = parse(url), file_of(parse(url))
    if is_in_memory(url):
        raise InvalidInput("move_in_memory")
    return f"sqlite:///{file.absolute()}" if file else parsed.render_as_string(hide_password=True)


def open_side(url: str, *, writes: bool = False) -> Side:
    """Return a side of a move. `writes`: it is the target. Raise `InvalidInput` for a database in memory or behind a
    pooler or without its driver, and `StorageBusy` if the target is in use."""
    file = file_of(parse(url))
    if file is None and find_spec("psycopg") is None:
        raise InvalidInput("postgres_not_installed")
    return SqliteSide(side_name(url), file, writes=writes) if file else PostgresSide(side_name(url), url)
