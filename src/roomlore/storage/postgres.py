"""Engines of PostgreSQL with their connections."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Dialect, event

from roomlore.core.errors import InvalidInput
from roomlore.storage.engine import WAIT_SECONDS, Change, Row, Statement, translated

if TYPE_CHECKING:
    import psycopg
    from sqlalchemy import PoolProxiedConnection
    from sqlalchemy.ext.asyncio import AsyncEngine

POSTGRES_POOL = 10
ALONG_INDEXES = (
    *(
        f"SET {setting} = off"
        for setting in ("jit", "enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin")
    ),
    "SET plan_cache_mode = force_generic_plan",
)
"""Every query is written for an index; these settings make PostgreSQL use one before it has statistics. So no parameter
needs its own plan, and planning, most of a short query's time, is done once."""


def _prepared(connection: Any, _record: Any) -> None:
    """Prepare a new connection. Behind a pooler that lends its sessions for single transactions, statements are not
    prepared and settings are not changed: both would stay in a session of others."""
    try:
        cursor = connection.cursor()
        if _is_pooled(connection, cursor):
            connection.driver_connection.prepare_threshold = None
        else:
            for setting in ALONG_INDEXES:
                cursor.execute(setting)
        cursor.close()
        connection.commit()
    except BaseException:
        connection.close()
        raise


def _is_pooled(connection: Any, cursor: Any) -> bool:
    """Return True if the session is not the one that answered the connection: PgBouncer makes numbers of its own up."""
    cursor.execute("SELECT pg_backend_pid()")
    return bool(cursor.fetchone()[0] != connection.driver_connection.info.backend_pid)


def postgres_engine(url: URL) -> "AsyncEngine":
    """Return an engine in autocommit mode. Raises `InvalidInput` if the extra is missing."""
    if find_spec("psycopg") is None:
        raise InvalidInput("postgres_not_installed")
    from sqlalchemy.ext.asyncio import create_async_engine

    from roomlore.storage import halves

    halves.register()
    engine = create_async_engine(
        url.set(drivername="postgresql+psycopg"),
        isolation_level="AUTOCOMMIT",
        paramstyle="format",
        pool_size=POSTGRES_POOL,
        pool_timeout=WAIT_SECONDS,
        pool_reset_on_return=None,
        connect_args={"connect_timeout": 10},
    )
    event.listen(engine.sync_engine, "connect", _prepared)
    return engine


@cache
def _pipelines() -> bool:
    """Return True if the installed libpq has pipelines, as it does from version 14 on."""
    from psycopg import AsyncPipeline

    return AsyncPipeline.is_supported()


class PostgresConnection:
    """psycopg 3, with server-side prepared statements after a few uses."""

    def __init__(self, pooled: "PoolProxiedConnection", dialect: Dialect) -> None:
        self.pooled = pooled
        self._driver: psycopg.AsyncConnection[Any] = pooled.driver_connection  # type: ignore[assignment]
        self.dialect = dialect
        self.interrupted = False
        self._to_begin = False
        self._pipelines = _pipelines()

    async def fetch(self, statement: Statement, **params: Any) -> Sequence[Row]:
        compiled, bound = statement.bound(self.dialect, params)
        with self._call():
            async with self._pipeline() if self._to_begin else nullcontext():
                await self._begin()
                cursor = await self._driver.execute(compiled.sql, bound)
            return compiled.read(await cursor.fetchall()) if compiled.answers or cursor.description else []

    async def fetch_locked(self, lock: Statement, statement: Statement, **params: Any) -> Sequence[Row]:
        compiled, bound = statement.bound(self.dialect, params)
        locking, locked = lock.bound(self.dialect, params)
        with self._call():
            async with self._pipeline():
                await self._begin()
                await self._driver.execute(locking.sql, locked)
                cursor = await self._driver.execute(compiled.sql, bound)
            return compiled.read(await cursor.fetchall())

    async def many(self, statement: Statement, rows: Iterable[Row]) -> None:
        sql, stored = statement.bound_rows(self.dialect, rows)
        with self._call():
            await self._begin()
            async with self._driver.cursor() as cursor:
                await cursor.executemany(sql, stored)

    async def run(self, sql: str) -> None:
        with self._call():
            if sql == "BEGIN":
                self._to_begin = True  # It goes with the first statement.
            elif self._to_begin and sql in ("COMMIT", "ROLLBACK"):
                self._to_begin = False
            else:
                await self._begin()
                await self._driver.execute(sql.encode())

    async def commit(self, *, brief: bool) -> None:
        await self.run("COMMIT")

    async def _begin(self) -> None:
        """Begin the transaction that `run` was asked for."""
        if self._to_begin:
            self._to_begin = False
            await self._driver.execute(b"BEGIN")

    async def write(
        self, changes: Sequence[Change], statement: Statement, params: Mapping[str, Any], *, brief: bool
    ) -> Sequence[Row]:
        compiled, bound = statement.bound(self.dialect, params)
        with self._call():
            async with self._pipeline():
                await self._begin()
                for change, rows in changes:
                    sql, stored = change.bound_rows(self.dialect, rows)
                    async with self._driver.cursor() as cursor:
                        await cursor.executemany(sql, stored)
                cursor = await self._driver.execute(compiled.sql, bound)
            return compiled.read(await cursor.fetchall())

    @asynccontextmanager
    async def _pipeline(self) -> AsyncIterator[None]:
        """Send statements without waiting for the one before, if libpq can. An error in the block is raised after the
        pipeline has ended: psycopg logs as ignored what fails at the end because of it."""
        if not self._pipelines:
            yield
            return
        failed: Exception | None = None
        try:
            async with self._driver.pipeline():
                try:
                    yield
                except Exception as error:  # noqa: BLE001 - it is raised below
                    failed = error
        except Exception:
            if failed is None:
                raise
        if failed is not None:
            raise failed

    @contextmanager
    def _call(self) -> Iterator[None]:
        """Translate errors, and note a cancellation: psycopg may then count on a prepared statement that the server
        does not have."""
        try:
            with translated():
                yield
        except asyncio.CancelledError:
            self.interrupted = True
            raise

    def broken(self) -> bool:
        return self._driver.closed or self._driver.info.transaction_status.name != "IDLE"

    def committed_elsewhere(self) -> int | None:
        return None


class PostgresSource:
    """Connections of a SQLAlchemy engine."""

    def __init__(self, engine: "AsyncEngine") -> None:
        self._engine = engine

    async def open(self) -> PostgresConnection:
        with translated():
            return PostgresConnection(await self._engine.raw_connection(), self._engine.dialect)

    async def close(self, connection: PostgresConnection) -> None:
        connection.pooled.close()

    async def drop(self, connection: PostgresConnection) -> None:
        from sqlalchemy.util import greenlet_spawn

        await greenlet_spawn(connection.pooled.invalidate)

    async def end(self) -> None:
        await self._engine.dispose()
