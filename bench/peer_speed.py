"""Times roomlore and other stores beside each other on the same messages and vectors.

Made-up chat in 50 rooms; the stores grow from one size to the next. At each size the last messages are added one a call
to every store in turn, then all answer the same queries in turn. Embedding counts nowhere. What roomlore adds is found
by its words at once and gets its vector from work behind the call, which is told on a line of its own.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Protocol

import roomlore
from bench.chatter import chat
from bench.made_up import MadeUpEmbedder
from bench.peer_process import Kind, Told, peer
from bench.progress import Progress
from bench.search_speed import question
from bench.session_speed import rotated
from bench.took import Took, medians, took
from roomlore.core.search.hits import Vectors

ROOMS = 50
BATCH = 500
LIMIT = 10
_SEARCHES = 200
_FEW = 15


class Store(Protocol):
    """`vectors`: it is told them. `includes`: what its times tell."""

    @property
    def name(self) -> str: ...

    @property
    def vectors(self) -> bool: ...

    @property
    def includes(self) -> str: ...

    async def add(self, message: Told) -> Took: ...

    async def fill(self, messages: Sequence[Told]) -> Took:
        """Store many messages of one room."""

    async def search(self, room: str, query: str, vector: Vectors, limit: int) -> tuple[Took, list[str]]: ...


class Ours:
    """roomlore. `behind`: what making the vectors took since this was asked for last, of each message."""

    def __init__(self, lore: roomlore.Lore, embedder: MadeUpEmbedder | None) -> None:
        self._lore = lore
        self._embedder = embedder
        self._waiting = 0
        self.vectors = embedder is not None
        self.name = "roomlore" if embedder else "roomlore, words alone"
        self.includes = "on disk; the message is linked, its words are indexed" + (
            ", its vector comes from work behind the call: the second line has it" if embedder else ""
        )

    async def add(self, message: Told) -> Took:
        self._waiting += 1
        return await took(self._lore.messages.add(message.message))

    async def fill(self, messages: Sequence[Told]) -> Took:
        self._waiting += len(messages)
        return await took(self._lore.messages.add([message.message for message in messages]))

    async def search(self, room: str, query: str, vector: Vectors, limit: int) -> tuple[Took, list[str]]:
        if self._embedder:
            self._embedder.prepare(query)
        found: list[str] = []

        async def search() -> None:
            answer = await self._lore.messages.search(room, query, limit=limit)
            found.extend(hit.message.id for hit in answer.hits)

        return await took(search()), found

    async def behind(self) -> Took:
        waiting, self._waiting = self._waiting, 0
        return (await took(self._indexed())).each(max(waiting, 1))

    async def _indexed(self) -> None:
        async for _ in self._lore.index.drain():
            pass


@dataclass(slots=True)
class Times:
    """Of one store at one size. `batch`: a message of each batch."""

    add: list[Took] = field(default_factory=list)
    batch: list[Took] = field(default_factory=list)
    search: list[Took] = field(default_factory=list)
    batch_behind: Took | None = None
    add_behind: Took | None = None

    def full(self, seconds: float) -> bool:
        """Return True if the searches have taken so long that no more are timed."""
        return len(self.search) >= _FEW and sum(search.wall for search in self.search) > seconds


async def compare_speed(
    kinds: Sequence[Kind], environments: Path, sizes: Sequence[int], adds: int, seconds: float
) -> None:
    embedder = MadeUpEmbedder()
    async with AsyncExitStack() as stack:
        ours = [await stack.enter_async_context(_ours(given)) for given in (embedder, None)]
        others = [
            await stack.enter_async_context(peer(kind, environments, embedder.model.dimensions)) for kind in kinds
        ]
        growing = Growing([*ours, *others], embedder, Talk(max(sizes)))
        for store in growing.stores:
            print(f"- {store.name}: {store.includes}")
        print(HEAD, flush=True)
        for size in sizes:
            await growing.grow(size, adds)
            await growing.search(seconds)
            for row in rows(size, growing.stores, growing.times):
                print(row, flush=True)


@asynccontextmanager
async def _ours(embedder: MadeUpEmbedder | None) -> AsyncIterator[Ours]:
    settings = roomlore.Settings(enable_async_data_collection=False)
    with TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/peers.db"
        async with roomlore.open(url, settings=settings, embedder=embedder, background=False) as lore:
            yield Ours(lore, embedder)


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


class Growing:
    """The stores, which hold the same. `times`: by store, of the present size."""

    def __init__(self, stores: Sequence[Store], embedder: MadeUpEmbedder, talk: Talk) -> None:
        self.stores = stores
        self.times: dict[str, Times] = {}
        self._embedder = embedder
        self._talk = talk
        self._spoken: list[roomlore.Message] = []

    async def grow(self, size: int, adds: int) -> None:
        """Bring all to the size, the last messages singly."""
        self.times = {store.name: Times() for store in self.stores}
        missing = size - len(self._spoken)
        last = min(adds, missing)
        for number, batch in enumerate(self._talk.batches((missing - last) // ROOMS)):
            told = self._told(batch)
            for store in rotated(self.stores, number):
                self.times[store.name].batch.append((await store.fill(told)).each(len(batch)))
        await self._behind("batch_behind")
        progress = Progress(f"adds at {size:,}", last)
        for number, message in enumerate(self._talk.singly(last)):
            (single,) = self._told([message])
            for store in rotated(self.stores, number):
                self.times[store.name].add.append(await store.add(single))
            progress.at(number)
        await self._behind("add_behind")

    async def search(self, seconds: float) -> None:
        rng = Random(len(self._spoken))
        texts = [message.text for message in self._spoken]
        progress = Progress(f"searches at {len(texts):,}", _SEARCHES)
        for number in range(_SEARCHES):
            room, query = rng.choice(self._spoken).room_id, question(rng, texts)
            vector = self._embedder.vectors([query])[0]
            for store in rotated(self.stores, number):
                times = self.times[store.name]
                if not times.full(seconds):
                    times.search.append((await store.search(room, query, vector, LIMIT))[0])
            progress.at(number)

    def _told(self, messages: Sequence[roomlore.Message]) -> list[Told]:
        self._spoken += messages
        texts = [text_of(message) for message in messages]
        return [Told(*each) for each in zip(messages, texts, self._embedder.vectors(texts), strict=True)]

    async def _behind(self, which: str) -> None:
        for store in self.stores:
            if isinstance(store, Ours) and store.vectors:
                setattr(self.times[store.name], which, await store.behind())


def text_of(message: roomlore.Message) -> str:
    return f"{message.sender_name or message.sender_id}: {message.text}"


HEAD = """
Medians in ms, by the clock and (of the processor). batch: a message of a batch of one room, 500 at most. Ratios are to
roomlore that is told as much: a store that is told no vectors is compared with words alone.

