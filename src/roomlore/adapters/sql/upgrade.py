"""Schema upgrades: a new database is made at once without loading Alembic, and Alembic brings it further."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DBAPIError

from roomlore.adapters.sql import migrations
from roomlore.adapters.sql.migrations.first_version import FIRST, make, names
from roomlore.adapters.sql.migrations.heard_times import ADDED, add_columns, fill_rooms
from roomlore.adapters.sql.migrations.topics import TOPICS, add_topics
from roomlore.core.errors import StorageBusy, StorageUnavailable

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
    f"INSERT INTO alembic_version (version_num) VALUES ('{TOPICS}')",  # noqa: S608
)
_BEFORE_THE_FIRST = {f"{number:04}" for number in range(1, int(FIRST))}
OF_ROOMS = {"room_key", "tenant", "room_id", "next_arrival"}
"""Columns that the table of rooms has had since the first migration."""


def upgrade(connection: Connection) -> None:
    """Make a new database, or run the missing migrations. A database that is up to date costs one short query. The
    connection is in autocommit mode."""
    if _version(connection) == migrations.HEAD:
        return
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
        if migrations.HEAD != TOPICS:
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
    if found := _taken(connection):
        raise StorageUnavailable(_TAKEN, taken=", ".join(found))
    make(connection)
    add_columns(connection)
    add_topics(connection)
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


_COPYING = "database_being_partitioned"
_TAKEN = "database_names_taken"
_TOO_OLD = "database_too_old"
_NEWER = "database_too_new"
