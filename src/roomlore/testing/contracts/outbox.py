"""What `Outbox` must do."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from roomlore.core.errors import InvalidInput
from roomlore.core.search import EmbeddingModel, IndexState, IndexTask
from roomlore.ports.indexing import VECTORS, WORDS
from roomlore.ports.storage import Storage
from roomlore.testing.builders import START, entry
from roomlore.testing.contracts.filling import ROOM, TENANT, erase, fill

LEASE = timedelta(minutes=5)


async def add(storage: Storage, *arrivals: int, tenant: str = TENANT, room_id: str = ROOM) -> None:
    async with storage.writing() as work:
        await work.rooms.lock(tenant=tenant, room_id=room_id, now=START)
        await work.outbox.add(tenant=tenant, scope=room_id, numbers=arrivals)


async def _add_if_kept(storage: Storage, arrival: int) -> None:
    async with storage.writing() as work:
        await work.rooms.lock(tenant=TENANT, room_id=ROOM, now=START)
        await work.outbox.add(tenant=TENANT, scope=ROOM, numbers=[arrival], only_if_kept=True)


async def claim(storage: Storage, limit: int = 99, now: datetime = START) -> list[IndexTask]:
    async with storage.writing() as work:
        return await work.outbox.claim(limit=limit, now=now, lease=LEASE)


async def finish(storage: Storage, tasks: Sequence[IndexTask]) -> list[IndexTask]:
    async with storage.writing() as work:
        return await work.outbox.finish(tasks=tasks)


async def release(storage: Storage, tasks: Sequence[IndexTask]) -> None:
    async with storage.writing() as work:
        await work.outbox.release(tasks=tasks)


async def waiting(storage: Storage) -> int:
    async with storage.reading() as work:
        return await work.outbox.waiting()


def arrivals(tasks: Sequence[IndexTask]) -> list[int]:
    return [task.number for task in tasks]


class _StopError(Exception):
    """Raised inside a unit of work."""


async def _add_and_stop(storage: Storage) -> None:
    async with storage.writing() as work:
        await work.rooms.lock(tenant=TENANT, room_id=ROOM, now=START)
        await work.writer.append(tenant=TENANT, room_id=ROOM, entries=[entry(1)])
        await work.outbox.add(tenant=TENANT, scope=ROOM, numbers=[1])
        assert await work.outbox.waiting() == 1
        raise _StopError


class OutboxContract:
    async def test_nothing_waits_in_the_beginning(self, storage: Storage) -> None:
        assert await waiting(storage) == 0
        assert await claim(storage) == []

    async def test_the_longest_waiting_come_first(self, storage: Storage) -> None:
        await fill(storage, [entry(n) for n in range(1, 6)])
        await fill(storage, [entry(n) for n in range(1, 3)], tenant="another", room_id="b\x00")
        await add(storage, 3, 2)
        await add(storage, 1, tenant="another", room_id="b\x00")
        await add(storage, 1, 5)
        tasks = await claim(storage)
        assert [(task.tenant, task.scope, task.number) for task in tasks] == [
            (TENANT, ROOM, 2),
            (TENANT, ROOM, 3),
            ("another", "b\x00", 1),
            (TENANT, ROOM, 1),
            (TENANT, ROOM, 5),
        ]

    async def test_what_is_claimed_is_held_until_the_lease_ends(self, storage: Storage) -> None:
        await fill(storage, [entry(n) for n in range(1, 5)])
        await add(storage, 1, 2, 3, 4)
        assert arrivals(await claim(storage, limit=3)) == [1, 2, 3]
        assert arrivals(await claim(storage)) == [4]
        assert await claim(storage, now=START + LEASE - timedelta(microseconds=1)) == []
        assert arrivals(await claim(storage, now=START + LEASE)) == [1, 2, 3, 4]
        assert await waiting(storage) == 4

    async def test_what_is_finished_is_gone(self, storage: Storage) -> None:
        await fill(storage, [entry(n) for n in range(1, 4)])
        await add(storage, 1, 2, 3)
        tasks = await claim(storage)
        assert await finish(storage, tasks[:2]) == []
        assert await waiting(storage) == 1
        assert arrivals(await claim(storage, now=START + LEASE)) == [3]

    async def test_what_changed_meanwhile_goes_on_waiting_in_its_place(self, storage: Storage) -> None:
        await fill(storage, [entry(n) for n in range(1, 4)])
        await add(storage, 1, 2)
        await add(storage, 3)
        before = await claim(storage, limit=2)
        await add(storage, 1)
        assert arrivals(await claim(storage)) == [3], "a change does not free what somebody holds"
        assert await finish(storage, before) == [], "they were held until now"
        (again,) = await claim(storage)
        assert (again.number, again.version > before[0].version) == (1, True)
        await finish(storage, [again])
        assert await waiting(storage) == 1

    async def test_a_message_waits_once_however_often_it_changes(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2)])
        await add(storage, 1)
        await add(storage, 2)
        for _ in range(3):
            await add(storage, 1, 1)
        assert await waiting(storage) == 2
        assert arrivals(await claim(storage)) == [1, 2], "and keeps its place"

    async def test_a_late_finish_does_not_take_a_newer_task(self, storage: Storage) -> None:
        """One whose lease ended, whose work another did, and whose message is due again since."""
        await fill(storage, [entry(1)])
        await add(storage, 1)
        late = await claim(storage)
        await finish(storage, await claim(storage, now=START + LEASE))
        await add(storage, 1)
        assert await finish(storage, late) == late
        assert await waiting(storage) == 1

    async def test_what_another_holds_now_is_neither_freed_nor_dropped(self, storage: Storage) -> None:
        await fill(storage, [entry(n) for n in range(1, 5)])
        await fill(storage, [entry(1)], tenant="another", room_id="b")
        await add(storage, 1, 2, 3)
        await add(storage, 1, tenant="another", room_id="b")
        late = await claim(storage)
        await add(storage, 2)
        taken = await claim(storage, limit=3, now=START + LEASE)
        assert sorted(map(repr, await finish(storage, late))) == sorted(map(repr, late[:3])), "the last was not taken"
        await release(storage, late)
        assert await claim(storage, now=START + LEASE) == []
        assert await finish(storage, taken) == []
        assert await waiting(storage) == 0

    async def test_a_lease_that_ended_is_good_while_nobody_else_took_the_task(self, storage: Storage) -> None:
        await fill(storage, [entry(1)])
        await add(storage, 1)
        tasks = await claim(storage)
        assert await claim(storage, limit=0, now=START + LEASE) == []
        assert await finish(storage, tasks) == []
        assert await waiting(storage) == 0

    async def test_each_claim_has_a_lease_of_its_own(self, storage: Storage) -> None:
        """Even of one task at one time."""
        await fill(storage, [entry(1)])
        await add(storage, 1)
        seen = set()
        for _ in range(5):
            (task,) = await claim(storage)
            seen.add(task.lease)
            await release(storage, [task])
        assert len(seen) == 5

    async def test_what_was_cleared_is_no_longer_held(self, storage: Storage) -> None:
        await fill(storage, [entry(1)])
        await add(storage, 1)
        tasks = await claim(storage)
        async with storage.writing() as work:
            await work.outbox.clear()
        await add(storage, 1)
        assert await finish(storage, tasks) == tasks
        assert await waiting(storage) == 1

    async def test_what_is_released_can_be_claimed_at_once(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2)])
        await add(storage, 1, 2)
        tasks = await claim(storage)
        await release(storage, tasks[:1])
        assert arrivals(await claim(storage)) == [1]

    async def test_deleted_messages_are_due_too_and_unknown_ones_are_not(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2)])
        await erase(storage, 2)
        await add(storage, 2, 77)
        assert arrivals(await claim(storage)) == [2]

    async def test_empty_lists_change_nothing(self, storage: Storage) -> None:
        await fill(storage, [entry(1)])
        await add(storage)
        await add(storage, 1)
        assert await finish(storage, []) == []
        await release(storage, [])
        assert await claim(storage, limit=0) == []
        assert await waiting(storage) == 1

    async def test_what_is_added_only_if_kept_waits_once_an_index_was_begun(self, storage: Storage) -> None:
        await fill(storage, [entry(n) for n in range(1, 4)])
        await _add_if_kept(storage, 1)
        assert await waiting(storage) == 0
        model = EmbeddingModel(name="m", dimensions=2)
        for name in (WORDS, VECTORS):
            state = IndexState(name=name, model=model, generation="g", cursor=None, updated_at=START)
            async with storage.writing() as work:
                assert await work.index_states.save(state=state, expected=None)
            await _add_if_kept(storage, 2)
            assert await waiting(storage) == (name == VECTORS)

    async def test_adding_needs_the_lock(self, storage: Storage) -> None:
        await fill(storage, [entry(1)])
        with pytest.raises(InvalidInput):
            async with storage.writing() as work:
                await work.outbox.add(tenant=TENANT, scope=ROOM, numbers=[1])

    async def test_a_reading_unit_of_work_claims_nothing(self, storage: Storage) -> None:
        async with storage.reading() as work:
            with pytest.raises(InvalidInput):
                await work.outbox.claim(limit=1, now=START, lease=LEASE)

    async def test_what_raises_leaves_nothing_waiting(self, storage: Storage) -> None:
        with pytest.raises(_StopError):
            await _add_and_stop(storage)
        assert await waiting(storage) == 0

    async def test_claimers_at_once_share_the_tasks_out(self, storage: Storage) -> None:
        await fill(storage, [entry(n) for n in range(1, 61)])
        await add(storage, *range(1, 61))
        shares = await asyncio.gather(*(claim(storage, limit=10) for _ in range(8)))
        assert sorted(arrival for share in shares for arrival in arrivals(share)) == list(range(1, 61))
        assert all(len(share) <= 10 for share in shares)
