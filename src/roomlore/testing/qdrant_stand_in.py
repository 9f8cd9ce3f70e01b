"""A Qdrant server on a loopback socket that can be stopped, slowed down, wiped and made to answer rubbish.

It holds everything in memory and searches exactly. It is no Qdrant: a double for tests of what happens when one fails.
"""

import asyncio
import json
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from roomlore.testing.loopback import LoopbackServer
from roomlore.testing.qdrant_store import Holdings, Refusal

Fault = Literal["error", "html", "garbage", "wrong", "half"]

_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 500: "Internal Server Error", 502: "Bad Gateway"}
_FAULTS: dict[str, tuple[int, str, bytes]] = {
    "error": (500, "application/json", b'{"status":{"error":"Service internal error: told to fail"},"time":0.0}'),
    "html": (502, "text/html", b"<html><body><h1>502 Bad Gateway</h1></body></html>"),
    "garbage": (200, "application/json", b'{"result": [{"id": 7, '),
    "wrong": (200, "application/json", b'{"result":{"colour":"blue"},"status":"ok","time":0.0}'),
}


class QdrantStandIn(LoopbackServer):
    """The server. `async with QdrantStandIn() as qdrant:` starts and stops it.

    `fault`: what every request gets instead of its answer: HTTP 500, the HTML page of a proxy, broken JSON, JSON of
    another shape, or half of the true answer and a broken connection (the work is done then, in the other cases not).
    `delay`: seconds that every request waits first. `only`: where set, both hold for requests whose line
    ('PUT /collections/x/points') contains it. `requests`: those lines, as they came. `holdings`: what it holds.
    """

    def __init__(self, *, api_key: str | None = None) -> None:
        super().__init__()
        self.fault: Fault | None = None
        self.delay = 0.0
        self.only = ""
        self.requests: list[str] = []
        self.holdings = Holdings()
        self._api_key = api_key

    @property
    def url(self) -> str:
        """The address, the same after a stop and a start; known once started."""
        return f"http://127.0.0.1:{self._port}"

    async def wipe(self) -> None:
        """Forgets all collections and aliases."""
        self.holdings = Holdings()

    async def snapshot(self) -> Holdings:
        """A copy of all it holds, for `restore`."""
        return self.holdings.copy()

    async def restore(self, holdings: Holdings) -> None:
        """Goes back to an earlier state."""
        self.holdings = holdings.copy()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
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
