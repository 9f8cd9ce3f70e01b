"""Times a search against the least that the same work costs, in many rooms, in a big one, and in a small store.

The floor is brute force without any of roomlore: numpy's product of the query with all vectors of the room, which lie
in memory, and the ten best of it; and the engine's bare full-text query through the plain driver (`bench.bare`), the
quicker one of two tables. Search, floor and stores take turns in one process, so the ratios hold where absolute times
do not. Vectors are made up, the query's beforehand.
"""

import argparse
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import roomlore
from bench import databases
from bench.bare import LIMIT, Bare, bare
from bench.built_store import MadeUpRoom, build, settings
from bench.made_up import MadeUpEmbedder
from bench.took import clocked, timed
from roomlore.core.search.hits import Vectors
from roomlore.core.search.query import passage

QUERY_WORDS = 6
MADE_UP = MadeUpEmbedder()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rooms", type=int, default=1_000, help="rooms of the large store")
    parser.add_argument("--messages", type=int, default=1_000, help="messages of each room")
    parser.add_argument("--big", type=int, default=50_000, help="messages of one more room in the large store")
    parser.add_argument("--small", type=int, default=10, help="rooms of the small store")
    parser.add_argument("--sample", type=int, default=100, help="rooms of the large store that are searched")
    parser.add_argument("--searches", type=int, default=2_000, help="searches in each store")
    parser.add_argument("--store", type=Path, help="a folder that keeps the stores for the next run")
    parser.add_argument("--vectors", default="auto", choices=("auto", "sql", "pgvector"), help="where vectors lie")
    parser.add_argument("--url", help="a PostgreSQL server where databases may be made; they stay for the next run")


