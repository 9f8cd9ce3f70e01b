"""Forgetting leaves the event loop to others: the work on texts is done in threads, a page at a time."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from time import thread_time

import pytest

import roomlore
from roomlore import Message, NewMemory, Settings, Source

ANN = "ann-7f3a9c"
LONG = 0.1
"""Seconds of processor time between two turns of the loop, in which it does nothing else. Done on the loop, the work on
the texts below takes many times as long."""
_WORDS = ("garden", "coffee", "market", "train window", "river", "paper stone", "music", "花园", "咖啡", "市场火车")


def text(chance: Random, sentences: int) -> str:
    return " ".join(f"{' '.join(chance.choices(_WORDS, k=9))}." for _ in range(sentences))


@pytest.fixture
async def lore(sqlite_url) -> AsyncIterator[roomlore.Lore]:
    """A room where Ann and others said much, others quoted her, and much is remembered of it."""
    chance = Random(20261128)
    said = [text(chance, 40) for _ in range(60)]
    messages = [
        Message(id=f"{who}{number}", room_id="tea", sender_id=who, text=one)
        for number, theirs in enumerate(said)
        for who, one in ((ANN, theirs), ("ben", f"> {theirs}\n@{ANN} {text(chance, 20)}"))
    ]
    memories = [
        NewMemory(
            scope="group:tea",
            kind="group",
            statement=f"{text(chance, 8)} {one[:1500]}",
            sources=[Source("tea", f"{ANN}{number}"), Source("tea", f"ben{number}")],
        )
        for number, one in enumerate(said)
    ]
    settings = Settings(durable_work="process")
    async with roomlore.open(sqlite_url, settings=settings, background=False) as opened:
        await opened.messages.add(messages)
        await opened.memories.add_all(memories)
        yield opened


@asynccontextmanager
async def turns() -> AsyncIterator[list[float]]:
    """Yield the processor time of each turn of the loop. Without the garbage collector, which would look through what
    the tests before have left: 0.14 s, once."""
    taken: list[float] = []

    async def beat() -> None:
        while True:
            begun = thread_time()
            await asyncio.sleep(0.001)
            taken.append(thread_time() - begun)

    beating = asyncio.create_task(beat())
    gc.disable()
    try:
        yield taken
    finally:
        gc.enable()
        beating.cancel()


@pytest.mark.parametrize("dry_run", [True, False], ids=["dry run", "run"])
async def test_the_event_loop_is_free_while_texts_are_read_and_redacted(lore, dry_run):
    async with turns() as taken:
        report = await lore.privacy.forget(ANN, dry_run=dry_run)
    assert report.places.keys() >= {"messages", "messages of others", "memories", "memory_changes"}
    assert [round(one, 3) for one in taken if one > LONG] == []
