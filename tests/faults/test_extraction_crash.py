"""kill -9 while memories are made: each is made once, and an answer that was kept is not paid for again."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

import roomlore
from extraction_rig import CHINESE, conversations, memories, records, until
from roomlore import Lore, Settings
from roomlore_testkit.model_server import ModelServer, Says
from worker_processes import Process, Workers, answer_kept, end, kill, workers_of

WORKER = Path(__file__).with_name("replying_worker.py")
AT_ONCE = 2
"""Memories that a process makes again at a time."""
QUICK, SLOW = Says(text=CHINESE.summary), Says(text=CHINESE.summary, after=30)


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer(default=QUICK) as started:
        yield started


@pytest.fixture
async def workers(sqlite_url, server) -> AsyncIterator[Workers]:
    async with workers_of(WORKER, sqlite_url, server.url) as started:
        yield started


async def start(workers: Workers, *, first: int = 1, count: int = 0, room: str = "r") -> Process:
    """One that has stored its replies."""
    return await workers.spawn(room, first, count, until="written")


@pytest.fixture
async def lore(sqlite_url) -> AsyncIterator[Lore]:
    """A process that looks on and does no work."""
    async with roomlore.open(sqlite_url, settings=Settings(), background=False) as opened:
        yield opened


async def made(lore: Lore, count: int) -> None:
    async def there() -> bool:
        return len(await memories(lore)) >= count

    await until(there, seconds=120)


async def until_asked(server: ModelServer, count: int) -> None:
    async def asked() -> bool:
        return len(server.requests) >= count

    await until(asked, seconds=120)


async def test_killed_while_the_model_thinks(lore, server, workers):
    server.default = SLOW
    for kills in (1, 2):
        process = await start(workers, count=5 if kills == 1 else 0)
        await until_asked(server, kills)
        await kill(process)
    assert await memories(lore) == []
    server.default = QUICK
    process = await start(workers)
    await made(lore, 1)
    await end(process)
    (memory,) = await memories(lore)
    assert (memory.statement, memory.version) == (CHINESE.summary, 1)
    assert len(server.requests) == 3
    assert len(set(conversations(server))) == 1


async def test_killed_after_the_model_answered(lore, sqlite_url, server, workers):
    """The memory cannot be stored, since another process writes; the answer is kept all the same."""
    server.default = Says(text=CHINESE.summary, after=0.3)
    process = await start(workers, count=5)
    await until_asked(server, 1)
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        await until(lambda: answer_kept(sqlite_url, "first/tiny"), seconds=120)
        await kill(process)
        other.execute("ROLLBACK")
    assert await memories(lore) == []
    process = await start(workers)
    await made(lore, 1)
    await end(process)
    (record,) = await records(lore)
    assert (record.model, record.usage.input_tokens, record.last_arrival) == ("first/tiny", 7, 10)
    assert len(server.requests) == 1


async def test_killed_between_replies(lore, server, workers):
    """All state is in the messages: nothing is lost, and nothing is read or made twice."""
    for first in (1, 5):
        process = await start(workers, first=first, count=4)
        await kill(process)
    process = await start(workers, first=9, count=2)
    await made(lore, 2)
    await end(process)
    found = await records(lore)
    assert [(record.first_arrival, record.last_arrival) for record in found] == [(1, 10), (11, 20)]
    assert len(await memories(lore)) == 2
    assert set(conversations(server)) == {
        "\n".join(f"u1: 问题 {n}\nbot: 回复 {n}" for n in numbers) for numbers in (range(1, 6), range(6, 11))
    }


async def test_killed_while_memories_are_made_again(lore, server, workers):
    await server.stop()
    process = await start(workers, count=30)
    await made(lore, 6)
    await kill(process)
    await server.start()
    server.default = Says(text=CHINESE.summary, after=0.2)
    process = await start(workers)
    await until_asked(server, 3)
    await kill(process)
    process = await start(workers)

    async def all_made() -> bool:
        return {memory.made_by for memory in await memories(lore)} == {"first/tiny"}

    await until(all_made, seconds=120)
    await end(process)
    found = await memories(lore)
    assert [(memory.version, memory.fallback) for memory in found] == [(2, False)] * 6
    assert len(server.requests) <= 6 + AT_ONCE
    assert len(set(conversations(server))) == 6


async def test_two_processes_share_a_file(lore, server, workers):
    processes = [await start(workers, first=first, count=5, room="r") for first in (1, 6)]
    await made(lore, 2)
    for process in processes:
        await end(process)
    found = await records(lore)
    assert [(record.first_arrival, record.last_arrival) for record in found] == [(1, 10), (11, 20)]
    assert len(server.requests) == 2
