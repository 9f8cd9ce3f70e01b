"""The faulty storage fails where it is told to, and only there."""

import asyncio
import time

import pytest

from roomlore.core.errors import Conflict, StorageUnavailable
from roomlore.storage import connect
from roomlore_testkit import FaultyStorage, entry
from storage_contracts.messages import MessagesContract
from storage_contracts.texts import ROOM, TENANT, everything, fill


@pytest.fixture
async def storage():
    faulty = FaultyStorage(await connect("sqlite://"))
    yield faulty
    await faulty.close()


class TestMessagesThroughIt(MessagesContract): ...


@pytest.mark.parametrize("name", ["writing", "rooms.lock", "messages.append", "commit", "*"])
async def test_a_write_that_fails_keeps_nothing(storage, name):
    storage.fail(name)
    with pytest.raises(StorageUnavailable, match="told to fail"):
        await fill(storage, [entry(1)])
    storage.heal()
    assert await everything(storage) == []
    await fill(storage, [entry(1)])


async def test_reads_fail_one_by_one(storage):
    storage.fail("messages.recent", Conflict("chosen"))
    async with storage.reading(TENANT) as work:
        with pytest.raises(Conflict, match="chosen"):
            await work.messages.recent(room_id=ROOM, limit=1)
        assert await work.messages.tail(room_id=ROOM, limit=1) == []
    assert storage.calls == ["reading", "messages.recent", "messages.tail"]


async def test_a_delay_can_be_outrun(storage):
    storage.delay("messages.tail", 60)
    started = time.perf_counter()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(everything(storage), 0.05)
    assert time.perf_counter() - started < 30
    await storage.ping()
