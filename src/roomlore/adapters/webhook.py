"""A webhook over HTTP/1.1. The name is looked up once, and the connection goes to the address that was checked."""

import asyncio
import socket
import ssl
from collections.abc import Mapping
from functools import cached_property
from urllib.parse import urlsplit

from roomlore.core.addresses import check_public, signed_headers
from roomlore.core.errors import InvalidInput, Unavailable
from roomlore.ports.coordination import Clock

_HEAD = 64 * 1024
SECONDS = 10.0
"""Time for one request: a receiver only takes the digest, and it is sent again."""
_ACCEPTED = range(200, 300)
_REDIRECTS = range(300, 400)


class HttpWebhook:
    """Sends as a `Webhook` does. It follows no redirect and reads of an answer only the status. `private`: addresses
    that are not on the public internet are allowed."""

    def __init__(self, url: str, *, secret: str, private: bool, clock: Clock) -> None:
        """Raise `InvalidInput` for an invalid URL. No request is sent yet."""
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError as error:
            raise InvalidInput("webhook_port_invalid") from error
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or not url.isascii():
            raise InvalidInput("webhook_url_invalid")
        self._is_secure = parts.scheme == "https"
        self._host = parts.hostname
        self._port = port or (443 if self._is_secure else 80)
        self._at = f"[{self._host}]" if ":" in self._host else self._host
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if any(character <= " " for character in self._host + self._target):
            raise InvalidInput("webhook_url_has_spaces")
        self._secret = secret
        self._private = private
        self._clock = clock

    async def send(self, body: bytes, *, message_id: str) -> None:
        seconds = int(self._clock.now().timestamp())
        headers = signed_headers(body, message_id=message_id, seconds=seconds, secret=self._secret)
        try:
            async with asyncio.timeout(SECONDS):
                status = await self._status(body, headers)
        except TimeoutError as error:
            raise Unavailable("webhook_late", host=self._host, seconds=f"{SECONDS:g}") from error
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise Unavailable("webhook_unreachable", host=self._host, kind=type(error).__name__) from error
        if status in _REDIRECTS:
            raise Unavailable("webhook_redirects", host=self._host, status=status)
        if status not in _ACCEPTED:
            raise Unavailable("webhook_refused", host=self._host, status=status)

    async def _status(self, body: bytes, headers: Mapping[str, str]) -> int:
        address = await self._address()
        name = self._host if self._is_secure else None
        reader, writer = await asyncio.open_connection(
            address, self._port, ssl=self._tls, server_hostname=name, limit=_HEAD
        )
        try:
            writer.write(self._head(len(body), headers) + body)
            await writer.drain()
            version, status, *_ = (await reader.readuntil(b"\n")).split(maxsplit=2)
            if not version.startswith(b"HTTP/"):
                raise ValueError("no HTTP")
            return int(status)
        finally:
            writer.close()

    @cached_property
    def _tls(self) -> ssl.SSLContext | None:
        return ssl.create_default_context() if self._is_secure else None

    async def _address(self) -> str:
        resolved = await asyncio.get_running_loop().getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        addresses = [str(address[4][0]) for address in resolved]
        if not self._private:
            check_public(self._host, addresses)
        return addresses[0]

    def _head(self, length: int, headers: Mapping[str, str]) -> bytes:
        given = {
            "Host": f"{self._at}:{self._port}",
            "Content-Type": "application/json",
            "Content-Length": str(length),
            "User-Agent": "roomlore",
            "Connection": "close",
            **headers,
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        return f"POST {self._target} HTTP/1.1\r\n{lines}\r\n".encode("ascii")
