"""Qdrant down, slow, wiped or talking rubbish: no write fails, search says so, and the index heals by itself."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

import roomlore
from qdrant_stand_in import QdrantStandIn
from roomlore.adapters.qdrant import open_qdrant
from roomlore.ports.vectors import MESSAGES
from roomlore.services.indexing import index_state
from roomlore_testkit.embedding import HashEmbedder
from tuned import tuned

TEXTS = ["green tea or black?", "the deploy is stuck", "花生过敏的人要小心", "lunch at noon", "谁在跑迁移？"]


def said(number: int, room: str = "tea") -> roomlore.Message:
    text = f"{TEXTS[number % len(TEXTS)]} {number}"
    return roomlore.Message(id=str(number), room_id=room, sender_id=f"s{number % 3}", text=text)


@pytest.fixture(autouse=True)
def short_rest(monkeypatch):
    monkeypatch.setattr(index_state, "_REST_SECONDS", 0.05)


@pytest.fixture
async def qdrant() -> AsyncIterator[QdrantStandIn]:
    async with QdrantStandIn() as server:
        yield server


@pytest.fixture(autouse=True)
def _tuned():
    with tuned(qdrant_timeout_seconds=1, index_lease_seconds=0.5):
        yield


@pytest.fixture
async def lore(qdrant) -> AsyncIterator[roomlore.Lore]:
    settings = roomlore.Settings(qdrant_url=qdrant.url)
    async with roomlore.open("sqlite://", settings=settings, embedder=HashEmbedder()) as opened:
        yield opened


async def soon(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await condition():  # noqa: ASYNC110 - what is waited for is the state of a store
            await asyncio.sleep(0.02)


async def whole(lore: roomlore.Lore, qdrant: QdrantStandIn, messages: int, room: str = "tea") -> None:
    """Waits until every message has its vector and search works at full again, with nobody doing anything."""

    async def settled() -> bool:
        status = await lore.index.status()
        answer = await lore.messages.search(room, TEXTS[0])
        return status.vectors == "whole" and answer.mode == "hybrid" and answer.degraded is None

    await soon(settled)
    vectors = open_qdrant(qdrant.url, timeout_seconds=60)
    assert await vectors.count(collection=MESSAGES, tenant=lore.tenant, scope=room) == messages
    await vectors.close()


def searches(qdrant: QdrantStandIn) -> int:
    """Return the number of searches that it was asked for."""
    return sum(line.endswith("/points/query/batch") for line in qdrant.requests)


async def test_all_is_well(lore, qdrant):
    await lore.messages.add([said(number) for number in range(10)])
    await whole(lore, qdrant, 10)
    answer = await lore.messages.search("tea", "花生过敏")
    assert answer.hits[0].message.text.startswith("花生过敏")


async def test_down_while_writing(lore, qdrant):
    await lore.messages.add([said(number) for number in range(5)])
    await whole(lore, qdrant, 5)
    await qdrant.stop()
    report = await lore.messages.add([said(number) for number in range(5, 25)])
    assert len(report.added) == 20
    answer = await lore.messages.search("tea", "the deploy is stuck 21")
    assert answer.mode == "lexical"
    assert "Qdrant" in answer.degraded
    assert answer.hits[0].message.id == "21"
    await lore.messages.delete("tea", "3")
    await lore.messages.edit("tea", "4", text="oolong, please")
    await qdrant.start()
    await whole(lore, qdrant, 24)
    answer = await lore.messages.search("tea", "oolong")
    assert answer.hits[0].message.id == "4"


async def test_down_from_the_start(qdrant):
    settings = roomlore.Settings(qdrant_url=qdrant.url)
    await qdrant.stop()
    async with roomlore.open("sqlite://", settings=settings, embedder=HashEmbedder()) as lore:
        await lore.messages.add([said(number) for number in range(5)])
        answer = await lore.messages.search("tea", "lunch")
        assert (answer.mode, answer.hits[0].message.id) == ("lexical", "3")
        assert answer.degraded
        await qdrant.start()
        await whole(lore, qdrant, 5)


async def test_wiped_between_writes(lore, qdrant):
    await lore.messages.add([said(number) for number in range(30)])
    await whole(lore, qdrant, 30)
    await qdrant.wipe()
    await lore.messages.add([said(number) for number in range(30, 35)])
    await whole(lore, qdrant, 35)


async def test_wiped_while_nobody_writes_is_noticed_by_a_search(lore, qdrant):
    await lore.messages.add([said(number) for number in range(8)])
    await whole(lore, qdrant, 8)
    await qdrant.wipe()
    answer = await lore.messages.search("tea", "lunch")
    assert (answer.mode, answer.degraded is None) == ("lexical", False)
    await whole(lore, qdrant, 8)


async def test_wiped_again_and_again_while_writing(lore, qdrant):
    for number in range(40):
        await lore.messages.add(said(number))
        if number % 9 == 5:
            await qdrant.wipe()
        await asyncio.sleep(0.005)
    await whole(lore, qdrant, 40)


async def test_an_older_state_brought_back_is_noticed(lore, qdrant):
    await lore.messages.add([said(number) for number in range(4)])
    await whole(lore, qdrant, 4)
    old = await qdrant.snapshot()
    async for _ in lore.index.rebuild(part="vectors"):
        pass
    await lore.messages.add([said(number) for number in range(4, 9)])
    await whole(lore, qdrant, 9)
    await qdrant.restore(old)
    await lore.messages.search("tea", "lunch")
    await whole(lore, qdrant, 9)


async def test_slow_costs_one_search_its_time_and_not_the_next(lore, qdrant, monkeypatch):
    await lore.messages.add([said(number) for number in range(5)])
    await whole(lore, qdrant, 5)
    monkeypatch.setattr(index_state, "_REST_SECONDS", 600)
    qdrant.delay = 60
    slow = await lore.messages.search("tea", "lunch")
    assert slow.degraded
    assert slow.hits[0].message.id == "3"
    assert slow.search_ms < 30_000
    asked = searches(qdrant)
    after = await lore.messages.search("tea", "lunch")
    assert after.degraded
    assert searches(qdrant) == asked > 0
    await lore.messages.add(said(5))


@pytest.mark.parametrize("fault", ["error", "html", "garbage", "wrong", "half"])
async def test_rubbish(lore, qdrant, fault):
    await lore.messages.add([said(number) for number in range(5)])
    await whole(lore, qdrant, 5)
    qdrant.fault = fault
    await lore.messages.add([said(number) for number in range(5, 9)])
    answer = await lore.messages.search("tea", "lunch")
    assert answer.degraded
    assert answer.mode == "lexical"
    assert answer.hits
    qdrant.fault = None
    await whole(lore, qdrant, 9)
