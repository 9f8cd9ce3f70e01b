"""kill -9 between commit and indexing, and anywhere else: nothing acknowledged is without its place in the index."""

import asyncio
import contextlib
import random
import signal
from pathlib import Path

import pytest

import roomlore
from forked_process import ForkedProcess
from roomlore.adapters.vectors.sql import SqlVectors
from roomlore.core.errors import VectorsUnavailable
from roomlore.ports.vectors import MESSAGES
from roomlore.storage import connect
from roomlore_testkit.embedding import HashEmbedder
from tuned import tuned
from worker_processes import kills

INDEXER = Path(__file__).with_name("indexer.py")
KILLS = kills(2)


async def start(url: str, first: int, count: int, *extra: str) -> ForkedProcess:
    return await ForkedProcess.start(INDEXER, url, str(first), str(count), *extra)


@pytest.fixture(autouse=True)
def _tuned():
    with tuned(index_lease_seconds=0.2):
        yield


async def acknowledged(process: ForkedProcess) -> list[int]:
    output, _ = await process.communicate()
    return [int(line) for line in output.decode().splitlines() if line.endswith(tuple("0123456789"))]


async def assert_whole(url: str, numbers: list[int]) -> None:
    """Opened again, everything acknowledged is indexed by itself, by words and by meaning."""
    settings = roomlore.Settings(vectors="sql")
    async with roomlore.open(url, settings=settings, embedder=HashEmbedder()) as lore:
        async with asyncio.timeout(120):
            while (await lore.index.status()).vectors != "whole":
                await asyncio.sleep(0.1)
                with contextlib.suppress(VectorsUnavailable):  # the index may be left for a moment to the one that died
                    async for _ in lore.index.drain():
                        pass
        stored = [message.arrival async for message in lore.messages.export("tea")]
        assert len(stored) >= len(numbers)
        for number in numbers[:: max(1, len(numbers) // 10)]:
            answer = await lore.messages.search("tea", f"remark {number}")
            assert answer.degraded is None
            assert answer.hits[0].message.id == str(number)
    storage = await connect(url)
    vectors = SqlVectors(storage, cache_bytes=1 << 20)
    assert await vectors.count(collection=MESSAGES, tenant="default", scope="tea") == len(stored)
    await vectors.close()
    await storage.close()


async def test_killed_between_commit_and_indexing(url):
    process = await start(url, 0, 20, "die")
    numbers = await acknowledged(process)
    assert process.returncode == -signal.SIGKILL
    assert numbers, "nothing was acknowledged before the process died"
    await assert_whole(url, numbers)


async def test_killed_anywhere(url):
    chance = random.Random(20240501)
    numbers: list[int] = []
    for _ in range(KILLS):
        process = await start(url, len(numbers) and numbers[-1] + 1, 10_000)
        await process.stdout.readline()
        await asyncio.sleep(chance.uniform(0.02, 0.4))
        process.kill()
        numbers += await acknowledged(process)
    await assert_whole(url, numbers)
