"""A server on a loopback socket that speaks OpenAI's protocol for embeddings, and can be told to fail."""

import asyncio
import contextlib
import json
from typing import Any, Literal

from roomlore.ports.language import Embedder

Fault = Literal["hang", "drop"] | int | bytes


class EmbeddingServer:
    """The server. `async with EmbeddingServer(embedder) as server:` starts and stops it.

    It answers with the vectors of `embedder`, rows in reverse order, since only their `index` counts. `faults`: what
    the next requests get instead, one each: an HTTP status, a body sent with status 200, no answer ever, or a broken
    connection; `fault`: what all others get. `bodies` and `headers`: what each request brought, names in lower case.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.faults: list[Fault] = []
        self.fault: Fault | None = None
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._embedder = embedder
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()
        self._port = 0

    @property
    def url(self) -> str:
        """What to give to a client as the base URL."""
        return f"http://127.0.0.1:{self._port}/v1"

    async def __aenter__(self) -> "EmbeddingServer":
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Breaks all connections and refuses new ones."""
        if self._server is not None:
            self._server.close()
            for talk in tuple(self._talks):
                talk.cancel()
            await asyncio.gather(*self._talks, return_exceptions=True)
            await self._server.wait_closed()
            self._server = None

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._talks.add(task)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await self._answer_one(reader, writer)
        self._talks.discard(task)
        writer.close()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        self.headers.append(headers)
        self.bodies.append(body)
        fault = self.faults.pop(0) if self.faults else self.fault
        if fault == "hang":
            await asyncio.Event().wait()
        if fault != "drop":
            writer.write(_response(*await self._answer(head[0], body, fault)))
            await writer.drain()

    async def _answer(self, line: str, body: dict[str, Any], fault: Fault | None) -> tuple[int, bytes]:
        if isinstance(fault, int):
            return fault, json.dumps({"error": {"message": f"refused: {body['input']}"}}).encode()
        if isinstance(fault, bytes):
            return 200, fault
        if not line.startswith("POST /v1/embeddings "):
            return 404, b"{}"
        vectors = await self._embedder.embed(body["input"], kind="passage")
        rows = [{"object": "embedding", "index": n, "embedding": row.tolist()} for n, row in enumerate(vectors)]
        return 200, json.dumps({"object": "list", "model": body["model"], "data": rows[::-1]}).encode()


def _response(status: int, body: bytes) -> bytes:
    head = (
        f"HTTP/1.1 {status} Told\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        "retry-after-ms: 1\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body
