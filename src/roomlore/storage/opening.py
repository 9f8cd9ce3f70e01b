"""Opening a database by its address, and bringing its schema up to date.

A new database is made at once without loading Alembic, and Alembic brings it further.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import URL, Connection, StaticPool, create_engine, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError

from roomlore.core.errors import InvalidInput, StorageBusy, StorageUnavailable
from roomlore.core.moving import MOVING
from roomlore.storage import migrations
from roomlore.storage.engine import WAIT_SECONDS, translated
from roomlore.storage.migrations.first_version import FIRST, make, names
from roomlore.storage.migrations.heard_times import ADDED, add_columns, fill_rooms
from roomlore.storage.migrations.pending import add_pending
from roomlore.storage.migrations.smaller_rows import SMALLER, make_smaller
from roomlore.storage.migrations.topics import add_topics
from roomlore.storage.postgres import POSTGRES_POOL, PostgresSource, postgres_engine
from roomlore.storage.sqlite import Driver, OpenFile, Pace, SqliteSource, opened
from roomlore.storage.store import Connections, Storage

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

_FORMS = "use sqlite:///path, sqlite:// (memory), postgresql://user@host/name, or a path that ends in .db"
_POSTGRES_NAMES = {"postgres", "postgresql", "postgresql+psycopg"}
SQLITE_NAMES = {"sqlite", "sqlite+aiosqlite"}
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
_WRITING_IN_MEMORY = ("PRAGMA foreign_keys = ON",)
_READING_A_FILE = ("PRAGMA query_only = ON", "PRAGMA cache_size = -16384")
LOCK_OF_POSTGRES = "SELECT pg_advisory_xact_lock(7266713)"
LOCK_TIMEOUT = "SET LOCAL lock_timeout = '500ms'"
"""Shorter than PostgreSQL's `deadlock_timeout`: if another transaction waits for this one, this one gives up."""
_LOCKED = {"55P03", "40P01"}
_KEPT_LOCKED = "database_tables_locked"
PATIENCE_SECONDS = 120.0
PAUSE_SECONDS = 0.2
_SCRIPTS = Path(migrations.__file__).parent
_STAMP = (
    "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, "
    "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))",
    f"INSERT INTO alembic_version (version_num) VALUES ('{SMALLER}')",  # noqa: S608
)
_BEFORE_THE_FIRST = {f"{number:04}" for number in range(1, int(FIRST))}
OF_ROOMS = {"room_key", "tenant", "room_id", "next_arrival"}
"""Columns that the table of rooms has had since the first migration."""
_COPYING = "database_being_partitioned"
_TAKEN = "database_names_taken"
_TOO_OLD = "database_too_old"
_NEWER = "database_too_new"


async def connect(url: str) -> Storage:
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


def parse(url: str) -> URL:
    """Return the URL. Raises `InvalidInput` if it names no supported database."""
    if not isinstance(url, str):
        raise InvalidInput("database_address_not_text", value=f"{url!r:.60}", forms=_FORMS)
    if "://" not in url and url.endswith(".db"):
        return URL.create("sqlite", database=url)
    try:
        parsed = make_url(url)
    except ArgumentError as exc:
        raise InvalidInput("database_address_invalid", forms=_FORMS) from exc
    if parsed.drivername not in SQLITE_NAMES | _POSTGRES_NAMES:
        raise InvalidInput("database_kind_unsupported", kind=repr(parsed.drivername), forms=_FORMS)
    return parsed


def open_as_it_is(url: URL, *, patience_seconds: float = WAIT_SECONDS) -> Storage:
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


def _in_memory(url: URL, driver: Driver) -> Storage:
    gate, pace = asyncio.Lock(), Pace(connections=1)
    readers = SqliteSource(url, pace=pace, shared=driver, gate=gate)
    writers = SqliteSource(url, pace=pace, shared=driver)
    return Storage(Connections(readers, most=_UNITS_IN_MEMORY), Connections(writers, most=1), gate=gate)


def _file(url: URL, patience_seconds: float = WAIT_SECONDS) -> Storage:
    pace = Pace(connections=_READERS + 1, copying=partial(opened, url, "PRAGMA busy_timeout = 0"))
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
    return Storage(Connections(readers, most=_READERS), Connections(writers, most=1), file=checked)


async def _connect_postgres(url: URL) -> Storage:
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


