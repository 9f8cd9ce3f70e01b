"""The connections of one engine, taken out of its pool once and handed from one unit of work to the next.

SQLAlchemy's pool opens and closes them. Going through its check-out each time would cost as much as a short query.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import PoolProxiedConnection
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.util import greenlet_spawn

from roomlore.adapters.sql.drivers import Connection, PostgresConnection, SqliteConnection, translated
from roomlore.core.errors import StorageUnavailable

WAIT_SECONDS = 30


@dataclass(frozen=True, slots=True)
class _Held:
    """A connection taken out, and how often all had started afresh by then."""

    pooled: PoolProxiedConnection
    connection: Connection
    age: int


class Connections:
    """At most `most` connections at once. After one broke, all start afresh: the others broke with it.

    `gate`: where one connection serves all (a database in memory), the lock that its calls take turns by.
    """

    def __init__(self, engine: AsyncEngine, *, most: int, gate: asyncio.Lock | None = None) -> None:
        self._engine = engine
        self._gate = gate
        name = engine.url.database if engine.dialect.name == "sqlite" and not engine.url.query else None
        self._file = Path(name) if name and name != ":memory:" else None
        self._turns = asyncio.Semaphore(most)
        self._idle: list[_Held] = []
        self._age = 0

    @asynccontextmanager
    async def one(self) -> AsyncIterator[Connection]:
        """A connection for one unit of work; `StorageUnavailable` where none can be had."""
        await self._turn()
        try:
            held = self._idle.pop() if self._idle else await self._take()
            try:
                yield held.connection
            finally:
                await self._give_back(held)
        finally:
            self._turns.release()

    async def close(self) -> None:
        """Closes those that are idle; the others follow when they come back."""
        self._age += 1
        idle, self._idle = self._idle, []
        for held in idle:
            held.pooled.close()
        await self._engine.dispose()

    async def _turn(self) -> None:
        if not self._turns.locked():
            await self._turns.acquire()
            return
        try:
            async with asyncio.timeout(WAIT_SECONDS):  # `wait_for` may swallow a cancellation that comes with the turn
                await self._turns.acquire()
        except TimeoutError as exc:
            raise StorageUnavailable("All connections to the database are busy; try again.") from exc

    async def _take(self) -> _Held:
        age = self._age
        with translated(self._file):
            pooled = await self._engine.raw_connection()
        driver: Any = pooled.driver_connection
        dialect = self._engine.dialect
        if dialect.name == "sqlite":
            return _Held(pooled, SqliteConnection(driver, dialect, self._gate, file=self._file), age)
        return _Held(pooled, PostgresConnection(driver, dialect), age)

    async def _give_back(self, held: _Held) -> None:
        if held.age == self._age and not held.connection.broken():
            self._idle.append(held)
        else:
            await to_the_end(self._drop(held))

    async def _drop(self, held: _Held) -> None:
        await greenlet_spawn(held.pooled.invalidate)
        if held.age == self._age:
            await self.close()


async def to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Waits for the work even while being cancelled, so that no connection goes back in the middle of it."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
