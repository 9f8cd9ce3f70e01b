"""Damaging a store by hand, and checking it."""

from roomlore.core.integrity import VerifyReport
from roomlore.services.privacy.verify import IndexChecks, Verifier
from roomlore.storage import Storage
from roomlore_testkit import FrozenClock, backends
from storage_contracts.texts import TENANT


async def damage(storage: Storage, sql: str) -> None:
    async with storage.writing() as work:
        for statement in sql.split("; "):
            await work.connection.run(statement)


async def unguarded(storage: Storage, table: str, *sql: str) -> None:
    """Without the foreign key that keeps rows of messages that are not there away."""
    async with storage.outside() as connection:
        if connection.dialect.name == "sqlite":
            await connection.run("PRAGMA foreign_keys = OFF")
        else:
            await connection.run(f"ALTER TABLE {table} DROP CONSTRAINT fk_{table}_messages")
        for statement in sql:
            await connection.run(statement)


async def verify(storage: Storage, scope: str | None = None) -> VerifyReport:
    indexes = IndexChecks(storage=storage, vectors=None)
    return await Verifier(backends(storage=storage, clock=FrozenClock()), indexes=indexes).verify(
        tenant=TENANT, scope=scope, progress=None
    )
