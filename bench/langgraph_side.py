"""The stores of LangGraph as `bench.peer_side` opens them. A room is a namespace."""

import sqlite3
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.peer_side import Opening, Told, Vectors


class LangGraph:
    """`by_meaning`: a search compares vectors; else it lists the newest of the room."""

    def __init__(self, store: Any, *, by_meaning: bool = True) -> None:
        self._store = store
        self._by_meaning = by_meaning
        self._put: Any = import_module("langgraph.store.base").PutOp

    def add(self, message: Told) -> None:
        self._store.put(("rooms", message.room), message.id, {"text": message.text})

    def fill(self, messages: Sequence[Told]) -> None:
        self._store.batch(
            [self._put(("rooms", message.room), message.id, {"text": message.text}) for message in messages]
        )

    def search(self, room: str, query: str, limit: int) -> Sequence[str]:
        found = self._store.search(("rooms", room), query=query if self._by_meaning else None, limit=limit)
        return [item.key for item in found]


def _in_memory(_folder: Path, dimensions: int, vectors: Vectors) -> LangGraph:
    return LangGraph(import_module("langgraph.store.memory").InMemoryStore(index=_index(dimensions, vectors)))


def _sqlite(folder: Path, dimensions: int, vectors: Vectors) -> LangGraph:
    return LangGraph(_sqlite_store(folder, _index(dimensions, vectors)))


def _sqlite_alone(folder: Path, _dimensions: int, _vectors: Vectors) -> LangGraph:
    return LangGraph(_sqlite_store(folder, None), by_meaning=False)


def _sqlite_store(folder: Path, index: Mapping[str, Any] | None) -> Any:
    """Return a store with the connection that `SqliteStore.from_conn_string` makes."""
    driver: Any = sqlite3
    if not hasattr(sqlite3.Connection, "enable_load_extension"):  # which it needs for its vectors
        driver = sys.modules["sqlite3"] = import_module("pysqlite3")
    connection = driver.connect(str(folder / "store.db"), check_same_thread=False, isolation_level=None)
    store = import_module("langgraph.store.sqlite").SqliteStore(connection, index=index)
    store.setup()
    return store


def _index(dimensions: int, vectors: Vectors) -> Mapping[str, Any]:
    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [vectors[text] for text in texts]

    # InMemoryStore reads `fields`, SqliteStore `text_fields`.
    return {"dims": dimensions, "embed": embed, "fields": ["text"], "text_fields": ["text"]}


STORES: Mapping[str, Opening] = {
    "InMemoryStore": _in_memory,
    "SqliteStore": _sqlite,
    "SqliteStore alone": _sqlite_alone,
}
