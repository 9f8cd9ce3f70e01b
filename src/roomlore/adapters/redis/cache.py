"""The port `SessionCache` on Redis: keys, connections, translated errors. Two sessions never share a key."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn
from urllib.parse import quote, urlsplit

from redis.asyncio import Connection, ConnectionPool, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.connection import parse_url
from redis.exceptions import AuthenticationError, BusyLoadingError, NoPermissionError, RedisError, ResponseError
from redis.exceptions import ConnectionError as ConnectionLost
from redis.exceptions import TimeoutError as RedisTimeout

from roomlore.core import DEFAULT_TENANT
from roomlore.core.errors import CacheUnavailable, InvalidInput
from roomlore.core.texts import Phrase

_SESSION = b"short_term_memory:session:"


def session_key(*, tenant: str, conversation_id: str) -> bytes:
    """Return `short_term_memory:session:{conversation_id}`, with `{tenant}:` before it except for the default tenant.

    In the tenant's name everything but ASCII letters, digits and `_.-~` is percent-encoded, so that the first colon
    ends it. A lone surrogate becomes the three bytes that UTF-8 would have for it.
    """
    key = _SESSION + as_bytes(conversation_id)
    return key if tenant == DEFAULT_TENANT else f"{quote(as_bytes(tenant), safe='')}:".encode() + key


def as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def as_text(stored: bytes) -> str | None:
    """Return the text, None if the bytes are not UTF-8 text."""
    try:
        return stored.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None


_FORMS = "redis://[user:password@]host[:6379][/database], rediss://... for TLS, or unix:///path/to/redis.sock[?db=0]"
_UNREADABLE = f"The Redis URL cannot be read. Write {_FORMS}; percent-encode what is special in the password."
_OPTIONS = frozenset({"db", "username", "password", "client_name"})
_ADDRESS = frozenset({"host", "port", "path", "connection_class"})


class _ClosedAtOnce:
    """A connection that closes at once, without waiting for sent data or for the end of TLS."""

    _writer: Any

    async def disconnect(self, *args: Any, **kwargs: Any) -> None:
        if self._writer is not None:
            self._writer.transport.abort()
        await super().disconnect(*args, **kwargs)  # type: ignore[misc]


class _Tcp(_ClosedAtOnce, Connection):
    pass


class _Tls(_ClosedAtOnce, SSLConnection):
    pass


class _Unix(_ClosedAtOnce, UnixDomainSocketConnection):
    pass


_KINDS = {"redis": _Tcp, "rediss": _Tls, "unix": _Unix}


def connections_to(url: str, *, most: int) -> ConnectionPool:
    """Return a pool that has not connected yet, without time limits and retries: the caller has both.

    Raises `InvalidInput` for a URL that names no server or has unsupported options.
    """
    kind, options = _read(url)
    # RESP2: every server and proxy speaks it, and it has no push messages.
    given = {**options, "protocol": 2, "socket_timeout": None, "socket_connect_timeout": None}
    pool = ConnectionPool(connection_class=kind, max_connections=most, **given)
    try:
        pool.make_connection()  # type: ignore[no-untyped-call]
    except (RedisError, TypeError, ValueError):
        raise InvalidInput("redis_option_value_invalid") from None
    return pool


def _read(url: str) -> tuple[Any, dict[str, Any]]:
    try:
        parts = urlsplit(url)
        options: dict[str, Any] = dict(parse_url(url))
    except ValueError:
        raise InvalidInput(_UNREADABLE) from None
    if parts.fragment or not _is_valid_path(parts.scheme, parts.path, options):
        raise InvalidInput(_UNREADABLE)
    _refuse_unknown_options(options)
    options.pop("connection_class", None)
    return _KINDS[parts.scheme], options


def _is_valid_path(scheme: str, path: str, options: dict[str, Any]) -> bool:
    """Return True if the URL's path is valid. redis-py takes database 0 for a path that is no number, and localhost if
    the socket has no path."""
    if scheme == "unix":
        return bool(options.get("path"))
    return re.fullmatch(r"/?|/\d{1,9}", path) is not None


def _refuse_unknown_options(options: dict[str, Any]) -> None:
    for name in options.keys() - _OPTIONS - _ADDRESS:
        if not name.startswith("ssl_"):
            known = ", ".join(sorted(_OPTIONS))
            raise InvalidInput("redis_option_unknown", name=repr(name), known=known)


# The last two: an invalid number, and deeply nested lists.
_CONNECTION_ERRORS = (RedisError, OSError, ValueError, RecursionError)


@contextmanager
def translated() -> Iterator[None]:
    """Translate redis-py's errors to `CacheUnavailable`."""
    try:
        yield
    except _CONNECTION_ERRORS as exc:
        raise CacheUnavailable(_advice(_told_by_server(exc))) from exc


def is_of_another_type(exc: ResponseError) -> bool:
    """Return True if the key holds another type, such as a list or a set, which another program stored."""
    return str(exc).startswith("WRONGTYPE")


def _told_by_server(exc: Exception) -> Exception:
    """Return the error of the server. On a Unix socket redis-py hides a refused login behind a lost connection."""
    return exc.__cause__ if isinstance(exc, ConnectionLost) and isinstance(exc.__cause__, RedisError) else exc


def _advice(exc: Exception) -> str:
    kind = type(exc).__name__
    if isinstance(exc, TimeoutError | RedisTimeout):
        return Phrase("redis_late")
    if isinstance(exc, AuthenticationError | NoPermissionError):
        return Phrase("redis_login_refused", kind=kind)
    if isinstance(exc, BusyLoadingError):
        return Phrase("redis_loading")
    if isinstance(exc, ResponseError):
        return Phrase("redis_command_refused", kind=kind)
    if isinstance(exc, ConnectionLost | OSError):
        return Phrase("redis_unreachable", kind=kind)
    return Phrase("redis_foreign", kind=kind)


CONNECTIONS = 32


class RedisSessions:
    """The port `SessionCache` in one Redis server. A call waits if all connections are in use.

    redis-py closes a connection on which a call was interrupted before the error is raised, so no later call reads the
    rest of that answer.
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
        """Wait for the running calls, each of which ends within its time limit, and close."""
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
            raise CacheUnavailable("cache_closed")


async def _exchange_again_if_lost(connection: Connection, *command: bytes | int) -> object:
    """Run a command, again after a lost connection: connections to a restarted server look open until they are used.
    Every command is idempotent."""
    try:
        return await _exchange(connection, *command)
    except ConnectionLost:
        return await _exchange(connection, *command)


async def _exchange(connection: Connection, *command: bytes | int) -> object:
    """Run one command and return its answer. Connect first if the connection was lost."""
    await connection.send_command(*command)
    return await connection.read_response()


def _not_redis() -> NoReturn:
    raise CacheUnavailable("redis_answer_foreign")
