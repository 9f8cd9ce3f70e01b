"""Brings a database to the schema this code knows, safely beside other processes doing the same."""

from pathlib import Path

from sqlalchemy import Connection, inspect, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from roomlore.adapters.sql import fresh, migrations
from roomlore.core.errors import StorageUnavailable

_LOCK_OF_POSTGRES = "SELECT pg_advisory_xact_lock(7266713)"
_SCRIPTS = Path(migrations.__file__).parent


async def upgrade(engine: AsyncEngine) -> None:
    """Runs what migrations are missing. A database at head costs one short query, and a new SQLite database is made
    at once; neither loads Alembic."""
    async with engine.connect() as connection:
        if await _version(connection) == migrations.HEAD:
            return
        await _begin(connection)
        try:
            if await _version(connection) != migrations.HEAD:
                await connection.run_sync(_bring_to_head)
            await connection.exec_driver_sql("COMMIT")
        except BaseException:
            await connection.exec_driver_sql("ROLLBACK")
            raise


async def _begin(connection: AsyncConnection) -> None:
    """The lock that lets one process migrate at a time."""
    if connection.dialect.name == "sqlite":
        await connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        await connection.exec_driver_sql("BEGIN")
        await connection.exec_driver_sql(_LOCK_OF_POSTGRES)


async def _version(connection: AsyncConnection) -> str | None:
    """The revision stored, None in a new database."""
    if not await connection.run_sync(_has_versions):
        return None
    version: str | None = await connection.scalar(text("SELECT version_num FROM alembic_version"))
    return version


def _has_versions(connection: Connection) -> bool:
    return inspect(connection).has_table("alembic_version")


def _bring_to_head(connection: Connection) -> None:
    if fresh.is_new(connection):
        fresh.make(connection)
    else:
        migrate(connection)


def migrate(connection: Connection) -> None:
    """Runs Alembic, which is loaded here because it takes half a second and most opens need none of it."""
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    try:
        command.upgrade(config, "head")
    except CommandError as exc:
        raise StorageUnavailable(_NEWER) from exc


_NEWER = (
    "This database was written by a newer roomlore (its schema is unknown to this one): upgrade roomlore, "
    "or name another database."
)