def _pooled(engine: "AsyncEngine") -> Storage:
    pool = Connections(PostgresSource(engine), most=POSTGRES_POOL)
    return Storage(pool, pool)


def upgrade(connection: Connection) -> None:
    """Make a new database, or run the missing migrations. A database that is up to date costs one short query. The
    connection is in autocommit mode."""
    if (there := _version(connection)) == migrations.HEAD:
        return
    if there == MOVING:
        raise StorageUnavailable("database_being_moved")
    _patiently(connection, lambda: _bring_on(connection, to=ADDED))
    if _version(connection) == ADDED:
        fill_rooms(connection, partial(_patiently, connection))
    _patiently(connection, lambda: _bring_on(connection, to="head"))


def _patiently(connection: Connection, step: Callable[[], None]) -> None:
    """Run the step in a transaction, again if other transactions kept a table locked: whoever waits behind it for a
    table waits half a second."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            with _alone(connection):
                step()
            return
        except DBAPIError as error:
            check_is_worth_another_try(error, late=time.monotonic() > until)
        time.sleep(PAUSE_SECONDS)


def check_is_worth_another_try(error: DBAPIError, *, late: bool) -> None:
    """Raise the error unless other transactions kept a table locked, and `StorageBusy` if they did so for too long."""
    if getattr(error.orig, "sqlstate", None) not in _LOCKED:
        raise error
    if late:
        raise StorageBusy(_KEPT_LOCKED) from error


@contextmanager
def _alone(connection: Connection) -> Iterator[None]:
    """Open a transaction with the lock that allows one migrating process at a time."""
    on_postgres = connection.dialect.name == "postgresql"
    connection.exec_driver_sql("BEGIN" if on_postgres else "BEGIN IMMEDIATE")
    try:
        if on_postgres:
            connection.exec_driver_sql(LOCK_OF_POSTGRES)
            connection.exec_driver_sql(LOCK_TIMEOUT)
        yield
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        connection.exec_driver_sql("ROLLBACK")
        raise


def _version(connection: Connection) -> str | None:
    """Return the stored revision, which may be another program's; None in a new database."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    version: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return version


def _bring_on(connection: Connection, *, to: str) -> None:
    """Make the tables of a new database, or run the migrations up to one of them."""
    there = _version(connection)
    if there == migrations.HEAD or (to == ADDED and there not in (None, FIRST)):
        return
    if there is None or not _has_our_rooms(connection):
        _make(connection)
        if migrations.HEAD != SMALLER:
            migrate(connection)
        return
    if there in _BEFORE_THE_FIRST:
        raise StorageUnavailable(_TOO_OLD)
    if connection.dialect.name == "postgresql" and is_copying(connection):
        raise StorageUnavailable(_COPYING)
    migrate(connection, to)


def _has_our_rooms(connection: Connection) -> bool:
    looked = inspect(connection)
    return looked.has_table("rooms") and OF_ROOMS.issubset(column["name"] for column in looked.get_columns("rooms"))


def _make(connection: Connection) -> None:
    """Make the tables of the first version and its stamp, if no other program has tables of these names."""
    if taken_names := _taken(connection):
        raise StorageUnavailable(_TAKEN, taken=", ".join(taken_names))
    make(connection)
    add_columns(connection)
    add_topics(connection)
    add_pending(connection)
    make_smaller(connection)
    for statement in _STAMP:
        connection.exec_driver_sql(statement)


def _taken(connection: Connection) -> list[str]:
    """Return which of our names are taken where new tables are made: in the first schema of the search path."""
    looked = inspect(connection)
    there = [*looked.get_table_names(looked.default_schema_name), *looked.get_view_names(looked.default_schema_name)]
    return taken(there, connection.dialect.name)


def taken(there: Iterable[str], engine: str) -> list[str]:
    """Return which of these names of tables and views are those of roomlore."""
    ours = {"alembic_version", *names(engine)}
    return sorted(name for name in there if (name.lower() if engine == "sqlite" else name) in ours)


def is_copying(connection: Connection) -> bool:
    """Return True if the tables of a PostgreSQL database are being copied into partitions."""
    return bool(connection.exec_driver_sql("SELECT to_regclass('partitioning') IS NOT NULL").scalar_one())


def migrate(connection: Connection, to: str = "head") -> None:
    """Run Alembic, which is loaded here because that takes half a second and most openings do not need it."""
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    try:
        command.upgrade(config, to)
    except CommandError as exc:
        raise StorageUnavailable(_NEWER) from exc
