"""What `Sessions` must do about checkpoints that are due."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from roomlore.core.sessions.models import Due
from roomlore.ports.storage import Storage
from roomlore.testing.builders import START, checkpoint, entry, session
from roomlore.testing.contracts.filling import ROOM, TENANT, fill
from roomlore.testing.contracts.sessions import MINUTE, StopError, find, make_due, names, save, schedule, take


async def _take_and_stop(storage: Storage) -> None:
    async with storage.writing() as work:
        assert names(await work.sessions.due(now=START, lease_until=START + MINUTE, limit=9)) == [ROOM]
        raise StopError


class SessionDueContract:
    async def test_a_new_session_is_not_due(self, storage: Storage) -> None:
        await save(storage, session(1, due=Due(at=START, tries=3)))
        assert await find(storage) == session(1)
        assert await take(storage, START + timedelta(days=9)) == []

    async def test_saving_leaves_alone_when_it_is_due(self, storage: Storage) -> None:
        await make_due(storage, START)
        await save(storage, session(2))
        assert await find(storage) == session(2, due=Due(at=START))

    async def test_scheduling_leaves_all_else_alone(self, storage: Storage) -> None:
        given = session(1, state={"a": 1}, checkpoint=checkpoint(1), marks=1)
        await save(storage, given, checkpoint(1))
        due = Due(at=START + timedelta(microseconds=1), tries=2)
        assert await schedule(storage, due, None)
        assert await find(storage) == replace(given, due=due)

    async def test_scheduling_compares_with_what_was(self, storage: Storage) -> None:
        await save(storage, session(1))
        first, second = Due(at=START), Due(at=START + MINUTE, tries=1)
        assert not await schedule(storage, first, START)
        assert not await schedule(storage, None, START)
        assert await schedule(storage, first, None)
        assert not await schedule(storage, second, None)
        assert not await schedule(storage, second, START + timedelta(microseconds=1))
        assert await schedule(storage, second, START)
        assert await find(storage) == session(1, due=second)
        assert not await schedule(storage, None, None)
        assert await schedule(storage, None, START + MINUTE)
        assert await find(storage) == session(1)
        assert await schedule(storage, None, None), "it was not due and still is not"

    async def test_only_a_session_can_be_due(self, storage: Storage) -> None:
        assert not await schedule(storage, Due(at=START), None)
        await fill(storage, [entry(1)])
        assert not await schedule(storage, Due(at=START), None)
        assert not await schedule(storage, None, None)

    async def test_the_longest_waiting_of_any_tenant_come_first(self, storage: Storage) -> None:
        await make_due(storage, START + 3 * MINUTE, "a")
        await make_due(storage, START + 1 * MINUTE, "b", tenant="other")
        await make_due(storage, START + 2 * MINUTE, "c\x00")
        await make_due(storage, START + 5 * MINUTE, "d")
        await save(storage, session(conversation_id="never"))
        assert await take(storage, START) == []
        assert await take(storage, START + 4 * MINUTE, limit=0) == []
        assert await take(storage, START + 4 * MINUTE, limit=2) == [
            ("other", "b", Due(at=START + MINUTE)),
            (TENANT, "c\x00", Due(at=START + 2 * MINUTE)),
        ]
        first, *rest = await take(storage, START + 5 * MINUTE)
        assert first == (TENANT, "a", Due(at=START + 3 * MINUTE))
        assert sorted(names(rest)) == ["b", "c\x00", "d"], "two of them again"

    async def test_what_was_taken_is_due_again_when_its_lease_ends(self, storage: Storage) -> None:
        await make_due(storage, START)
        assert await schedule(storage, Due(at=START, tries=2), START)
        assert await take(storage, START) == [(TENANT, ROOM, Due(at=START, tries=2))]
        leased = Due(at=START + MINUTE, tries=2)
        assert await find(storage) == session(1, due=leased)
        assert await take(storage, START + MINUTE - timedelta(microseconds=1)) == []
        assert await take(storage, START + MINUTE) == [(TENANT, ROOM, leased)]

    async def test_one_whose_lease_ended_no_longer_decides(self, storage: Storage) -> None:
        await make_due(storage, START)
        await take(storage, START)
        await take(storage, START + MINUTE)
        assert not await schedule(storage, None, START + MINUTE)
        assert await schedule(storage, None, START + 2 * MINUTE)
        assert await take(storage, START + timedelta(days=9)) == []

    async def test_a_claim_that_raises_took_nothing(self, storage: Storage) -> None:
        await make_due(storage, START)
        with pytest.raises(StopError):
            await _take_and_stop(storage)
        assert names(await take(storage, START)) == [ROOM]

    async def test_takers_at_once_share_sessions_out(self, storage: Storage) -> None:
        rooms = [f"room {n:02}" for n in range(40)]
        for conversation_id in rooms:
            await make_due(storage, START, conversation_id)
        shares = await asyncio.gather(*(take(storage, START, limit=7) for _ in range(8)))
        assert sorted(name for share in shares for name in names(share)) == rooms
        assert all(len(share) <= 7 for share in shares)

    async def test_of_those_who_schedule_at_once_one_wins(self, storage: Storage) -> None:
        await save(storage, session(1))
        wins = await asyncio.gather(*(schedule(storage, Due(at=START, tries=n), None) for n in range(8)))
        stored = await find(storage)
        assert stored is not None
        assert wins.count(True) == 1
        assert stored.due == Due(at=START, tries=wins.index(True))
