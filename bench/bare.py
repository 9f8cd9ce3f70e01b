"""The least a search of words costs on each engine: its own full-text query and the ten messages found, by the plain
driver, without any of roomlore.

Two tables are asked: roomlore's own index, in which a word belongs to its room, and an ordinary one as anybody would
make it, which has the room in a column beside the words.
"""

import sqlite3
from collections.abc import Iterable
from typing import Any, Protocol

from roomlore.core.search.query import spell
from roomlore.core.text import terms
from roomlore.storage.words import before

LIMIT = 10

_SHOWN = "m.message_id, m.sender_name, m.text, m.sent_at"
_ARRIVAL_BITS = 28
_MASK = (1 << _ARRIVAL_BITS) - 1


class Bare(Protocol):
    """Queries are prepared apart from running them: only the latter is timed."""

    def room_key(self, room_id: str) -> int: ...

    def own_query(self, room_key: int, query: str) -> tuple[Any, ...]: ...

    def other_query(self, room_key: int, query: str) -> tuple[Any, ...]: ...

    def own(self, query: tuple[Any, ...]) -> list[Any]:
        """The best messages by roomlore's own index."""

    def other(self, query: tuple[Any, ...]) -> list[Any]:
        """The best messages by the ordinary table."""

    def close(self) -> None: ...


def _words(query: str) -> list[str]:
    return list(dict.fromkeys(spell(term) for term in terms(query)))


class BareSqlite:
    """FTS5, over one connection with as much cache as a reader of roomlore's has."""

    def __init__(self, path: str) -> None:
        self._sql = sqlite3.connect(path, isolation_level=None)
        self._sql.execute("PRAGMA cache_size = -16384")
        if not self._sql.execute("SELECT 1 FROM sqlite_master WHERE name = 'bench_words'").fetchone():
            self._make()

    def _make(self) -> None:
        self._sql.execute("BEGIN IMMEDIATE")
        self._sql.execute(
            "CREATE VIRTUAL TABLE bench_words USING fts5 (room, words, tokenize = \"ascii tokenchars '_'\")"
        )
        self._sql.execute(
            f"INSERT INTO bench_words (rowid, room, words) "
            f"SELECT room_key << {_ARRIVAL_BITS} | arrival, 'r' || room_key, words FROM message_words"
        )
        self._sql.execute("INSERT INTO bench_words (bench_words) VALUES ('optimize')")
        self._sql.execute("COMMIT")

    def room_key(self, room_id: str) -> int:
        return int(self._sql.execute("SELECT room_key FROM rooms WHERE room_id = ?", (room_id,)).fetchone()[0])

    def own_query(self, room_key: int, query: str) -> tuple[Any, ...]:
        return " OR ".join(f'"{before(room_key)}{word}"' for word in _words(query)), room_key

    def other_query(self, room_key: int, query: str) -> tuple[Any, ...]:
        words = " OR ".join(f'"{word}"' for word in _words(query))
        return f'room : "r{room_key}" AND words : ({words})', room_key

    def own(self, query: tuple[Any, ...]) -> list[Any]:
        return self._sql.execute(
            f"SELECT {_SHOWN} FROM "
            f"(SELECT rowid FROM message_index WHERE message_index MATCH ? ORDER BY rank LIMIT {LIMIT}) f "
            f"CROSS JOIN messages m ON m.room_key = ? AND m.arrival = f.rowid",
            query,
        ).fetchall()

    def other(self, query: tuple[Any, ...]) -> list[Any]:
        return self._sql.execute(
            f"SELECT {_SHOWN} FROM "
            f"(SELECT rowid FROM bench_words WHERE bench_words MATCH ? ORDER BY rank LIMIT {LIMIT}) f "
            f"CROSS JOIN messages m ON m.room_key = ? AND m.arrival = f.rowid & {_MASK}",
            query,
        ).fetchall()

    def close(self) -> None:
        self._sql.close()


class BarePostgres:
    """`@@` and `ts_rank`, over GIN indexes."""

    def __init__(self, url: str) -> None:
        import psycopg

        self._sql = psycopg.connect(url, autocommit=True, prepare_threshold=1)
        if self._one("SELECT to_regclass('bench_words')") is None:
            self._make()

    def _one(self, statement: str, *values: object) -> Any:
        row = self._sql.execute(statement.encode(), values or None).fetchone()
        return row[0] if row else None

    def _make(self) -> None:
        for statement in (
            "BEGIN",
            "CREATE TABLE bench_words (room_key BIGINT, arrival BIGINT, words TSVECTOR)",
            "INSERT INTO bench_words SELECT room_key, arrival, "
            "regexp_replace(words::text, '''[0-9a-f]+x', '''', 'g')::tsvector FROM message_words",
            "CREATE INDEX ON bench_words USING gin (words)",
            "CREATE INDEX ON bench_words (room_key, arrival)",
            "COMMIT",
            "ANALYZE",
        ):
            self._sql.execute(statement.encode())

    def room_key(self, room_id: str) -> int:
        return int(self._one("SELECT room_key FROM rooms WHERE room_id = %s", room_id))

    def own_query(self, room_key: int, query: str) -> tuple[Any, ...]:
        query_words = _any_of(before(room_key) + word for word in _words(query))
        return query_words, query_words, room_key

    def other_query(self, room_key: int, query: str) -> tuple[Any, ...]:
        query_words = _any_of(_words(query))
        return query_words, room_key, query_words, room_key

    def own(self, query: tuple[Any, ...]) -> list[Any]:
        return self._sql.execute(
            f"SELECT {_SHOWN} FROM (SELECT arrival FROM message_words WHERE words @@ %s::tsquery "
            f"ORDER BY ts_rank(words, %s::tsquery) DESC LIMIT {LIMIT}) f "
            "JOIN messages m ON m.room_key = %s AND m.arrival = f.arrival".encode(),
            query,
        ).fetchall()

    def other(self, query: tuple[Any, ...]) -> list[Any]:
        return self._sql.execute(
            f"SELECT {_SHOWN} FROM (SELECT arrival FROM bench_words WHERE words @@ %s::tsquery AND room_key = %s "
            f"ORDER BY ts_rank(words, %s::tsquery) DESC LIMIT {LIMIT}) f "
            "JOIN messages m ON m.room_key = %s AND m.arrival = f.arrival".encode(),
            query,
        ).fetchall()

    def close(self) -> None:
        self._sql.close()


def _any_of(words: Iterable[str]) -> str:
    return " | ".join(f"'{word}'" for word in words)


def bare(url: str) -> Bare:
    """The engine behind a URL of roomlore's."""
    return BareSqlite(url.removeprefix("sqlite:///")) if url.startswith("sqlite") else BarePostgres(url)
