"""Stores of made-up memories with their vectors, written in bulk past the library: its own writing is timed elsewhere.

Every memory says a few words of a small vocabulary, so that a question finds some in any group.
"""

import asyncio
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np

import roomlore
from bench.made_up import MadeUpEmbedder
from bench.progress import Progress
from roomlore.adapters.vectors.rows import first_key
from roomlore.core import DEFAULT_TENANT
from roomlore.ports.vectors import MEMORIES

VOCABULARY = [f"{first}{second}" for first in ("tea", "rail", "moss", "lamp", "core") for second in map(str, range(80))]
WORDS = 8
_GROUPS_AT_ONCE = 500
_SCOPE = "INSERT INTO memory_scopes (scope_key, tenant, scope, changes, active, created_at) VALUES (?, ?, ?, ?, ?, 0)"
_MEMORY = (
    "INSERT INTO memories (memory_key, scope_key, tenant, memory_id, lineage_id, version, head, status, kind, "
    "statement, tags, category, strength, parents, sources, change_summary, made_by, fallback, created_at, updated_at, "
    "supported_at) VALUES (?, ?, ?, ?, ?, 1, 1, 'active', 'group', ?, '[]', '', 1.0, '[]', '[]', '', 'caller', 0, "
    "?, ?, ?)"
)
_PLACE = "INSERT INTO vector_scopes (scope_key, collection, epoch, tenant, scope, stamp) VALUES (?, ?, ?, ?, ?, ?)"
_VECTOR = "INSERT INTO vectors (vector_key, scope_key, number, tenant, vector) VALUES (?, ?, ?, ?, ?)"


def settings() -> roomlore.Settings:
    return roomlore.Settings(enable_async_data_collection=False, vectors="sql")


def statements(group: int, each: int) -> list[str]:
    """The memories of `group:<number>`, in order of their row numbers."""
    rng = random.Random(group)
    return [" ".join(rng.choices(VOCABULARY, k=WORDS)) for _ in range(each)]


def build(path: Path, groups: int, each: int) -> None:
    """Makes the store where the file is not there yet."""
    if path.exists():
        return
    unfinished = path.with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)
    asyncio.run(_begin(unfinished))
    with closing(sqlite3.connect(unfinished, isolation_level=None)) as sql:
        sql.execute("PRAGMA synchronous = off")
        epoch = sql.execute("SELECT epoch FROM vector_collections WHERE collection = ?", [MEMORIES]).fetchone()[0]
        progress = Progress("memories", groups * each)
        for first in range(1, groups + 1, _GROUPS_AT_ONCE):
            _fill(sql, range(first, min(first + _GROUPS_AT_ONCE, groups + 1)), each, epoch)
            progress.at(first * each)
        progress.end(groups * each)
        sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    unfinished.rename(path)


def add_words(path: Path) -> None:
    """Gives the store a table of words as anybody would make it, where it has none yet."""
    with closing(sqlite3.connect(path, isolation_level=None)) as sql:
        if sql.execute("SELECT 1 FROM sqlite_master WHERE name = 'bench_words'").fetchone():
            return
        sql.execute("PRAGMA synchronous = off")
        sql.execute("BEGIN IMMEDIATE")
        sql.execute('CREATE VIRTUAL TABLE bench_words USING fts5 (scope, words, tokenize = "ascii")')
        sql.execute(
            "INSERT INTO bench_words (rowid, scope, words) SELECT memory_key, 'g' || scope_key, statement FROM memories"
        )
        sql.execute("INSERT INTO bench_words (bench_words) VALUES ('optimize')")
        sql.execute("COMMIT")


async def _begin(path: Path) -> None:
    """An empty store whose indexes are begun and whole."""
    url = f"sqlite:///{path}"
    async with roomlore.open(url, settings=settings(), embedder=MadeUpEmbedder(), background=False) as lore:
        async for _ in lore.index.drain():
            pass


def _fill(sql: sqlite3.Connection, groups: range, each: int, epoch: int) -> None:
    embedder = MadeUpEmbedder()
    sql.execute("BEGIN")
    for group in groups:
        texts = statements(group, each)
        vectors = embedder.vectors(texts).astype(np.dtype("<f2"))
        scope, numbers = f"group:{group}", range((group - 1) * each + 1, group * each + 1)
        sql.execute(_SCOPE, (group, DEFAULT_TENANT, scope, each, each))
        sql.executemany(_MEMORY, _memories(group, numbers, texts))
        sql.execute(_PLACE, (group, MEMORIES, epoch, DEFAULT_TENANT, scope, each))
        rows = zip(numbers, vectors, strict=True)
        sql.executemany(
            _VECTOR,
            [
                (first_key(group, stamp), group, number, DEFAULT_TENANT, vector.tobytes())
                for stamp, (number, vector) in enumerate(rows, 1)
            ],
        )
    sql.execute("COMMIT")


def _memories(group: int, numbers: range, texts: list[str]) -> Iterator[tuple[object, ...]]:
    for number, statement in zip(numbers, texts, strict=True):
        memory_id = f"{number:010}"
        yield number, group, DEFAULT_TENANT, memory_id, memory_id, statement, number, number, number
