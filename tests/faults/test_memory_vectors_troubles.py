"""Qdrant down, slow, wiped or talking rubbish: memories are written all the same, their search says so, and the index
heals by itself."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

import roomlore
from qdrant_stand_in import QdrantStandIn
from roomlore.adapters.qdrant import open_qdrant
from roomlore.ports.vectors import MEMORIES
from roomlore.services.indexing import index_state
from roomlore_testkit.embedding import HashEmbedder
from tuned import tuned

SAID = ["green tea is preferred", "deploys go out on Monday", "有人对花生过敏", "lunch is at noon", "迁移由小王负责"]
SCOPE = "group:tea"


@pytest.fixture(autouse=True)
def short_rest(monkeypatch):
    monkeypatch.setattr(index_state, "_REST_SECONDS", 0.05)


@pytest.fixture(autouse=True)
def _tuned():
    with tuned(qdrant_timeout_seconds=1, index_lease_seconds=0.5):
        yield


@pytest.fixture
async def qdrant() -> AsyncIterator[QdrantStandIn]:
    async with QdrantStandIn() as server:
        yield server


def opened(qdrant: QdrantStandIn):
    settings = roomlore.Settings(qdrant_url=qdrant.url)
    return roomlore.open("sqlite://", settings=settings, embedder=HashEmbedder(dimensions=256))


@pytest.fixture
async def lore(qdrant) -> AsyncIterator[roomlore.Lore]:
    async with opened(qdrant) as lore:
        yield lore


async def remember(lore: roomlore.Lore, first: int, end: int) -> list[roomlore.Memory]:
    return [await lore.memories.add(SCOPE, f"{SAID[n % len(SAID)]} {n}", memory_id=f"f{n}") for n in range(first, end)]


async def found(lore: roomlore.Lore, question: str) -> roomlore.MemoryAnswer:
    return await lore.memories.search("tea", question, threshold=0, limit=200)


async def soon(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await condition():  # noqa: ASYNC110 - what is waited for is the state of a store
            await asyncio.sleep(0.02)


async def whole(lore: roomlore.Lore, qdrant: QdrantStandIn, memories: int) -> None:
    """Waits until every active memory has its vector, and no other has, with nobody doing anything but searching."""
    vectors = open_qdrant(qdrant.url)

    async def settled() -> bool:
        answer = await found(lore, SAID[0])
        if (await lore.index.status()).vectors != "whole" or answer.mode != "hybrid" or answer.degraded:
            return False
        return await vectors.count(collection=MEMORIES, tenant=lore.tenant, scope=SCOPE) == memories

    await soon(settled)
    await vectors.close()


async def test_all_is_well(lore, qdrant):
    await remember(lore, 0, 10)
    await whole(lore, qdrant, 10)
    answer = await found(lore, "谁对花生过敏？")
    assert answer.hits[0].memory.statement.startswith("有人对花生过敏")
    points = [point for kept in qdrant.holdings.collections.values() for point in kept.points.values()]
    payload = next(point.payload for point in points if point.payload.get("memory_id") == "f3")
    assert payload["statement"] == "lunch is at noon 3"
    assert payload["group_id"] == SCOPE
    wanted = {"version", "created_at", "updated_at", "parent_id", "change_summary", "status", "tags", "strength"}
    assert wanted <= set(payload)


async def test_down_while_writing(lore, qdrant):
    first = await remember(lore, 0, 5)
    await whole(lore, qdrant, 5)
    await qdrant.stop()
    await remember(lore, 5, 9)
    answer = await found(lore, "deploys on Monday 6")
    assert (answer.mode, answer.hits[0].memory.memory_id) == ("lexical", "f6")
    assert "Qdrant" in answer.degraded
    await lore.memories.delete(first[3].memory_id)
    await lore.memories.update(first[4].memory_id, statement="oolong is preferred")
    assert (await found(lore, "oolong")).hits[0].memory.statement == "oolong is preferred"
    await qdrant.start()
    await whole(lore, qdrant, 8)
    answer = await found(lore, "oolong")
    assert answer.hits[0].memory.statement == "oolong is preferred"
    assert answer.hits[0].signals["meaning"] > 0.5
    assert {hit.memory.memory_id for hit in answer.hits}.isdisjoint({"f3", "f4"})


async def test_down_from_the_start(qdrant):
    await qdrant.stop()
    async with opened(qdrant) as lore:
        await remember(lore, 0, 5)
        answer = await found(lore, "lunch")
        assert (answer.mode, answer.hits[0].memory.memory_id) == ("lexical", "f3")
        assert answer.degraded
        await qdrant.start()
        await whole(lore, qdrant, 5)


async def test_wiped_between_writes(lore, qdrant):
    await remember(lore, 0, 8)
    await whole(lore, qdrant, 8)
    await qdrant.wipe()
    await remember(lore, 8, 10)
    await whole(lore, qdrant, 10)


async def test_wiped_while_nobody_writes_is_noticed_by_a_search(lore, qdrant):
    await remember(lore, 0, 6)
    await whole(lore, qdrant, 6)
    await qdrant.wipe()
    answer = await found(lore, "lunch")
    assert (answer.mode, answer.degraded is None) == ("lexical", False)
    await whole(lore, qdrant, 6)


async def test_an_older_state_brought_back_shows_nothing_that_is_gone(lore, qdrant):
    first = await remember(lore, 0, 5)
    await whole(lore, qdrant, 5)
    old = await qdrant.snapshot()
    await lore.memories.delete(first[0].memory_id)
    await remember(lore, 5, 7)
    await whole(lore, qdrant, 6)
    await qdrant.restore(old)
    answer = await found(lore, "green tea")
    assert {hit.memory.memory_id for hit in answer.hits} == {f"f{n}" for n in range(1, 7)}


async def test_slow_costs_one_search_its_time_and_not_the_next(lore, qdrant, monkeypatch):
    await remember(lore, 0, 5)
    await whole(lore, qdrant, 5)
    monkeypatch.setattr(index_state, "_REST_SECONDS", 300)
    qdrant.delay = 30
    slow = await found(lore, "lunch")
    assert slow.degraded
    assert slow.hits[0].memory.memory_id == "f3"
    asked = len(qdrant.requests)
    after = await found(lore, "lunch")
    assert (after.mode, after.degraded) == ("lexical", slow.degraded)
    assert not [line for line in qdrant.requests[asked:] if "query" in line], "nothing was asked of it"
    await remember(lore, 5, 6)


@pytest.mark.parametrize("fault", ["error", "html", "garbage", "wrong", "half"])
async def test_rubbish(lore, qdrant, fault):
    await remember(lore, 0, 5)
    await whole(lore, qdrant, 5)
    qdrant.fault = fault
    await remember(lore, 5, 8)
    answer = await found(lore, "lunch")
    assert answer.mode == "lexical"
    assert answer.degraded
    assert answer.hits
    qdrant.fault = None
    await whole(lore, qdrant, 8)
