"""mem0 as `bench.peer_side` opens it: as it comes, with its embedded Qdrant on disk and no reranker. Telemetry is off,
and so is the network."""

import hashlib
import os
import socket
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.peer_side import Opening, Told, Vectors


class SentAlong:
    """In the place of mem0's embedder: gives the vector that came with the text."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self._vectors[text]

    def embed_batch(self, texts: Sequence[str], memory_action: str = "add") -> list[list[float]]:
        return [self._vectors[text] for text in texts]


class Mem0:
    def __init__(self, memory: Any, vectors: Vectors) -> None:
        self._memory = memory
        self._vectors = vectors
        memory.embedding_model = SentAlong(vectors)

    def add(self, message: Told) -> None:
        self._memory.add(message.text, user_id=message.room, metadata={"message_id": message.id}, infer=False)

    def fill(self, messages: Sequence[Told]) -> None:
        """Store messages as `add` would leave them, through the batch calls of mem0's own parts: it has none itself."""
        ids = [str(uuid.uuid4()) for _ in messages]
        payloads = [_payload(message) for message in messages]
        vectors = [self._vectors[message.text] for message in messages]
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

    def search(self, room: str, query: str, limit: int) -> Sequence[str]:
        answer = self._memory.search(query, top_k=limit, filters={"user_id": room})
        return [item["metadata"]["message_id"] for item in answer["results"]]


def _payload(message: Told) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat()  # noqa: TID251 - mem0 injects no clock
    return {
        "message_id": message.id,
        "user_id": message.room,
        "role": "user",
        "data": message.text,
        "hash": hashlib.md5(message.text.encode()).hexdigest(),
        "created_at": now,
        "updated_at": now,
        "text_lemmatized": message.text,
    }


def _refuse(*_: object) -> None:
    raise OSError("this bench runs without a network")


def _opened(folder: Path, dimensions: int, vectors: Vectors) -> Mem0:
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder), "OPENAI_API_KEY": "never used"}  # noqa: TID251
    socket.socket.connect = _refuse  # type: ignore[method-assign]
    from mem0 import Memory  # type: ignore[import-not-found, import-untyped, unused-ignore]

    store = {"collection_name": "mem0", "path": str(folder / "qdrant"), "embedding_model_dims": dimensions}
    config = {
        "vector_store": {"provider": "qdrant", "config": store},
        "history_db_path": str(folder / "history.db"),
    }
    return Mem0(Memory.from_config(config), vectors)


STORES: Mapping[str, Opening] = {"mem0": _opened}
