"""A server of embeddings on a real socket, for programs that know it by its address alone."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from roomlore_testkit.embedding import HashEmbedder

DIMENSIONS = 64


class EmbeddingServer(ThreadingHTTPServer):
    """Answers `POST /v1/embeddings`. `status`: what it answers with; `hold`: cleared, it answers nobody until it is set
    again, but for the probe that asks whether it is there; `waiting` is set once somebody waits; `texts`: what it was
    asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.status = 200
        self.hold = threading.Event()
        self.hold.set()
        self.waiting = threading.Event()
        self.texts: list[str] = []

    @property
    def settings(self) -> dict[str, str]:
        """The variables that turn it on."""
        return {
            "MEMORY_EMBEDDINGS": "openai",
            "MEMORY_EMBEDDING_URL": f"http://127.0.0.1:{self.server_address[1]}/v1",
            "MEMORY_EMBEDDING_MODEL": "hash",
            "MEMORY_EMBEDDING_DIMENSIONS": str(DIMENSIONS),
            "NO_PROXY": "*",
        }

    def answer(self, texts: list[str]) -> bytes:
        self.texts += texts
        vector = HashEmbedder(dimensions=DIMENSIONS)._vector
        rows = [{"index": place, "embedding": vector(text).tolist()} for place, text in enumerate(texts)]
        return json.dumps({"object": "list", "model": "hash", "data": rows}).encode()


class _Answer(BaseHTTPRequestHandler):
    server: EmbeddingServer

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.server.hold.is_set() and asked["input"] != ["roomlore"]:
            self.server.waiting.set()
            self.server.hold.wait(120)
        body = self.server.answer(asked["input"]) if self.server.status == 200 else b"{}"
        try:
            self.send_response(self.server.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def serving() -> Iterator[EmbeddingServer]:
    server = EmbeddingServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.hold.set()
        server.shutdown()
        server.server_close()
        thread.join()
