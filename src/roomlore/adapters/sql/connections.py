"""The pool of connections of one database, and connections to PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from sqlalchemy import Dialect

from roomlore.adapters.sql.engine import WAIT_SECONDS, Connection, Row, Statement, shielded, translated
from roomlore.core.errors import StorageBusy

if TYPE_CHECKING:
    import psycopg
    from sqlalchemy import PoolProxiedConnection
    from sqlalchemy.ext.asyncio import AsyncEngine

C = TypeVar("C", bound=Connection)


class Source(Protocol[C]):
    """The maker of a pool's connections."""

    async def open(self) -> C:
        """Return a new connection. Raises `StorageUnavailable` if there is none."""

    async def close(self, connection: C) -> None:
        """Close a connection that nobody uses."""

    async def drop(self, connection: C) -> None:
        """Close a connection that may be inside a transaction or call."""

    async def end(self) -> None:
        """Release what the connections shared."""


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

    async def _begin(self) -> None:
        """Begin the transaction that `run` was asked for."""
        if self._to_begin:
            self._to_begin = False
            await self._driver.execute(b"BEGIN")

    @asynccontextmanager
    async def together(self) -> AsyncIterator[None]:
        with self._call():
            async with self._pipeline():
                yield

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


@dataclass(frozen=True, slots=True)
class _Held(Generic[C]):
    """A connection in use, with the generation of the pool at that time."""

    connection: C
    age: int


class Connections(Generic[C]):
    """A pool of at most `most` connections. After one breaks, all are replaced, as the others broke with it."""

    def __init__(self, source: Source[C], *, most: int) -> None:
        self._source = source
        self._turns = asyncio.Semaphore(most)
        self._idle: list[_Held[C]] = []
        self._age = 0

    def one(self) -> "_Lease[C]":
        """Yield a connection for one unit of work. Raises `StorageUnavailable` if none is available."""
        return _Lease(self)

    async def take(self) -> "_Held[C]":
        """Return a connection, which its user gives back. Raises as `one` does."""
        await self._turn()
        try:
            return self._idle.pop() if self._idle else await self._opened()
        except BaseException:
            self._turns.release()
            raise

    async def give_back(self, held: "_Held[C]") -> None:
        try:
            if held.age != self._age or held.connection.broken():
                await shielded(self._drop(held))
            elif held.connection.interrupted:
                await shielded(self._source.drop(held.connection))
            else:
                self._idle.append(held)
        finally:
            self._turns.release()

    async def close(self) -> None:
        """Close idle connections now, and the others when they are returned."""
        self._age += 1
        idle, self._idle = self._idle, []
        for held in idle:
            await self._source.close(held.connection)
        await self._source.end()

    async def _turn(self) -> None:
        if not self._turns.locked():
            await self._turns.acquire()
            return
        try:
            async with asyncio.timeout(WAIT_SECONDS):  # `wait_for` may swallow a cancellation that comes now
                await self._turns.acquire()
        except TimeoutError as exc:
            raise StorageBusy("database_busy") from exc

    async def _opened(self) -> _Held[C]:
        age = self._age
        return _Held(await self._source.open(), age)

    async def _drop(self, held: _Held[C]) -> None:
        await self._source.drop(held.connection)
        if held.age == self._age:
            await self.close()


class _Lease(Generic[C]):
    """The use of one connection of a pool."""

    __slots__ = ("_held", "_pool")

    def __init__(self, pool: Connections[C]) -> None:
        self._pool = pool

    async def __aenter__(self) -> C:
        self._held = await self._pool.take()
        return self._held.connection

    async def __aexit__(self, *_: object) -> None:
        await self._pool.give_back(self._held)
