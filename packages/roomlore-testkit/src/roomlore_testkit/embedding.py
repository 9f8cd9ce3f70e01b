"""An embedder for tests, without a model or delay, for which texts with common words are near; and a server for it."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any, Literal
from zlib import crc32

import numpy as np

from roomlore.core.search.hits import EmbeddingModel, Vectors
from roomlore.core.text import words
from roomlore.ports.language import Embedder, TextKind
from roomlore_testkit.loopback import LoopbackServer


class HashEmbedder:
    """An embedder by hashes. Each word adds to one position of the vector, found by its hash, so a text and a question
    are near if they share words. A text without a word has a position of its own."""

    def __init__(self, *, name: str = "hash", dimensions: int = 64) -> None:
        self._model = EmbeddingModel(name=name, dimensions=dimensions)

    @property
    def model(self) -> EmbeddingModel:
        return self._model

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return the same vectors for both kinds of text."""
        return np.array([self._vector(text) for text in texts], np.float32).reshape(len(texts), self._model.dimensions)

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def _vector(self, text: str) -> Vectors:
        vector = np.zeros(self._model.dimensions, np.float32)
        for word in words(text) or [text]:
            place = crc32(word.encode("utf-8", "surrogatepass"))
            vector[place % vector.size] += 1.0 if place & 0x8000_0000 else -1.0
        length = float(np.linalg.norm(vector))
        if not length:
            vector[0], length = 1.0, 1.0
        return vector / np.float32(length)


Fault = Literal["hang", "drop"] | int | bytes


class EmbeddingServer(LoopbackServer):
    """An embedding server. `async with EmbeddingServer(embedder) as server:` starts and stops it.

    It answers with the vectors of `embedder`, rows in reverse order, since only their `index` counts. `faults`: the
    answers to the next requests, one each: an HTTP status, a body sent with status 200, no answer ever, or a broken
    connection; `fault`: the answer to all others. `most_texts`: a request with more is refused with status 400.
    `bodies` and `headers`: of each request, header names in lower case.
    """

    def __init__(self, embedder: Embedder) -> None:
        super().__init__()
        self.faults: list[Fault] = []
        self.fault: Fault | None = None
        self.most_texts: int | None = None
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._embedder = embedder

    @property
    def url(self) -> str:
        """The base URL for a client."""
        return f"http://127.0.0.1:{self._port}/v1"

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        self.headers.append(headers)
        self.bodies.append(body)
        fault = self.faults.pop(0) if self.faults else self.fault
        if self.most_texts is not None and len(body["input"]) > self.most_texts:
            fault = 400
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
