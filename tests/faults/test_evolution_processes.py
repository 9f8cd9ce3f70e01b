"""Processes that evolve the same group, and kill -9 at any moment: each message is read into memory once."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import psycopg
import pytest

import roomlore
from evolution_rig import CHINESE, active, block, create, lines, mark, talk, update
from extraction_rig import until
from roomlore import Lore, Settings
from roomlore_testkit.model_server import ModelServer, Says
from worker_processes import Process, Workers, answer_kept, kill, workers_of

WORKER = Path(__file__).with_name("evolving_worker.py")
QUICK = Says(text=lines(create(CHINESE.new[0], "c1")))
SLOW = Says(text=QUICK.text, after=60)


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer(default=QUICK) as started:
        yield started


@pytest.fixture
async def workers(url, server) -> AsyncIterator[Workers]:
    async with workers_of(WORKER, url, server.url) as started:
        yield started


async def start(workers: Workers, verb: str) -> Process:
    """One that is ready, or has handed its work in."""
    return await workers.spawn(verb, until="ready")


@pytest.fixture
async def lore(url) -> AsyncIterator[Lore]:
    """A process that looks on and does no work."""
    async with roomlore.open(url, settings=Settings(evolve_schedule=""), background=False) as opened:
        yield opened


async def go(process: Process) -> dict[str, int]:
    """Lets it evolve, and says what came of it."""
    printed, _ = await process.communicate(b"go\n")
    assert process.returncode == 0
    return json.loads(printed)


async def asked(server: ModelServer, count: int) -> None:
    async def enough() -> bool:
        return len(server.requests) >= count

    await until(enough, seconds=120)


async def remembered(lore: Lore, statements: list[str]) -> None:
    async def there() -> bool:
        return await active(lore) == statements

    await until(there, seconds=120)


async def test_processes_that_evolve_a_group_at_once_do_it_one_after_the_other(lore, server, workers):
    """The first one reads 200 messages; the next ones read what it left, and see what it made."""

    def script(request):
        number = len(server.requests)
        if number == 1:
            return Says(text=lines(create("版本一", "c1")), after=1)
        before = block(request, "memories")[0].split("]: ")[1]
        return Says(text=lines(update("m1", f"{before}，再加{number}", "c1")), after=0.3)

    server.answer = script
    await talk(lore, CHINESE, range(1, 501))
    processes = await asyncio.gather(*(start(workers, "evolve") for _ in range(4)))
    results = await asyncio.gather(*map(go, processes))
    assert sorted(result["messages"] for result in results) == [0, 100, 200, 200]
    assert sum(result["created"] for result in results) == 1
    assert await active(lore) == ["版本一，再加2，再加3"]
    assert (len(server.requests), await mark(lore)) == (3, 500)
    (memory,) = await lore.memories.page("group:g")
    assert [one.version for one in await lore.memories.history(memory.memory_id)] == [1, 2, 3]
    read = [(record.first_arrival, record.last_arrival) for record in await lore.memories.evolutions("group:g")]
    assert sorted(read) == [(1, 200), (201, 400), (401, 500)]


async def test_killed_while_the_model_thinks_another_process_goes_on(lore, server, workers):
    server.default = SLOW
    await talk(lore, CHINESE, range(1, 8))
    first = await start(workers, "evolve")
    assert first.stdin is not None
    first.stdin.write(b"go\n")
    await asked(server, 1)
    await kill(first)
    assert (await active(lore), await mark(lore)) == ([], None)
    server.default = QUICK
    result = await go(await start(workers, "evolve"))
    assert (result["created"], result["messages"]) == (1, 7)
    assert (await active(lore), await mark(lore)) == ([CHINESE.new[0]], 7)
    assert len(await lore.memories.evolutions("group:g")) == 1


async def test_durable_work_that_was_killed_while_the_model_thinks_is_done_by_the_next(lore, server, workers):
    server.default = SLOW
    await talk(lore, CHINESE, range(1, 8))
    process = await start(workers, "begin")
    await asked(server, 1)
    await kill(process)
    assert await active(lore) == []
    server.default = QUICK
    await start(workers, "work")
    await remembered(lore, [CHINESE.new[0]])
    assert (len(server.requests), await mark(lore)) == (2, 7)
    assert len(await lore.memories.evolutions("group:g")) == 1


@asynccontextmanager
async def busy(url: str) -> AsyncIterator[None]:
    """Nobody else can write what an evolution writes."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
            other.execute("ROLLBACK")
        return
    async with await psycopg.AsyncConnection.connect(url) as connection:
        await connection.execute("LOCK TABLE evolutions IN ACCESS EXCLUSIVE MODE")
        yield
        await connection.rollback()


@pytest.mark.parametrize("url", ["sqlite_url"], indirect=True)
async def test_durable_work_that_was_killed_after_the_model_answered_does_not_ask_again(lore, url, server, workers):
    """The result cannot be stored, since another process writes; the answer is kept all the same."""
    server.default = Says(text=QUICK.text, after=1)
    await talk(lore, CHINESE, range(1, 8))
    process = await start(workers, "begin")
    await asked(server, 1)
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        await until(lambda: answer_kept(url, "first/tiny"), seconds=120)
        await kill(process)
        other.execute("ROLLBACK")
    assert await active(lore) == []
    await start(workers, "work")
    await remembered(lore, [CHINESE.new[0]])
    (record,) = await lore.memories.evolutions("group:g")
    assert (record.raw_answer, record.usage.input_tokens, len(server.requests)) == (QUICK.text, 7, 1)


async def test_an_answer_that_was_paid_for_counts_though_more_was_said_since(lore, url, server, workers):
    """The next process reads what the killed one read, and it asks for nothing: to be open is enough."""
    server.default = Says(text=QUICK.text, after=1)
    await talk(lore, CHINESE, range(1, 8))
    process = await start(workers, "begin")
    await asked(server, 1)
    async with busy(url):
        await until(lambda: answer_kept(url, "first/tiny"), seconds=120)
        await kill(process)
    await talk(lore, CHINESE, range(8, 12))
    await start(workers, "nothing")
    await remembered(lore, [CHINESE.new[0]])
    (record,) = await lore.memories.evolutions("group:g")
    assert (record.first_arrival, record.last_arrival, record.facts["remaining"]) == (1, 7, 4)
    assert (len(server.requests), await mark(lore)) == (1, 7)
