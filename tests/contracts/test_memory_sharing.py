"""A database in memory has one connection, which all units of work share: what ends early harms nobody else's work."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

import roomlore
from roomlore.core.errors import StorageUnavailable
from roomlore.storage import connect
from roomlore.storage.engine import translated
from roomlore_testkit import START, entry
from storage_contracts.texts import ROOM, TENANT, everything, fill

Ask = Callable[[roomlore.Lore], Awaitable[object]]


def said(number: int) -> list[roomlore.Message]:
    texts = [f"hello number {number}", f"谁对花生过敏 {number}"]
    return [
        roomlore.Message(id=f"{room}{number}", room_id=room, sender_id="ann", text=text)
        for room, text in zip("ab", texts, strict=True)
    ]


async def search(lore: roomlore.Lore) -> object:
    return await lore.messages.search("a", "hello number")


async def page(lore: roomlore.Lore) -> object:
    return await lore.messages.page("a")


async def cancelled(asked: Awaitable[object], after: float) -> None:
    """Begins the call and cancels it so many milliseconds later."""
    task = asyncio.ensure_future(asked)
    await asyncio.sleep(after / 1000)
    task.cancel()
    outcome = (await asyncio.gather(task, return_exceptions=True))[0]
    assert not isinstance(outcome, Exception), repr(outcome)


async def ids(lore: roomlore.Lore) -> set[str]:
    return {message.id for room in "ab" for message in await lore.messages.page(room, limit=500)}


@pytest.mark.parametrize("ask", [search, page])
async def test_readers_that_are_cancelled_leave_the_writer_its_transaction(ask: Ask) -> None:
    async with roomlore.open("sqlite://", settings=roomlore.Settings()) as lore:
        await lore.messages.add(said(0))
        for number in range(1, 61):
            adding = asyncio.ensure_future(lore.messages.add(said(number)))
            await asyncio.sleep(number % 12 * 0.0003)
            await asyncio.gather(adding, *(cancelled(ask(lore), after=number % 7 * 0.3 + turn) for turn in range(3)))
        assert await ids(lore) == {f"{room}{number}" for room in "ab" for number in range(61)}


async def test_writers_that_are_cancelled_keep_the_others_work() -> None:
    async with roomlore.open("sqlite://", settings=roomlore.Settings()) as lore:
        await lore.messages.add(said(0))
        for number in range(1, 81):
            dropped = cancelled(lore.messages.add(said(1000 + number)), after=number * 0.06)
            await asyncio.gather(dropped, lore.messages.add(said(number)), page(lore))
        kept = await ids(lore)
        assert {f"{room}{number}" for room in "ab" for number in range(81)} <= kept
        assert all((f"a{number}" in kept) == (f"b{number}" in kept) for number in range(1001, 1081)), "both or neither"


async def test_a_reader_that_ends_inside_a_transaction_changes_nothing() -> None:
    storage = await connect("sqlite://")
    async with storage.writing(TENANT) as work:
        await work.rooms.lock(room_id=ROOM, now=START)
        await work.messages.append(room_id=ROOM, entries=[entry(1)])
        async with storage.reading():
            pass
    assert [found.message.arrival for found in await everything(storage)] == [1]
    await storage.close()


async def test_what_is_closed_under_a_reader_is_unavailable_and_opened_again(sqlite_url: str) -> None:
    storage = await connect(sqlite_url)
    await fill(storage, [entry(1)])
    async with storage.reading(TENANT) as work:
        work.connection.driver.raw.close()  # type: ignore[attr-defined]
        with pytest.raises(StorageUnavailable, match="try again"):
            await work.messages.recent(room_id=ROOM, limit=1)
    assert len(await everything(storage)) == 1
    await storage.close()


def test_other_wrong_values_are_not_the_databases_fault() -> None:
    with pytest.raises(ValueError, match="invalid literal"), translated():
        int("no number")