| messages | store | add | ratio | batch | ratio | search | p95 | searches | ratio |
|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|"""


def rows(size: int, stores: Sequence[Store], times: Mapping[str, Times]) -> Iterator[str]:
    """Yield a line for each store. One more for that whose vectors follow: what it added, and the vector of it."""
    ours = {store.vectors: times[store.name] for store in stores if isinstance(store, Ours)}
    for store in stores:
        own, base = times[store.name], ours[store.vectors]
        add, batch, search = (medians(calls) for calls in (own.add, own.batch, own.search))
        stored = _stored(add, batch, base)
        p95 = sorted(call.wall for call in own.search)[int(len(own.search) * 0.95)]
        found = f"{_shown(search)} | {1e3 * p95:.2f} | {len(own.search)} | {_ratio(search, medians(base.search))}"
        yield f"| {size:,} | {store.name} | {stored} | {found} |"
        if own.add_behind and own.batch_behind:
            stored = _stored(add.and_(own.add_behind), batch.and_(own.batch_behind), base)
            yield f"| {size:,} | {store.name}, with the vectors | {stored} | | | | |"


def _stored(add: Took, batch: Took, ours: Times) -> str:
    sides = ((add, medians(ours.add)), (batch, medians(ours.batch)))
    return " | ".join(f"{_shown(times)} | {_ratio(times, here)}" for times, here in sides)


def _shown(times: Took) -> str:
    return f"{1e3 * times.wall:,.2f} ({1e3 * times.processor:,.2f})"


def _ratio(times: Took, ours: Took) -> str:
    return f"{times.wall / ours.wall:,.2f} ({times.processor / ours.processor:,.2f})"
