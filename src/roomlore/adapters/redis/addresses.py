"""A URL -> the connections to the server it names. No text here shows the URL: it may hold a password."""

import re
from typing import Any
from urllib.parse import urlsplit

from redis.asyncio import Connection, ConnectionPool, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.connection import parse_url
from redis.exceptions import RedisError

from roomlore.core.errors import InvalidInput

_FORMS = "redis://[user:password@]host[:6379][/database], rediss://... for TLS, or unix:///path/to/redis.sock[?db=0]"
_UNREADABLE = f"The Redis URL cannot be read. Write {_FORMS}; percent-encode what is special in the password."
_OPTIONS = frozenset({"db", "username", "password", "client_name"})
_ADDRESS = frozenset({"host", "port", "path", "connection_class"})


class _DroppedAtOnce:
    """Closing a connection waits neither for the server to take what was sent nor for TLS to say goodbye."""

    _writer: Any

    async def disconnect(self, *args: Any, **kwargs: Any) -> None:
        if self._writer is not None:
            self._writer.transport.abort()
        await super().disconnect(*args, **kwargs)  # type: ignore[misc]


class _Tcp(_DroppedAtOnce, Connection):
    pass


class _Tls(_DroppedAtOnce, SSLConnection):
    pass


class _Unix(_DroppedAtOnce, UnixDomainSocketConnection):
    pass


_KINDS = {"redis": _Tcp, "rediss": _Tls, "unix": _Unix}


def connections_to(url: str, *, most: int) -> ConnectionPool:
    """A pool that has not connected yet. It has no time limits and never tries again: both are the caller's.

    Raises `InvalidInput` for a URL that names no server, or asks for what cannot be had.
    """
    kind, options = _read(url)
    # RESP2: every server and proxy speaks it, and it brings no messages that nobody asked for.
    given = {**options, "protocol": 2, "socket_timeout": None, "socket_connect_timeout": None}
    pool = ConnectionPool(connection_class=kind, max_connections=most, **given)
    try:
        pool.make_connection()  # type: ignore[no-untyped-call]
    except (RedisError, TypeError, ValueError):
        raise InvalidInput("An option of the Redis URL has a value that cannot be used. Mend or drop it.") from None
    return pool


def _read(url: str) -> tuple[Any, dict[str, Any]]:
    try:
        parts = urlsplit(url)
        options: dict[str, Any] = dict(parse_url(url))
    except ValueError:
        raise InvalidInput(_UNREADABLE) from None
    if parts.fragment or not _names_a_place(parts.scheme, parts.path, options):
        raise InvalidInput(_UNREADABLE)
    _refuse_strangers(options)
    options.pop("connection_class", None)
    return _KINDS[parts.scheme], options


def _names_a_place(scheme: str, path: str, options: dict[str, Any]) -> bool:
    """redis-py takes database 0 for a path that is no number, and this machine where the socket has no path."""
    if scheme == "unix":
        return bool(options.get("path"))
    return re.fullmatch(r"/?|/\d{1,9}", path) is not None


def _refuse_strangers(options: dict[str, Any]) -> None:
    for name in options.keys() - _OPTIONS - _ADDRESS:
        if not name.startswith("ssl_"):
            known = ", ".join(sorted(_OPTIONS))
            raise InvalidInput(f"The Redis URL has the option {name!r}; use only {known} and those of TLS (ssl_...).")
