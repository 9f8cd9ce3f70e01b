"""Runs inside mem0's own environment and does what JSON lines on standard input say, one answer a line.

Only mem0's calls are timed, here, in its own process: neither the talk between the processes nor any embedding counts.
Vectors come with the request and mem0's embedder looks them up. mem0 is as it comes otherwise: its embedded Qdrant on
disk, no reranker; telemetry is off, and so is the network.
"""

import base64
import hashlib
import json
import logging
import os
import socket
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

Request = dict[str, Any]
Answer = dict[str, Any]


class SentAlong:
    """In the place of mem0's embedder: gives the vector that came with the text."""

    def __init__(self) -> None:
        self.vectors: dict[str, list[float]] = {}

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self.vectors[text]

    def embed_batch(self, texts: Sequence[str], memory_action: str = "add") -> list[list[float]]:
        return [self.vectors[text] for text in texts]


class Side:
    """One mem0 and what it can be asked to do."""

    def __init__(self, memory: Any, embedder: SentAlong) -> None:
        self._memory = memory
        self._embedder = embedder

    def about(self, request: Request) -> Answer:
        return {name: version(name) for name in ("mem0ai", "qdrant-client")}

    def add(self, request: Request) -> Answer:
        """Seconds one `add` took."""
        self._embedder.vectors = {request["text"]: _vector(request)}
        metadata = {"message_id": request["id"]}
        started = time.perf_counter()
        self._memory.add(request["text"], user_id=request["room"], metadata=metadata, infer=False)
        return {"seconds": time.perf_counter() - started}

    def fill(self, request: Request) -> Answer:
        """Stores many messages as `add` would leave them, through the batch calls of mem0's own parts."""
        ids = [str(uuid.uuid4()) for _ in request["messages"]]
        payloads = [_payload(message) for message in request["messages"]]
        vectors = [_vector(message) for message in request["messages"]]
        self._memory.vector_store.insert(vectors=vectors, ids=ids, payloads=payloads)
        self._memory.db.batch_add_history(
            [
                {
                    "memory_id": memory_id,
                    "new_memory": payload["data"],
                    "event": "ADD",
                    "created_at": payload["created_at"],
                    "updated_at": payload["updated_at"],
                    "role": payload["role"],
                }
                for memory_id, payload in zip(ids, payloads, strict=True)
            ]
        )
        return {}

    def search(self, request: Request) -> Answer:
        """The ids of the messages found, best first, and the seconds it took."""
        query, filters = request["query"].strip(), {"user_id": request["room"]}
        self._embedder.vectors = {query: _vector(request)}
        started = time.perf_counter()
        answer = self._memory.search(query, top_k=request["limit"], filters=filters)
        seconds = time.perf_counter() - started
        return {"seconds": seconds, "ids": [item["metadata"]["message_id"] for item in answer["results"]]}


def _vector(request: Request) -> list[float]:
    made: list[float] = np.frombuffer(base64.b64decode(request["vector"]), np.float32).tolist()
    return made


def _payload(message: Request) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat()  # noqa: TID251 - mem0 injects no clock
    return {
        "message_id": message["id"],
        "user_id": message["room"],
        "role": "user",
        "data": message["text"],
        "hash": hashlib.md5(message["text"].encode()).hexdigest(),
        "created_at": now,
        "updated_at": now,
        "text_lemmatized": message["text"],
    }


def _refuse(*_: object) -> None:
    raise OSError("this bench runs without a network")


def _open(folder: Path, dimensions: int) -> Side:
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder), "OPENAI_API_KEY": "never used"}  # noqa: TID251
    socket.socket.connect = _refuse  # type: ignore[method-assign]
    from mem0 import Memory  # type: ignore[import-not-found, import-untyped, unused-ignore]

    store = {"collection_name": "mem0", "path": str(folder / "qdrant"), "embedding_model_dims": dimensions}
    config = {
        "vector_store": {"provider": "qdrant", "config": store},
        "history_db_path": str(folder / "history.db"),
    }
    memory, embedder = Memory.from_config(config), SentAlong()
    memory.embedding_model = embedder
    return Side(memory, embedder)


def main() -> None:
    """Arguments: an empty folder, the length of the vectors. What mem0 prints goes to standard error."""
    answers, sys.stdout = sys.stdout, sys.stderr
    logging.disable(logging.WARNING)
    side = _open(Path(sys.argv[1]), int(sys.argv[2]))
    calls: dict[str, Callable[[Request], Answer]] = {
        "about": side.about,
        "add": side.add,
        "fill": side.fill,
        "search": side.search,
    }
    for line in sys.stdin:
        request = json.loads(line)
        answers.write(json.dumps(calls[request["call"]](request)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
