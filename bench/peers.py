"""Times roomlore and mem0 beside each other on the same messages and vectors, and compares what they find.

Speed: made-up chat in 50 rooms, the store growing from one size to the next. At each size the last messages are added
one a call to both in turn, then both answer the same queries in turn. Embedding counts on neither side. What roomlore
adds is found by its words at once and gets its vector from work behind the call, which is timed too, apart.

Quality: for each of `--sets` (`FOLDER` or `FOLDER:_suffix`) both answer every query with the same model, the same text
("sender: text") and the prefixes that the model wants; the gold is opened when both have answered.
"""

import argparse
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory

import roomlore
from bench import predict_retrieval
from bench.chatter import chat
from bench.context_speed import timed
from bench.made_up import MadeUpEmbedder
from bench.mem0_peer import Mem0Peer, Told, environment, mem0
from bench.progress import Progress
from roomlore.ports.language import Embedder

ROOMS = 50
BATCH = 500
LIMIT = 10
QUERY_WORDS = 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", type=numbers, default=[1_000, 10_000, 50_000], help="messages in 50 rooms, rising")
    parser.add_argument("--adds", type=int, default=500, help="messages added one a call at each size")
    parser.add_argument("--search-seconds", type=float, default=60, help="mem0's searches at each size take about this")
    parser.add_argument(
        "--sets", nargs="*", default=[], help="folders with messages, queries and gold: FOLDER[:_suffix]"
    )
    parser.add_argument("--embeddings", type=Path, help="a folder that keeps vectors between runs, outside the project")
    parser.add_argument("--environment", type=Path, default=Path("out/mem0"), help="where mem0's own environment is")


def numbers(given: str) -> list[int]:
    return [int(number) for number in given.split(",")]


async def run(arguments: argparse.Namespace) -> None:
    python = environment(arguments.environment)
    await compare_speed(python, arguments.sizes, arguments.adds, arguments.search_seconds)
    for name in arguments.sets:
        folder, _, suffix = name.partition(":")
        await compare_quality(python, Path(folder), suffix, arguments.embeddings)


@dataclass(slots=True)
class Times:
    """Seconds a call, at one size. `batched` and `vectors` are seconds a message."""

    messages: int
    mem0_add: list[float] = field(default_factory=list)
    add: list[float] = field(default_factory=list)
    batched: float = 0.0
    vectors: float = 0.0
    mem0_search: list[float] = field(default_factory=list)
    search: list[float] = field(default_factory=list)
    first_search: list[float] = field(default_factory=list)


class Pair:
    """Both stores, holding the same."""

    def __init__(self, lore: roomlore.Lore, peer: Mem0Peer, embedder: MadeUpEmbedder) -> None:
        self.lore = lore
        self.peer = peer
        self._embedder = embedder

    def told(self, messages: Sequence[roomlore.Message]) -> list[Told]:
        texts = [_text_of(message) for message in messages]
        vectors = self._embedder.vectors(texts)
        return [
            Told(message.room_id, message.id, text, vector)
            for message, text, vector in zip(messages, texts, vectors, strict=True)
        ]

    async def fill(self, rooms: Iterable[Sequence[roomlore.Message]]) -> float:
        """The quickest way of each; seconds a message of roomlore's, batches of one room."""
        took, count = 0.0, 0
        for batch in rooms:
            took += await timed(self.lore.messages.add(batch))
            count += len(batch)
            await self.peer.fill(self.told(batch))
        return took / max(count, 1)

    async def index(self) -> float:
        """Seconds until every message of roomlore's that waits has its vector."""
        started = time.perf_counter()
        async for _ in self.lore.index.drain():
            pass
        return time.perf_counter() - started

    async def add(self, message: roomlore.Message, times: Times) -> None:
        times.add.append(await timed(self.lore.messages.add(message)))
        times.mem0_add.append(await self.peer.add(self.told([message])[0]))

    async def search(self, room: str, query: str, times: Times) -> None:
        vector = self._embedder.prepare(query)
        times.search.append(await timed(self.lore.messages.search(room, query, limit=LIMIT)))
        times.mem0_search.append((await self.peer.search(room, query, vector, LIMIT))[0])


async def compare_speed(python: Path, sizes: Sequence[int], adds: int, search_seconds: float) -> None:
    settings = roomlore.Settings(enable_async_data_collection=False)
    embedder = MadeUpEmbedder()
    talk, spoken = Talk(max(sizes)), list[roomlore.Message]()
    with TemporaryDirectory() as folder:
        async with (
            roomlore.open(
                f"sqlite:///{folder}/peers.db", settings=settings, embedder=embedder, background=False
            ) as lore,
            mem0(python, embedder.model.dimensions) as peer,
        ):
            pair = Pair(lore, peer, embedder)
            print("versions: " + ", ".join(f"{name} {version}" for name, version in (await peer.about()).items()))
            print(SPEED_HEADER)
            for size in sizes:
                times = Times(size)
                spoken += await grow(pair, talk, times, len(spoken), adds)
                await search_both(pair, spoken, times, search_seconds)
                print(speed_row(times), flush=True)


class Talk:
    """Made-up chat of all rooms, each message given once."""

    def __init__(self, most: int) -> None:
        self._rooms = [chat(f"room-{number}", most, number, words=7) for number in range(ROOMS)]

    def batches(self, each: int) -> list[list[roomlore.Message]]:
        """So many of each room, in batches of one room."""
        messages = [list(islice(room, each)) for room in self._rooms]
        return [message[at : at + BATCH] for message in messages for at in range(0, each, BATCH)]

    def singly(self, count: int) -> list[roomlore.Message]:
        """So many, the rooms taking turns."""
        return [next(self._rooms[number % ROOMS]) for number in range(count)]


