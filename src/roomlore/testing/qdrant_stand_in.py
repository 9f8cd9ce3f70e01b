"""A Qdrant server on a loopback socket that can be stopped, slowed down, wiped and made to answer rubbish.

It holds everything in memory and searches exactly. It is no Qdrant: a double for tests of what happens when one fails.
"""

import asyncio
import contextlib
import json
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from roomlore.testing.qdrant_store import Holdings, Refusal

Fault = Literal["error", "html", "garbage", "wrong", "half"]

_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 500: "Internal Server Error", 502: "Bad Gateway"}
_FAULTS: dict[str, tuple[int, str, bytes]] = {
    "error": (500, "application/json", b'{"status":{"error":"Service internal error: told to fail"},"time":0.0}'),
    "html": (502, "text/html", b"<html><body><h1>502 Bad Gateway</h1></body></html>"),
    "garbage": (200, "application/json", b'{"result": [{"id": 7, '),
    "wrong": (200, "application/json", b'{"result":{"colour":"blue"},"status":"ok","time":0.0}'),
}


class QdrantStandIn:
    """The server. `async with QdrantStandIn() as qdrant:` starts and stops it.

    `fault`: what every request gets instead of its answer: HTTP 500, the HTML page of a proxy, broken JSON, JSON of
    another shape, or half of the true answer and a broken connection (the work is done then, in the other cases not).
    `delay`: seconds that every request waits first. `only`: where set, both hold for requests whose line
    ('PUT /collections/x/points') contains it. `requests`: those lines, as they came. `holdings`: what it holds.
    """

    def __init__(self, *, api_key: str | None = None) -> None:
        self.fault: Fault | None = None
        self.delay = 0.0
        self.only = ""
        self.requests: list[str] = []
        self.holdings = Holdings()
        self._api_key = api_key
        self._port = 0
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """The address, the same after a stop and a start; known once started."""
        return f"http://127.0.0.1:{self._port}"

    async def start(self) -> None:
        """Takes connections, on the same port as before if it ran before."""
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Breaks all connections and refuses new ones. What it holds is kept."""
        if self._server is None:
            return
        self._server.close()
        for talk in tuple(self._talks):
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    async def wipe(self) -> None:
        """Forgets all collections and aliases."""
        self.holdings = Holdings()

    async def snapshot(self) -> Holdings:
        """A copy of all it holds, for `restore`."""
        return self.holdings.copy()

    async def restore(self, holdings: Holdings) -> None:
        """Goes back to an earlier state."""
        self.holdings = holdings.copy()

    async def __aenter__(self) -> "QdrantStandIn":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._talks.add(task)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while await self._exchange(reader, writer):
                    pass
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._talks.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; whether the connection goes on."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        method, target, _ = head[0].split(" ")
        path = unquote(urlsplit(target).path)
        line = f"{method} {path}"
        self.requests.append(line)
        struck = self.only in line
        await asyncio.sleep(self.delay if struck else 0)
        answer = self._response(method, path, headers, body, self.fault if struck else None)
        if struck and self.fault == "half":
            answer = answer[: len(answer) // 2]
        writer.write(answer)
        await writer.drain()
        return not (struck and self.fault == "half")

    def _response(self, method: str, path: str, headers: dict[str, str], body: bytes, fault: Fault | None) -> bytes:
        if fault in _FAULTS:
            return _http(*_FAULTS[fault])
        if self._api_key is not None and headers.get("api-key") != self._api_key:
            return _http(401, "text/plain", b"Must provide an API key or an Authorization bearer token")
        try:
            return _json(200, {"result": self.holdings.answer(method, path, body), "status": "ok"})
        except Refusal as refusal:
            return _json(refusal.status, {"status": {"error": str(refusal)}})


def _json(status: int, body: dict[str, Any]) -> bytes:
    return _http(status, "application/json", json.dumps({**body, "time": 0.0001}).encode())


def _http(status: int, kind: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}"
    return f"{head}\r\n\r\n".encode() + body