async def run(arguments: argparse.Namespace) -> None:
    each = arguments.messages
    rooms = [MadeUpRoom(number, each) for number in range(arguments.rooms)]
    big = MadeUpRoom(arguments.rooms, arguments.big)
    used = settings(arguments.vectors)
    with TemporaryDirectory() as folder:
        kept = arguments.store or Path(folder)
        kept.mkdir(parents=True, exist_ok=True)
        large_url = databases.named(kept, arguments.url, f"large_{arguments.rooms}x{each}_{arguments.big}")
        small_url = databases.named(kept, arguments.url, f"small_{arguments.small}x{each}")
        for url, held in ((large_url, [*rooms, big]), (small_url, rooms[: arguments.small])):
            await build(url, held, arguments.vectors)
        print_settings(used)
        rng = random.Random(5)
        sample = rng.sample(rooms, min(arguments.sample, len(rooms)))
        async with subject("many rooms", large_url, used, sample) as many:
            await search_in_turn([many], arguments.searches)
        async with subject("the big room", large_url, used, [big]) as large_room:
            await search_in_turn([large_room], max(200, arguments.searches // 5))
        async with (
            subject("large store", large_url, used, rooms[: arguments.small]) as large,
            subject("small store", small_url, used, rooms[: arguments.small]) as small,
        ):
            await search_in_turn([large, small], arguments.searches)
    print(HEADER)
    for each_subject in (many, large_room, large, small):
        print(row(each_subject))
    print(f"\nlarge store against small: {median(large.search) / median(small.search):.2f}")


def print_settings(used: roomlore.Settings) -> None:
    search = used.search
    print(f"settings: vectors {search.vectors}, the rest default", flush=True)


@dataclass(slots=True)
class Subject:
    """Some rooms of one store, and seconds: of the first search in each, of searches, and of the parts of the floor."""

    name: str
    lore: roomlore.Lore
    bare: Bare
    rooms: Sequence[MadeUpRoom]
    vectors: dict[str, Vectors]
    keys: dict[str, int]
    said: dict[str, list[str]]
    first: list[float] = field(default_factory=list)
    search: list[float] = field(default_factory=list)
    product: list[float] = field(default_factory=list)
    own: list[float] = field(default_factory=list)
    other: list[float] = field(default_factory=list)

    @property
    def floor(self) -> float:
        """The median product and the median of the quicker full-text query."""
        return median(self.product) + min(median(self.own), median(self.other))


@asynccontextmanager
async def subject(name: str, url: str, used: roomlore.Settings, rooms: Sequence[MadeUpRoom]) -> AsyncIterator[Subject]:
    """Opened anew, so that nothing of its rooms is in memory."""
    vectors, texts_by_room = {}, {}
    for room in rooms:
        messages = room.said()
        vectors[room.room_id] = MADE_UP.vectors([passage(message) for message in messages])
        texts_by_room[room.room_id] = [message.text for message in messages]
    engine = bare(url)
    async with AsyncExitStack() as closing:
        closing.callback(engine.close)
        lore = await closing.enter_async_context(roomlore.open(url, settings=used, embedder=MADE_UP, background=False))
        keys = {room.room_id: engine.room_key(room.room_id) for room in rooms}
        yield Subject(name, lore, engine, rooms, vectors, keys, texts_by_room)


async def search_in_turn(subjects: Sequence[Subject], searches: int) -> None:
    rng = random.Random(11)
    for subject_ in subjects:
        await search_first(subject_, rng)
    for turn in range(searches):
        room_id = rng.choice(subjects[0].rooms).room_id
        query = question(rng, subjects[0].said[room_id])
        for subject_ in subjects if turn % 2 else reversed(subjects):
            await search_both(subject_, room_id, query, floor_first=turn % 4 < 2)
    for subject_ in subjects:
        time_other(subject_, rng, max(50, searches // 10))


async def search_first(subject_: Subject, rng: random.Random) -> None:
    for room in subject_.rooms:
        query = question(rng, subject_.said[room.room_id])
        subject_.first.append(await timed(subject_.lore.messages.search(room.room_id, query, limit=LIMIT)))


def question(rng: random.Random, texts: Sequence[str]) -> str:
    """Words of a few of the room's messages."""
    words: list[str] = []
    while len(words) < QUERY_WORDS:
        words += rng.choice(texts).split()
    return " ".join(words[:QUERY_WORDS])


async def search_both(subject_: Subject, room_id: str, query: str, *, floor_first: bool) -> None:
    vector = MADE_UP.prepare(query)
    if floor_first:
        time_floor(subject_, room_id, query, vector)
    subject_.search.append(await timed(subject_.lore.messages.search(room_id, query, limit=LIMIT)))
    if not floor_first:
        time_floor(subject_, room_id, query, vector)


def time_floor(subject_: Subject, room_id: str, query: str, vector: Vectors) -> None:
    key = subject_.keys[room_id]
    subject_.product.append(clocked(lambda: best(subject_.vectors[room_id], vector)))
    own = subject_.bare.own_query(key, query)
    subject_.own.append(clocked(lambda: subject_.bare.own(own)))


def time_other(subject_: Subject, rng: random.Random, searches: int) -> None:
    """Apart from the rest: reading the words of all rooms drives everybody's data out of the processor's caches."""
    for _ in range(searches):
        room_id = rng.choice(subject_.rooms).room_id
        query = subject_.bare.other_query(subject_.keys[room_id], question(rng, subject_.said[room_id]))
        subject_.other.append(clocked(partial(subject_.bare.other, query)))


def best(matrix: Vectors, vector: Vectors) -> Any:
    scores = matrix @ vector
    places = np.argpartition(scores, -LIMIT)[-LIMIT:]
    return places[np.argsort(-scores[places])]


HEADER = """
Medians in ms. floor: numpy and the quicker of the two full-text queries.

| searched | search | p95 | numpy | own index | other table | floor | ratio | first search |
|---|---|---|---|---|---|---|---|---|"""


def row(subject_: Subject) -> str:
    search = median(subject_.search)
    times = (
        search,
        sorted(subject_.search)[int(len(subject_.search) * 0.95)],
        median(subject_.product),
        median(subject_.own),
        median(subject_.other),
        subject_.floor,
    )
    cells = (subject_.name, *(f"{seconds * 1e3:.2f}" for seconds in times), f"{search / subject_.floor:.2f}")
    return f"| {' | '.join(cells)} | {median(subject_.first) * 1e3:.1f} |"