async def grow(pair: Pair, talk: Talk, times: Times, held: int, adds: int) -> list[roomlore.Message]:
    """Brings both stores to the size, the last messages singly; gives what was added."""
    missing = times.messages - held
    last = min(adds, missing)
    batches = talk.batches((missing - last) // ROOMS)
    times.batched = await pair.fill(batches)
    await pair.index()
    singly, progress = talk.singly(last), Progress(f"adds at {times.messages:,}", last)
    for number, message in enumerate(singly):
        await pair.add(message, times)
        progress.at(number)
    times.vectors = await pair.index() / last
    return [message for batch in batches for message in batch] + singly


async def search_both(pair: Pair, spoken: Sequence[roomlore.Message], times: Times, seconds: float) -> None:
    rng = Random(times.messages)
    for room in sorted({message.room_id for message in spoken}):
        times.first_search.append(await timed(pair.lore.messages.search(room, query_of(rng, spoken), limit=LIMIT)))
    progress, spent = Progress(f"searches at {times.messages:,}", 200), 0.0
    while len(times.search) < 200 and (spent < seconds or len(times.search) < 15):
        await pair.search(rng.choice(spoken).room_id, query_of(rng, spoken), times)
        spent += times.mem0_search[-1]
        progress.at(len(times.search))


def query_of(rng: Random, spoken: Sequence[roomlore.Message]) -> str:
    """Words that somebody said, as many as people ask with."""
    words: list[str] = []
    while len(words) < QUERY_WORDS:
        words += rng.choice(spoken).text.split()
    return " ".join(words[:QUERY_WORDS])


SPEED_HEADER = """
Medians in ms. add: one message a call. +vector: with the work behind the call. batch: a message of a batch of one room.
first search: the first one of each room, when nothing of it is in memory.

| messages | mem0 add | add | ratio | +vector | ratio | batch | mem0 search | search | p95 | ratio | first search |
|---|---|---|---|---|---|---|---|---|---|---|---|"""


def speed_row(times: Times) -> str:
    mem0_add, add = median(times.mem0_add), median(times.add)
    mem0_search, search = median(times.mem0_search), median(times.search)
    whole = add + times.vectors
    cells = (
        f"{times.messages:,}",
        f"{mem0_add * 1e3:.2f}",
        f"{add * 1e3:.2f}",
        f"{mem0_add / add:.1f}",
        f"{whole * 1e3:.2f}",
        f"{mem0_add / whole:.1f}",
        f"{times.batched * 1e3:.2f}",
        f"{mem0_search * 1e3:,.1f} ({len(times.mem0_search)})",
        f"{search * 1e3:.2f}",
        f"{sorted(times.search)[int(len(times.search) * 0.95)] * 1e3:.2f}",
        f"{mem0_search / search:,.0f}",
        f"{median(times.first_search) * 1e3:.1f}",
    )
    return "| " + " | ".join(cells) + " |"


async def compare_quality(python: Path, folder: Path, suffix: str, kept: Path | None) -> None:
    queries = predict_retrieval.rows(folder / f"queries{suffix}.jsonl")
    embedder = predict_retrieval.offline(kept)
    settings = roomlore.Settings(enable_async_data_collection=False)
    with TemporaryDirectory() as store:
        url = f"sqlite:///{store}/peers.db"
        async with (
            roomlore.open(url, settings=settings, embedder=embedder, background=False) as lore,
            mem0(python, embedder.model.dimensions) as peer,
        ):
            await predict_retrieval.ingest(lore, folder / "messages.jsonl")
            await predict_retrieval.index(lore)
            await tell(peer, list(predict_retrieval.messages(folder / "messages.jsonl")), embedder)
            ours = [await predict_retrieval.search(lore, query, "hybrid", LIMIT) for query in queries]
            vectors = await embedder.embed([query["query"].strip() for query in queries], kind="query")
            theirs = [
                (await peer.search(query["room_id"], query["query"], vector, LIMIT))[1]
                for query, vector in zip(queries, vectors, strict=True)
            ]
    gold = {row["qid"]: set(row["gold"]) for row in predict_retrieval.rows(folder / f"gold{suffix}.jsonl")}
    for name, ranked in (("mem0", theirs), ("roomlore", ours)):
        print(f"R@{LIMIT} on {folder.name}{suffix}, {name}: {recall(queries, ranked, gold):.1%}", flush=True)


async def tell(peer: Mem0Peer, messages: Sequence[roomlore.Message], embedder: Embedder) -> None:
    """mem0's own `add`, one message a call."""
    pairs = [(message, _text_of(message)) for message in messages]
    vectors = await embedder.embed([text for _, text in pairs], kind="passage")
    progress = Progress("mem0's messages", len(pairs))
    for number, ((message, text), vector) in enumerate(zip(pairs, vectors, strict=True)):
        await peer.add(Told(message.room_id, message.id, text, vector))
        progress.at(number)


def _text_of(message: roomlore.Message) -> str:
    return f"{message.sender_name or message.sender_id}: {message.text}"


def recall(queries: Sequence[dict[str, str]], ranked: Sequence[Sequence[str]], gold: dict[str, set[str]]) -> float:
    """Share of the messages that answer a query among those found, mean over queries."""
    pairs = zip(queries, ranked, strict=True)
    shares = [len(gold[query["qid"]] & set(ranked_ids)) / len(gold[query["qid"]]) for query, ranked_ids in pairs]
    return sum(shares) / len(shares)
