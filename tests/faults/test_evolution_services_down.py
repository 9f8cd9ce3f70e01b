"""PostgreSQL, Redis or Qdrant gone while a group evolves: all of an evolution is done or none of it, and once."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import psycopg
import pytest

import roomlore
from evolution_rig import CHINESE, ENGLISH, active, create, lines, mark, remember, settings, talk, update
from extraction_rig import until
from qdrant_stand_in import QdrantStandIn
from redis_server import RedisServer
from roomlore import Lore
from roomlore.core.errors import StorageUnavailable
from roomlore.core.memory.log import replay
from roomlore.services.indexing import index_state
from roomlore_testkit.embedding import HashEmbedder
from roomlore_testkit.model_server import ModelServer, Says
from tuned import apart, tuned

QUICK = Says(text=lines(update("m1", CHINESE.better[0], "c1"), create(CHINESE.new[0], "c2")))
AFTER = [CHINESE.better[0], CHINESE.new[0]]
BEFORE = [CHINESE.known[0]]
PATIENCE_SECONDS = 120
LEASE_SECONDS = 12
"""A lease on a group cannot be given back to a server that is down: the next evolution waits for its end."""


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer(default=QUICK) as started:
        yield started


@pytest.fixture
async def qdrant() -> AsyncIterator[QdrantStandIn]:
    async with QdrantStandIn() as started:
        yield started


@asynccontextmanager
async def talking(server: ModelServer, url: str, **more: object) -> AsyncIterator[Lore]:
    """A group that has said seven things and of which one thing is remembered."""
    constants = apart(more)
    given = settings(server, **{"evolve_schedule": "", "seconds": 60, **more})
    with tuned(**constants):
        async with roomlore.open(url, settings=given) as lore:
            await talk(lore, CHINESE, range(1, 8))
            await remember(lore, BEFORE)
            yield lore


def once(server: ModelServer, does: Callable[[], object]) -> None:
    """Does it while the model thinks about the first request."""

    def script(_asked: object) -> Says:
        if len(server.requests) == 1:
            does()
        return QUICK

    server.answer = script


async def assert_nothing_done(lore: Lore) -> None:
    async def reachable() -> bool:
        try:
            await lore.ping()
        except StorageUnavailable:
            return False
        return True

    await until(reachable, seconds=PATIENCE_SECONDS)
    assert (await active(lore), await mark(lore)) == (BEFORE, None)
    assert await lore.memories.evolutions("group:g") == []
    assert len(await lore.memories.changes("group:g")) == 1


async def assert_done_once(lore: Lore) -> None:
    assert (await active(lore), await mark(lore)) == (AFTER, 7)
    (record,) = await lore.memories.evolutions("group:g")
    changes = await lore.memories.changes("group:g")
    assert [change.evolution_id for change in changes] == [None, record.evolution_id, record.evolution_id]
    for memory_id, memory in replay(changes).items():
        assert await lore.memories.get(memory_id) == memory


async def test_postgresql_ends_while_the_model_thinks(own_postgres, server):
    once(server, own_postgres.stop)
    async with talking(server, own_postgres.url, evolve_lease_seconds=LEASE_SECONDS) as lore:
        with pytest.raises(StorageUnavailable):
            await lore.memories.evolve("g", mode="llm")
        own_postgres.start()
        await assert_nothing_done(lore)
        assert (await lore.memories.evolve("g", mode="llm")).messages == 7
        await assert_done_once(lore)


async def test_postgresql_ends_while_an_evolution_is_applied(own_postgres, server):
    """Its transaction waits for a table that somebody else holds, with the watermark moved, when the server ends."""
    async with talking(server, own_postgres.url, evolve_lease_seconds=LEASE_SECONDS) as lore:
        holding = await psycopg.AsyncConnection.connect(own_postgres.url)
        await holding.execute("LOCK TABLE evolutions IN SHARE MODE")
        evolving = asyncio.ensure_future(lore.memories.evolve("g", mode="llm"))
        async with await psycopg.AsyncConnection.connect(own_postgres.url, autocommit=True) as looking:

            async def waits() -> bool:
                found = await looking.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
                return (await found.fetchone())[0] > 0

            await until(waits, seconds=PATIENCE_SECONDS)
            own_postgres.stop()
        with pytest.raises(StorageUnavailable):
            await evolving
        await holding.close()
        own_postgres.start()
        await assert_nothing_done(lore)
        assert (await lore.memories.evolve("g", mode="llm")).messages == 7
        await assert_done_once(lore)


async def test_durable_work_is_done_once_postgresql_is_back(own_postgres, server):
    once(server, own_postgres.stop)
    async with talking(server, own_postgres.url, durable_work="dbos") as lore:
        begun = await lore.memories.begin_evolution("g", mode="llm")

        async def down() -> bool:
            return bool(server.requests)

        await until(down, seconds=PATIENCE_SECONDS)
        await asyncio.sleep(1)
        own_postgres.start()

        async def done() -> bool:
            try:
                return (await lore.jobs.get(begun.job_id)).status == "done"
            except StorageUnavailable:
                return False

        await until(done, seconds=PATIENCE_SECONDS)
        await assert_done_once(lore)
        assert (await lore.memories.evolved(begun.evolution_id)).stats.updated == 1


async def test_redis_that_is_killed_is_not_missed(sqlite_url, server):
    redis = RedisServer()
    redis.start()
    try:
        once(server, redis.kill)
        async with talking(server, sqlite_url, redis_url=redis.url) as lore:
            assert (await lore.memories.evolve("g", mode="llm")).messages == 7
            await assert_done_once(lore)
    finally:
        redis.close()


@pytest.mark.parametrize("trouble", ["down", "wiped", "rubbish"])
async def test_qdrant_in_trouble_is_caught_up_with(monkeypatch, sqlite_url, server, qdrant, trouble):
    monkeypatch.setattr(index_state, "_REST_SECONDS", 0.05)
    monkeypatch.setattr(index_state, "LEASE_SECONDS", 0.5)
    monkeypatch.setattr("roomlore.adapters.qdrant.TIMEOUT_SECONDS", 1)
    given = settings(server, evolve_schedule="", qdrant_url=qdrant.url)
    async with roomlore.open(sqlite_url, settings=given, embedder=HashEmbedder()) as lore:
        await talk(lore, ENGLISH, range(1, 8))
        await remember(lore, BEFORE)
        await until(lambda: whole(lore), seconds=PATIENCE_SECONDS)
        await {"down": qdrant.stop, "wiped": qdrant.wipe}.get(trouble, lambda: rubbish(qdrant))()
        assert (await lore.memories.evolve("g", mode="llm")).messages == 7
        await assert_done_once(lore)
        found = await lore.memories.search("g", AFTER[1], threshold=0.1)
        assert found.degraded or trouble == "wiped"  # that may be mended by now
        assert found.hits[0].memory.statement == AFTER[1]
        if trouble == "down":
            await qdrant.start()
        qdrant.fault = None
        await until(lambda: finds(lore), seconds=PATIENCE_SECONDS)


async def rubbish(qdrant: QdrantStandIn) -> None:
    qdrant.fault = "garbage"


async def whole(lore: Lore) -> bool:
    return (await lore.index.status()).vectors == "whole"


async def finds(lore: Lore) -> bool:
    found = await lore.memories.search("g", AFTER[1], threshold=0.1)
    return found.degraded is None and found.hits[0].memory.statement == AFTER[1] and await whole(lore)
