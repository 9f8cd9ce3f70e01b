"""Schema upgrades: Alembic's migrations, and a new SQLite database created at once without loading Alembic.

`make schema` runs this module, which writes `sqlite.sql` again by running the migrations; a test compares.
"""

import re
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Connection, create_engine, inspect, text

from roomlore.adapters.sql import migrations
from roomlore.core.errors import StorageUnavailable

SCRIPT = Path(migrations.__file__).parent / "sqlite.sql"

_ANYTHING = "SELECT 1 FROM sqlite_master LIMIT 1"
_OWN = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT IN ({others}) ORDER BY rowid"
_STAMP = "SELECT 'INSERT INTO alembic_version (version_num) VALUES (' || quote(version_num) || ')' FROM alembic_version"
_SHADOWS = ("data", "idx", "config")


def is_new(connection: Connection) -> bool:
    """Return True if it is an empty SQLite database, without any table or view."""
    if connection.dialect.name != "sqlite":
        return False
    return connection.exec_driver_sql(_ANYTHING).first() is None


def make(connection: Connection) -> None:
    """Create every table, in the open transaction."""
    for statement in SCRIPT.read_text(encoding="utf-8").strip().split("\n\n"):
        connection.exec_driver_sql(statement)


def statements(connection: Connection) -> str:
    """Return the statements that create a database like this one, with an empty line between them. The only row is
    Alembic's version. Objects that FTS5 and SQLite create by themselves are left out."""
    others = ", ".join(f"'{name}'" for name in ("sqlite_sequence", *(f"message_index_{part}" for part in _SHADOWS)))
    found = connection.exec_driver_sql(_OWN.format(others=others)).scalars()
    stamp = connection.exec_driver_sql(_STAMP).scalars()
    return "\n\n".join(f"{_tidy(sql)};" for sql in (*found, *stamp)) + "\n"


def _tidy(sql: str) -> str:
    return re.sub(r"\s*\n\s*", "\n  ", sql).replace("\n  )", "\n)").strip()


def main() -> None:

    with create_engine("sqlite://").begin() as connection:
        migrate(connection)
        SCRIPT.write_text(statements(connection), encoding="utf-8")


LOCK_OF_POSTGRES = "SELECT pg_advisory_xact_lock(7266713)"
_SCRIPTS = Path(migrations.__file__).parent


def upgrade(connection: Connection, made: Callable[[Connection], None] = lambda _: None) -> None:
    """Run the missing migrations. A database that is up to date costs one short query, and a new SQLite database is
    created at once; neither loads Alembic. The connection is in autocommit mode. `made`: called in the transaction that
    made a new database."""
    if _version(connection) == migrations.HEAD:
        return
    _begin(connection)
    try:
        there = _version(connection)
        if there != migrations.HEAD:
            _bring_to_head(connection)
        if there is None:
            made(connection)
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        connection.exec_driver_sql("ROLLBACK")
        raise


def _begin(connection: Connection) -> None:
    """Take the lock that allows one migrating process at a time."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.exec_driver_sql("BEGIN")
        connection.exec_driver_sql(LOCK_OF_POSTGRES)


def _version(connection: Connection) -> str | None:
    """Return the stored revision, None in a new database."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    version: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return version


def _bring_to_head(connection: Connection) -> None:
    if is_new(connection):
        make(connection)
        return
    if connection.dialect.name == "postgresql" and is_copying(connection):
        raise StorageUnavailable(_COPYING)
    migrate(connection)


def is_copying(connection: Connection) -> bool:
    """Return True if the tables of a PostgreSQL database are being copied into partitions."""
    return bool(connection.exec_driver_sql("SELECT to_regclass('partitioning') IS NOT NULL").scalar_one())


def migrate(connection: Connection) -> None:
    """Run Alembic, which is loaded here because that takes half a second and most openings do not need it."""
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    try:
        command.upgrade(config, "head")
    except CommandError as exc:
        raise StorageUnavailable(_NEWER) from exc


_COPYING = (
    "The tables of this database are being copied into partitions by the roomlore before this one: end that with its "
    "`roomlore partition`, or give it up with `roomlore partition --abandon`. Then upgrade."
)
_NEWER = (
    "This database was written by a newer roomlore (its schema is unknown to this one): upgrade roomlore, "
    "or name another database."
)


if __name__ == "__main__":
    main()
