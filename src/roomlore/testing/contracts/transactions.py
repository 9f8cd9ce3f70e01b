"""All of a unit of work or none of it, and one writer to a room at a time."""

import asyncio

import pytest

from roomlore.core.errors import Conflict
from roomlore.core.models import ApiKey
from roomlore.ports.storage import Storage
from roomlore.testing.builders import START, entry, usage_record
from roomlore.testing.contracts.filling import ROOM, TENANT, digest, everything, fill


class _StopError(Exception):
    """Raised by a test inside a unit of work."""


async def append_one(storage: Storage, text: str) -> int:
    """Adds one message at whatever arrival the room is at; returns that arrival."""
    async with storage.writing() as work:
        room = await work.rooms.lock(tenant=TENANT, room_id=ROOM, now=START)
        await asyncio.sleep(0)
        said = entry(room.next_arrival, text=text)
        await work.writer.append(tenant=TENANT, room_id=ROOM, entries=[said])
        return room.next_arrival


async def _write_and_stop(storage: Storage) -> None:
    key = ApiKey(key_id="k1", tenant=TENANT, name="bot", scopes=(), created_at=START)
    async with storage.writing() as work:
        await work.rooms.lock(tenant=TENANT, room_id=ROOM, now=START)
        await work.writer.append(tenant=TENANT, room_id=ROOM, entries=[entry(1)])
        await work.usage.record(tenant=TENANT, records=[usage_record("c1")])
        await work.keys.add(key=key, secret_hash=digest("k1"))
        raise _StopError


class TransactionsContract:
    async def test_what_raises_leaves_nothing(self, storage: Storage) -> None:
        with pytest.raises(_StopError):
            await _write_and_stop(storage)
        async with storage.reading() as work:
            assert await work.rooms.find(tenant=TENANT, room_id=ROOM) is None
            assert await work.messages.recent(tenant=TENANT, room_id=ROOM, limit=9) == []
            assert await work.usage.find(tenant=TENANT, context_id="c1") is None
            assert not await work.keys.any()

    async def test_a_conflict_leaves_nothing_of_its_batch(self, storage: Storage) -> None:
        await fill(storage, [entry(1)])
        with pytest.raises(Conflict):
            await fill(storage, [entry(2), entry(3, id="m1")])
        assert await everything(storage) == [entry(1)]
        assert await append_one(storage, "again") == 2

    async def test_a_cancelled_writer_leaves_nothing_and_blocks_nobody(self, storage: Storage) -> None:
        entered = asyncio.Event()

        async def stuck() -> None:
            async with storage.writing() as work:
                await work.rooms.lock(tenant=TENANT, room_id=ROOM, now=START)
                await work.writer.append(tenant=TENANT, room_id=ROOM, entries=[entry(1)])
                entered.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(stuck())
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await append_one(storage, "next") == 1

    async def test_a_writer_cancelled_at_any_moment_blocks_nobody(self, storage: Storage) -> None:
        await fill(storage, [])
        for step in range(40):
            task = asyncio.create_task(append_one(storage, "cancelled"))
            await asyncio.sleep(step / 10_000)
            task.cancel()
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        last = await append_one(storage, "last")
        assert [found.message.arrival for found in await everything(storage)] == list(range(1, last + 1))

    async def test_a_writer_cancelled_as_its_turn_comes_is_cancelled(self, storage: Storage) -> None:
        for steps in range(8):
            async with storage.writing():
                task = asyncio.create_task(append_one(storage, "cancelled"))
                await asyncio.sleep(0.01)
            for _ in range(steps):
                await asyncio.sleep(0)
            ended = task.done()
            task.cancel()
            (came,) = await asyncio.gather(task, return_exceptions=True)
            assert ended or isinstance(came, asyncio.CancelledError)
        assert await append_one(storage, "last") >= 1

    async def test_a_cancelled_reader_leaves_a_working_store(self, storage: Storage) -> None:
        await fill(storage, [entry(n) for n in range(1, 400)])
        for _ in range(8):
            task = asyncio.create_task(everything(storage))
            await asyncio.sleep(0.001)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert len(await everything(storage)) == 399

    async def test_a_unit_of_work_reads_what_it_wrote(self, storage: Storage) -> None:
        async with storage.writing() as work:
            await work.rooms.lock(tenant=TENANT, room_id=ROOM, now=START)
            await work.writer.append(tenant=TENANT, room_id=ROOM, entries=[entry(1)])
            assert await work.messages.tail(tenant=TENANT, room_id=ROOM, limit=9) == [entry(1)]

    async def test_concurrent_writers_never_share_an_arrival(self, storage: Storage) -> None:
        arrivals = await asyncio.gather(*(append_one(storage, f"text {n}") for n in range(24)))
        assert sorted(arrivals) == list(range(1, 25))
        stored = await everything(storage)
        assert [found.message.arrival for found in stored] == list(range(1, 25))
        assert {found.message.text for found in stored} == {f"text {n}" for n in range(24)}

    async def test_many_readers_beside_a_writer(self, storage: Storage) -> None:
        await fill(storage, [entry(1)])
        results = await asyncio.gather(append_one(storage, "x"), *(everything(storage) for _ in range(20)))
        assert all(len(seen) in (1, 2) for seen in results[1:])  # type: ignore[arg-type]

    async def test_two_readings_may_be_open_at_once(self, storage: Storage) -> None:
        await fill(storage, [entry(1)])
        async with storage.reading() as one, storage.reading() as two:
            first = await one.messages.recent(tenant=TENANT, room_id=ROOM, limit=9)
            second = await two.messages.recent(tenant=TENANT, room_id=ROOM, limit=9)
        assert first == second == [entry(1).message]

    async def test_ping_answers(self, storage: Storage) -> None:
        await storage.ping()
