"""Times a search of memories against the least that the same work costs, in a large store and in a small one.

The floor is what anybody would write who has the vectors of the group in memory: its rows read by the plain driver
along the index of scopes, numpy's product of the question with its vectors, and the five best. Search, floor and stores
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
from bench.context_speed import timed
from bench.made_up import MadeUpEmbedder
from bench.memory_store import build, settings, statements
from bench.search_speed import clocked
from roomlore.core.search import Vectors

LIMIT = 5
MADE_UP = MadeUpEmbedder()
_ROWS = (
    "SELECT memory_id, statement, version, tags, strength, created_at, updated_at FROM memories "
    "WHERE scope_key = ? AND head AND status = 'active'"
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
    """Some groups of one store, and seconds: of the first search in each, of searches, and of the floor."""

    name: str
    lore: roomlore.Lore
    sql: sqlite3.Connection
    groups: Sequence[int]
    said: dict[int, list[str]]
    vectors: dict[int, Vectors]
    first: list[float] = field(default_factory=list)
    search: list[float] = field(default_factory=list)
    floor: list[float] = field(default_factory=list)


@asynccontextmanager
async def _subject(name: str, path: Path, groups: Sequence[int], each: int) -> AsyncIterator[_Subject]:
    """Opened anew, so that nothing of its groups is in memory."""
    said = {group: statements(group, each) for group in groups}
    vectors = {group: MADE_UP.vectors(texts) for group, texts in said.items()}
    url = f"sqlite:///{path}"
    with closing(sqlite3.connect(path, isolation_level=None)) as sql:
        async with roomlore.open(url, settings=settings(), embedder=MADE_UP, background=False) as lore:
            yield _Subject(name, lore, sql, groups, said, vectors)


async def _in_turn(subjects: Sequence[_Subject], searches: int) -> None:
    rng = random.Random(11)
    for one in subjects:
        for group in one.groups:
            question = _question(rng, one.said[group])
            MADE_UP.prepare(question)
            await _search(one, group, question, one.first)
    for turn in range(searches):
        group = rng.choice(subjects[0].groups)
        question = _question(rng, subjects[0].said[group])
        vector = MADE_UP.prepare(question)
        for one in subjects if turn % 2 else reversed(subjects):
            if turn % 4 < 2:
                one.floor.append(clocked(partial(_bare, one, group, vector)))
            await _search(one, group, question, one.search)
            if turn % 4 >= 2:
                one.floor.append(clocked(partial(_bare, one, group, vector)))


def _question(rng: random.Random, said: Sequence[str]) -> str:
    """Half of what a memory says, and a word of another."""
    return " ".join([*rng.choice(said).split()[:4], rng.choice(said).split()[0]])


async def _search(one: _Subject, group: int, question: str, into: list[float]) -> None:
    answer: list[Any] = []

    async def search() -> None:
        answer.append(await one.lore.memories.search(f"group:{group}", question, limit=LIMIT, threshold=0.0))

    into.append(await timed(search()))
    if answer[0].mode != "hybrid" or answer[0].degraded or len(answer[0].hits) != LIMIT:
        raise SystemExit(f"{one.name}: {answer[0]}")


def _bare(one: _Subject, group: int, vector: Vectors) -> list[Any]:
    rows = one.sql.execute(_ROWS, [group]).fetchall()
    scores = one.vectors[group] @ vector
    return [rows[place] for place in np.argsort(-scores)[:LIMIT]]


_HEADER = """
Medians in ms. floor: the group's rows by the plain driver, and numpy.

| searched | search | p95 | floor | ratio | first search of a group |
|---|---|---|---|---|---|"""


def _row(one: _Subject) -> str:
    search, floor = median(one.search), median(one.floor)
    p95 = sorted(one.search)[int(len(one.search) * 0.95)]
    times = " | ".join(f"{seconds * 1e3:.2f}" for seconds in (search, p95, floor))
    return f"| {one.name} | {times} | {search / floor:.2f} | {median(one.first) * 1e3:.2f} |"
