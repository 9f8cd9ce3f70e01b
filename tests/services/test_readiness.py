"""Readiness: a write is tried seldom, and one that waits for its turn is given time."""

import asyncio

import pytest

from roomlore.core.errors import StorageUnavailable
from roomlore.services.health import Readiness
from roomlore.storage import connect
from roomlore_testkit import FrozenClock
from roomlore_testkit.doubles import FaultyStorage


@pytest.fixture
async def storage():
    opened = await connect("sqlite://")
    yield FaultyStorage(opened)
    await opened.close()


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture
async def readiness(storage, clock, monkeypatch):
    monkeypatch.setattr("roomlore.services.health._PATIENCE_SECONDS", 0.05)
    made = Readiness(storage=storage, clock=clock)
    yield made
    await made.close()


async def test_a_write_is_tried_every_five_seconds_at_most(readiness, storage, clock):
    for _ in range(3):
        await asyncio.gather(*(readiness.check() for _ in range(5)))
    assert storage.calls.count("try_writing") == 1
    clock.advance(5)
    await readiness.check()
    assert storage.calls.count("try_writing") == 2


async def test_what_cannot_be_written_is_told_until_a_write_succeeds(readiness, storage, clock):
    storage.fail("try_writing", StorageUnavailable("The database has no space left on its disk."))
    for _ in range(2):
        with pytest.raises(StorageUnavailable, match="no space left"):
            await readiness.check()
    storage.heal()
    with pytest.raises(StorageUnavailable, match="no space left"):
        await readiness.check()
    clock.advance(5)
    await readiness.check()
    assert storage.calls.count("try_writing") == 2


async def test_a_database_that_does_not_answer_is_told_at_once(readiness, storage):
    await readiness.check()
    storage.fail("ping", StorageUnavailable("The database is away."))
    with pytest.raises(StorageUnavailable, match="is away"):
        await readiness.check()


async def test_a_write_that_waits_for_others_is_given_a_minute(readiness, storage, clock):
    storage.delay("try_writing", 0.5)
    await readiness.check()
    clock.advance(61)
    with pytest.raises(StorageUnavailable, match="A write has waited for over 60 s"):
        await readiness.check()
    await readiness.close()
    await readiness.check()
    assert storage.calls.count("try_writing") == 1


async def test_a_write_that_waits_is_given_its_minute_after_a_quiet_time_too(readiness, storage, clock):
    await readiness.check()
    clock.advance(120)
    storage.delay("try_writing", 0.5)
    await readiness.check()
    clock.advance(61)
    with pytest.raises(StorageUnavailable, match="A write has waited for over 60 s"):
        await readiness.check()


async def test_an_error_of_any_kind_is_told_by_its_name(readiness, storage, clock):
    await readiness.check()
    clock.advance(5)
    storage.fail("try_writing", RuntimeError("the text of a message"))
    with pytest.raises(StorageUnavailable, match=r"^A write failed: RuntimeError$"):
        await readiness.check()
    storage.heal()
    clock.advance(5)
    await readiness.check()
