"""A server on a loopback socket that speaks OpenAI's protocol for embeddings, and can be told to fail."""

import asyncio
import json
from typing import Any, Literal

from roomlore.ports.language import Embedder
from roomlore.testing.loopback import LoopbackServer

Fault = Literal["hang", "drop"] | int | bytes


class EmbeddingServer(LoopbackServer):
    """The server. `async with EmbeddingServer(embedder) as server:` starts and stops it.

    It answers with the vectors of `embedder`, rows in reverse order, since only their `index` counts. `faults`: what
    the next requests get instead, one each: an HTTP status, a body sent with status 200, no answer ever, or a broken
    connection; `fault`: what all others get. `bodies` and `headers`: what each request brought, names in lower case.
    """

    def __init__(self, embedder: Embedder) -> None:
        super().__init__()
        self.faults: list[Fault] = []
        self.fault: Fault | None = None
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._embedder = embedder

    @property
    def url(self) -> str:
        """What to give to a client as the base URL."""
        return f"http://127.0.0.1:{self._port}/v1"

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
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
        return False

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
