"""Answers that take several statements, and what they need is deleted in between."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pytest

from roomlore.storage import Storage, connect
from roomlore.storage.engine import Connection, Locks, Row, Statement
from roomlore.storage.store import UnitOfWork
from roomlore_testkit import START, entry
from storage_contracts.texts import ROOM, TENANT, erase, fill


@pytest.fixture(params=["sqlite_url", "postgres_url"])
async def storage(request: pytest.FixtureRequest) -> AsyncIterator[Storage]:
    opened = await connect(str(request.getfixturevalue(request.param)))
    yield opened
    await opened.close()


class _Interrupted:
    """A connection after whose first statement something else is done."""

    def __init__(self, connection: Connection, do: Callable[[], Awaitable[None]]) -> None:
        self._connection = connection
        self._do: Callable[[], Awaitable[None]] | None = do

    async def fetch(self, statement: Statement, **params: Any) -> Sequence[Row]:
        rows = await self._connection.fetch(statement, **params)
        do, self._do = self._do, None
        if do is not None:
            await do()
        return rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def interrupted(work: UnitOfWork, do: Callable[[], Awaitable[None]]) -> UnitOfWork:
    connection: Any = _Interrupted(work.connection, do)
    return UnitOfWork(connection, Locks(writing=False), TENANT)


async def test_a_speaker_whose_last_message_goes_is_left_out(storage: Storage) -> None:
    """A regression: KeyError was raised."""
    await fill(storage, [entry(1, sender_id="ann"), entry(2, sender_id="bob")])
    async with storage.reading(TENANT) as work:
        meddled = interrupted(work, lambda: erase(storage, 1))
        found = await meddled.rooms.speakers(part="", room_ids=None, limit=9)
    assert [one.sender_id for one in found] == ["bob"]


async def test_threads_of_a_room_that_goes_are_left_out(storage: Storage) -> None:
    """A regression: KeyError was raised."""
    await fill(storage, [entry(1), entry(2)])

    async def remove() -> None:
        async with storage.writing(TENANT) as work:
            await work.rooms.lock(room_id=ROOM, now=START)
            while await work.maintenance.remove_room(room_id=ROOM, limit=9) >= 0:
                pass

    async with storage.reading(TENANT) as work:
        assert len(await work.messages.threads(room_id=ROOM, after=0, limit=9)) > 0
        assert await interrupted(work, remove).messages.threads(room_id=ROOM, after=0, limit=9) == []
