"""Stores that find messages by their words alone, as `bench.peer_side` opens them: bm25s, and a table of SQLite."""

import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.peer_side import Opening, Told, Vectors


@dataclass(slots=True)
class Room:
    ids: list[str] = field(default_factory=list)
    words: list[list[str]] = field(default_factory=list)
    index: Any = None


class Bm25s:
    """An index for each room, in memory. An index takes no message more, so that of the room is built again."""

    def __init__(self) -> None:
        self._bm25s: Any = import_module("bm25s")
        self._rooms = defaultdict[str, Room](Room)

    def add(self, message: Told) -> None:
        self.fill([message])

    def fill(self, messages: Sequence[Told]) -> None:
        room = self._rooms[messages[0].room]
        room.ids += [message.id for message in messages]
        room.words += self._words(message.text for message in messages)
        room.index = self._bm25s.BM25()
        room.index.index(room.words, show_progress=False)

    def search(self, room: str, query: str, limit: int) -> Sequence[str]:
        asked = self._rooms[room]
        found, _ = asked.index.retrieve(self._words([query]), k=min(limit, len(asked.ids)), show_progress=False)
        return [asked.ids[place] for place in found[0]]

    def _words(self, texts: Any) -> list[list[str]]:
        words: list[list[str]] = self._bm25s.tokenize(list(texts), return_ids=False, show_progress=False)
        return words


class Fts5:
    """A table with the room in a column, and with the settings of roomlore's file."""

    def __init__(self, folder: Path) -> None:
        self._sql = sqlite3.connect(folder / "words.db", isolation_level=None)
        self._sql.execute("PRAGMA journal_mode = WAL")
        self._sql.execute("PRAGMA synchronous = NORMAL")
        words = "tokenize = \"unicode61 tokenchars '-'\""
        self._sql.execute(f"CREATE VIRTUAL TABLE messages USING fts5 (room, id UNINDEXED, text, {words})")

    def add(self, message: Told) -> None:
        self.fill([message])

    def fill(self, messages: Sequence[Told]) -> None:
        rows = [(message.room, message.id, message.text) for message in messages]
        self._sql.execute("BEGIN IMMEDIATE")
        self._sql.executemany("INSERT INTO messages (room, id, text) VALUES (?, ?, ?)", rows)
        self._sql.execute("COMMIT")

    def search(self, room: str, query: str, limit: int) -> Sequence[str]:
        words = " OR ".join(f'"{word}"' for word in query.replace('"', " ").split())
        statement = "SELECT id FROM messages WHERE messages MATCH ? ORDER BY rank LIMIT ?"
        return [row[0] for row in self._sql.execute(statement, (f'room : "{room}" AND text : ({words})', limit))]


def _bm25s(_folder: Path, _dimensions: int, _vectors: Vectors) -> Bm25s:
    return Bm25s()


def _fts5(folder: Path, _dimensions: int, _vectors: Vectors) -> Fts5:
    return Fts5(folder)


STORES: Mapping[str, Opening] = {"bm25s": _bm25s, "FTS5": _fts5}
