"""The session cache over redis-py."""

import asyncio
from typing import NoReturn

from redis.asyncio import Connection, ConnectionPool
from redis.exceptions import ConnectionError as ConnectionLost
from redis.exceptions import ResponseError

from roomlore.adapters.redis.keys import as_bytes, as_text, session_key
from roomlore.adapters.redis.troubles import is_of_another_type, translated
from roomlore.core.errors import CacheUnavailable

CONNECTIONS = 32


class RedisSessions:
    """`SessionCache` in one Redis server. A call waits where all connections are in use.

    A connection on which a call was broken off, by whatever, is closed: redis-py does so before the error leaves it.
    What the server still answers there reaches nobody.
    """

    def __init__(self, pool: ConnectionPool, *, timeout_seconds: float) -> None:
        self._pool = pool
        self._seconds = timeout_seconds
        self._free = asyncio.Semaphore(CONNECTIONS)
        self._closed = False

    async def get(self, *, tenant: str, conversation_id: str) -> str | None:
        with translated():
            try:
                answer = await self._ask(b"GET", session_key(tenant=tenant, conversation_id=conversation_id))
            except ResponseError as exc:
                if is_of_another_type(exc):
                    return None
                raise
        if answer is not None and not isinstance(answer, bytes):
            _not_redis()
        return None if answer is None else as_text(answer)

    async def put(self, *, tenant: str, conversation_id: str, value: str, seconds: int) -> None:
        key = session_key(tenant=tenant, conversation_id=conversation_id)
        with translated():
            answer = await self._ask(b"SET", key, as_bytes(value), b"EX", seconds)
        if answer != b"OK":
            _not_redis()

    async def drop(self, *, tenant: str, conversation_id: str) -> None:
        with translated():
            answer = await self._ask(b"DEL", session_key(tenant=tenant, conversation_id=conversation_id))
        if not isinstance(answer, int):
            _not_redis()

    async def close(self) -> None:
        """Waits for the calls that run, none of which runs longer than its time."""
        if self._closed:
            return
        self._closed = True
        for _ in range(CONNECTIONS):
            await self._free.acquire()
        with translated():
            await self._pool.aclose()

    async def _ask(self, *command: bytes | int) -> object:
        self._refuse_if_closed()
        async with asyncio.timeout(self._seconds), self._free:
            self._refuse_if_closed()
            connection: Connection = await self._pool.get_connection()  # type: ignore[no-untyped-call]
            try:
                return await _exchange_again_if_lost(connection, *command)
            finally:
                await self._pool.release(connection)

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise CacheUnavailable("This cache was closed. Open another.")


async def _exchange_again_if_lost(connection: Connection, *command: bytes | int) -> object:
    """Connections to a server that was restarted look alive until they are used. Every command bears repeating."""
    try:
        return await _exchange(connection, *command)
    except ConnectionLost:
        return await _exchange(connection, *command)


async def _exchange(connection: Connection, *command: bytes | int) -> object:
    """One command and its answer; connects where the connection was lost."""
    await connection.send_command(*command)
    return await connection.read_response()


def _not_redis() -> NoReturn:
    raise CacheUnavailable("Redis gave an answer to another question. Check that nothing else listens at its address.")
