"""Times a search of memories against the least that the same work costs, in a large store and in a small one.

Two floors are told. One is that of `search-speed`: numpy's product of the question with the group's vectors, and the
engine's bare full-text query over an ordinary table that has the group in a column. The other asks no words at all: the
group's rows by the plain driver along the index of scopes, the product, and the five best. Search, floors and stores
take turns in one process, so the ratios hold where absolute times do not. Vectors are made up, the question's
beforehand.
"""

import argparse
import asyncio
import random
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import roomlore
from bench.made_up import MadeUpEmbedder
from bench.memory_store import add_words, build, settings, statements
from bench.took import clocked, timed
from roomlore.core.search.hits import Vectors

LIMIT = 5
MADE_UP = MadeUpEmbedder()
_ROWS = (
    "SELECT memory_id, statement, version, tags, strength, created_at, updated_at FROM memories "
    "WHERE scope_key = ? AND head AND status = 'active'"
)
_WORDS = (
    "SELECT m.memory_id, m.statement, m.version, m.tags, m.strength, m.created_at, m.updated_at FROM "
    f"(SELECT rowid FROM bench_words WHERE bench_words MATCH ? ORDER BY rank LIMIT {LIMIT}) f "
    "CROSS JOIN memories m ON m.memory_key = f.rowid"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--groups", type=int, default=50_000, help="groups of the large store")
    parser.add_argument("--memories", type=int, default=20, help="memories of each group")
    parser.add_argument("--small", type=int, default=50, help="groups of the small store")
    parser.add_argument("--sample", type=int, default=500, help="groups of the large store that are searched")
    parser.add_argument("--searches", type=int, default=2_000, help="searches in each store")
    parser.add_argument("--store", type=Path, help="a folder that keeps the stores for the next run")


async def run(arguments: argparse.Namespace) -> None:
    each = arguments.memories
    with TemporaryDirectory() as folder:
        kept = arguments.store or Path(folder)
        kept.mkdir(parents=True, exist_ok=True)
        large_path, small_path = kept / f"{arguments.groups}x{each}.db", kept / f"{arguments.small}x{each}.db"
        for path, groups in ((large_path, arguments.groups), (small_path, arguments.small)):
            await asyncio.to_thread(build, path, groups, each)
            await asyncio.to_thread(add_words, path)
        groups = range(1, arguments.groups + 1)
        sample = random.Random(5).sample(groups, min(arguments.sample, len(groups)))
        async with _subject("groups anywhere in the large store", large_path, sample, each) as many:
            await _in_turn([many], arguments.searches)
        shared = range(1, arguments.small + 1)
        async with (
            _subject("large store", large_path, shared, each) as large,
            _subject("small store", small_path, shared, each) as small,
        ):
            await _in_turn([large, small], arguments.searches)
    print(_HEADER)
    for subject in (many, large, small):
        print(_row(subject))
    print(f"\nlarge store against small: {median(large.search) / median(small.search):.2f}")


@dataclass(slots=True)
class _Subject:
    """Some groups of one store, and seconds: of the first search in each, of searches, and of what they are told
    against: rows and numpy, numpy alone, and the full-text query."""

    name: str
    lore: roomlore.Lore
    sql: sqlite3.Connection
    groups: Sequence[int]
    said: dict[int, list[str]]
    vectors: dict[int, Vectors]
    first: list[float] = field(default_factory=list)
    search: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)
    product: list[float] = field(default_factory=list)
    words: list[float] = field(default_factory=list)


@asynccontextmanager
async def _subject(name: str, path: Path, groups: Sequence[int], each: int) -> AsyncIterator[_Subject]:
    """Opened anew, so that nothing of its groups is in memory."""
    texts_by_group = {group: statements(group, each) for group in groups}
    vectors = {group: MADE_UP.vectors(texts) for group, texts in texts_by_group.items()}
    url = f"sqlite:///{path}"
    with closing(sqlite3.connect(path, isolation_level=None)) as sql:
        sql.execute("PRAGMA cache_size = -16384")
        async with roomlore.open(url, settings=settings(), embedder=MADE_UP, background=False) as lore:
            yield _Subject(name, lore, sql, groups, texts_by_group, vectors)


async def _in_turn(subjects: Sequence[_Subject], searches: int) -> None:
    rng = random.Random(11)
    for subject in subjects:
        for group in subject.groups:
            question = _question(rng, subject.said[group])
            MADE_UP.prepare(question)
            await _search(subject, group, question, subject.first)
    for turn in range(searches):
        group = rng.choice(subjects[0].groups)
        question = _question(rng, subjects[0].said[group])
        vector = MADE_UP.prepare(question)
        for subject in subjects if turn % 2 else reversed(subjects):
            if turn % 4 < 2:
                _time_floors(subject, group, vector)
            await _search(subject, group, question, subject.search)
            if turn % 4 >= 2:
                _time_floors(subject, group, vector)
    for subject in subjects:
        _time_words(subject, rng, max(50, searches // 10))


def _question(rng: random.Random, texts: Sequence[str]) -> str:
    """Half of what a memory says, and a word of another."""
    return " ".join([*rng.choice(texts).split()[:4], rng.choice(texts).split()[0]])


async def _search(subject: _Subject, group: int, question: str, into: list[float]) -> None:
    answer: list[Any] = []

    async def search() -> None:
        answer.append(await subject.lore.memories.search(f"group:{group}", question, limit=LIMIT, threshold=0.0))

    into.append(await timed(search()))
    if answer[0].mode != "hybrid" or answer[0].degraded or len(answer[0].hits) != LIMIT:
        raise SystemExit(f"{subject.name}: {answer[0]}")


def _time_floors(subject: _Subject, group: int, vector: Vectors) -> None:
    subject.bare.append(clocked(partial(_bare, subject, group, vector)))
    subject.product.append(clocked(partial(_best, subject, group, vector)))


def _time_words(subject: _Subject, rng: random.Random, searches: int) -> None:
    """Apart from the rest: reading the words of all groups drives everybody's data out of the processor's caches."""
    for _ in range(searches):
        group = rng.choice(subject.groups)
        words = " OR ".join(f'"{word}"' for word in _question(rng, subject.said[group]).split())
        subject.words.append(clocked(partial(_words, subject, f'scope : "g{group}" AND words : ({words})')))


def _bare(subject: _Subject, group: int, vector: Vectors) -> list[Any]:
    rows = subject.sql.execute(_ROWS, [group]).fetchall()
    return [rows[place] for place in _best(subject, group, vector)]


def _words(subject: _Subject, query: str) -> list[Any]:
    return subject.sql.execute(_WORDS, [query]).fetchall()


def _best(subject: _Subject, group: int, vector: Vectors) -> Any:
    return np.argsort(-(subject.vectors[group] @ vector))[:LIMIT]


_HEADER = """
Medians in ms. floor: numpy and the full-text query. bare: the group's rows by the plain driver and numpy, no words.

| searched | search | p95 | numpy | full text | search / floor | bare | search / bare | first search of a group |
|---|---|---|---|---|---|---|---|---|"""


def _row(subject: _Subject) -> str:
    search, product, words, bare = map(median, (subject.search, subject.product, subject.words, subject.bare))
    p95 = sorted(subject.search)[int(len(subject.search) * 0.95)]
    times = " | ".join(f"{seconds * 1e3:.2f}" for seconds in (search, p95, product, words))
    against = f"{search / (product + words):.2f} | {bare * 1e3:.2f} | {search / bare:.2f}"
    return f"| {subject.name} | {times} | {against} | {median(subject.first) * 1e3:.2f} |"
