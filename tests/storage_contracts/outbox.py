"""The contract of `Outbox`."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from roomlore.core.errors import Conflict, InvalidInput
from roomlore.core.memory.memory import Action, MemoryStatus, NumberedMemory
from roomlore.core.search.hits import EmbeddingModel, IndexState, IndexTask
from roomlore.storage import Storage
from roomlore.storage.values import MEMORY_VECTORS, VECTORS, WORDS
from roomlore_testkit.builders import START, change, entry, memory
from roomlore_testkit.contracts.hard_texts import HARD_TEXTS
from storage_contracts.memory_log import SCOPE, apply, update
from storage_contracts.texts import ROOM, TENANT, erase, fill

LEASE = timedelta(minutes=5)


async def add(storage: Storage, *arrivals: int, tenant: str = TENANT, room_id: str = ROOM) -> None:
    async with storage.writing(tenant) as work:
        await work.rooms.lock(room_id=room_id, now=START)
        await work.progress.outbox.add(scope=room_id, numbers=arrivals)


async def _add_if_kept(storage: Storage, arrival: int) -> None:
    async with storage.writing(TENANT) as work:
        await work.rooms.lock(room_id=ROOM, now=START)
        await work.progress.outbox.add(scope=ROOM, numbers=[arrival], only_if_kept=True)


async def claim(storage: Storage, limit: int = 99, now: datetime = START) -> list[IndexTask]:
    async with storage.writing() as work:
        return await work.progress.outbox.claim(limit=limit, now=now, lease=LEASE)


async def finish(storage: Storage, tasks: Sequence[IndexTask]) -> list[IndexTask]:
    async with storage.writing() as work:
        return await work.progress.outbox.finish(tasks=tasks)


async def release(storage: Storage, tasks: Sequence[IndexTask]) -> None:
    async with storage.writing() as work:
        await work.progress.outbox.release(tasks=tasks)


async def waiting(storage: Storage) -> int:
    async with storage.reading() as work:
        return await work.progress.outbox.waiting()


async def _held(storage: Storage, now: datetime, room_id: str = ROOM) -> int:
    async with storage.reading(TENANT) as work:
        return await work.progress.outbox.held(scope=room_id, now=now)


def arrivals(tasks: Sequence[IndexTask]) -> list[int]:
    return [task.number for task in tasks]


class _StopError(Exception):
    """Raised inside a unit of work."""


async def _add_and_stop(storage: Storage) -> None:
    async with storage.writing(TENANT) as work:
        await work.rooms.lock(room_id=ROOM, now=START)
        await work.messages.append(room_id=ROOM, entries=[entry(1)])
        await work.progress.outbox.add(scope=ROOM, numbers=[1])
        assert await work.progress.outbox.waiting() == 1
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
        """A task whose lease ended, whose work another did, and whose message is due again since."""
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
        """Each claim has its own lease, even of one task at one time."""
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
            await work.progress.outbox.clear()
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

    async def test_tasks_are_held_until_their_lease_ends(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2)])
        await add(storage, 1, 2)
        assert await _held(storage, START) == 0
        (task,) = await claim(storage, limit=1)
        assert await _held(storage, START) == 1
        assert await _held(storage, START, room_id="another") == 0
        assert await _held(storage, START + LEASE) == 0
        await release(storage, [task])
        assert await _held(storage, START) == 0

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
                assert await work.progress.save_index_state(state=state, expected=None)
            await _add_if_kept(storage, 2)
            assert await waiting(storage) == (name == VECTORS)

    async def test_adding_needs_the_lock(self, storage: Storage) -> None:
        await fill(storage, [entry(1)])
        with pytest.raises(InvalidInput):
            async with storage.writing(TENANT) as work:
                await work.progress.outbox.add(scope=ROOM, numbers=[1])

    async def test_a_reading_unit_of_work_claims_nothing(self, storage: Storage) -> None:
        async with storage.reading() as work:
            with pytest.raises(InvalidInput):
                await work.progress.outbox.claim(limit=1, now=START, lease=LEASE)

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


ODD = "group:\x00 组"


async def keep_vectors(storage: Storage, name: str = MEMORY_VECTORS) -> None:
    """Set the state as at the start of a rebuild."""
    model = EmbeddingModel(name="m", dimensions=2)
    state = IndexState(name=name, model=model, generation="g", cursor=None, updated_at=START)
    async with storage.writing() as work:
        assert await work.progress.save_index_state(state=state, expected=None)


async def create(storage: Storage, *memory_ids: str, scope: str = SCOPE, tenant: str = TENANT, first: int = 1) -> None:
    made = [change(n, memory(one, scope=scope)) for n, one in enumerate(memory_ids, first)]
    await apply(storage, *made, scope=scope, tenant=tenant)


async def active(
    storage: Storage, scope: str = SCOPE, *, tenant: str = TENANT, limit: int = 99
) -> list[NumberedMemory]:
    async with storage.reading(tenant) as work:
        return await work.memories.active(scope=scope, limit=limit)


async def by_number(storage: Storage, numbers: Sequence[int], scope: str = SCOPE, tenant: str = TENANT) -> list[str]:
    async with storage.reading(tenant) as work:
        found = await work.memories.by_number(scope=scope, numbers=numbers)
    return [one.memory.memory_id for one in found]


async def walk(storage: Storage, *, page: int) -> list[NumberedMemory]:
    found: list[NumberedMemory] = []
    async with storage.reading() as work:
        while part := await work.memories.active_after(number=found[-1].number if found else 0, limit=page):
            assert len(part) <= page
            found += part
        assert await work.memories.count_active() == len(found)
    return found


async def numbers(storage: Storage, scope: str = SCOPE, *, tenant: str = TENANT) -> dict[str, int]:
    return {one.memory.memory_id: one.number for one in await active(storage, scope, tenant=tenant)}


async def claim_memories(storage: Storage, *, limit: int = 99) -> list[IndexTask]:
    async with storage.writing() as work:
        return await work.progress.memory_outbox.claim(limit=limit, now=START, lease=LEASE)


async def finish_memories(storage: Storage, tasks: Sequence[IndexTask]) -> list[IndexTask]:
    async with storage.writing() as work:
        return await work.progress.memory_outbox.finish(tasks=tasks)


async def waiting_memories(storage: Storage) -> int:
    async with storage.reading() as work:
        return await work.progress.memory_outbox.waiting()


class MemoryOutboxContract:
    async def test_nothing_is_noted_before_an_index_of_memories_was_begun(self, storage: Storage) -> None:
        await keep_vectors(storage, VECTORS)
        await create(storage, "f1")
        assert await waiting_memories(storage) == 0
        await keep_vectors(storage)
        await create(storage, "f2", first=2)
        known = await numbers(storage)
        assert [task.number for task in await claim_memories(storage)] == [known["f2"]]

    async def test_new_memories_wait_with_their_tenant_and_scope(self, storage: Storage) -> None:
        await keep_vectors(storage)
        await create(storage, "f1", "f2")
        await create(storage, "g1", scope=ODD, tenant="another")
        mine, other = await numbers(storage), await numbers(storage, ODD, tenant="another")
        assert [(task.tenant, task.scope, task.number) for task in await claim_memories(storage)] == [
            (TENANT, SCOPE, mine["f1"]),
            (TENANT, SCOPE, mine["f2"]),
            ("another", ODD, other["g1"]),
        ]

    async def test_an_update_makes_both_versions_due(self, storage: Storage) -> None:
        await keep_vectors(storage)
        first = memory("f1", scope=SCOPE)
        await create(storage, "f1", "f2")
        before = await numbers(storage)
        await finish_memories(storage, await claim_memories(storage))
        await apply(storage, update(3, first, "f1b"))
        now = await numbers(storage)
        assert {task.number for task in await claim_memories(storage)} == {before["f1"], now["f1b"]}
        assert "f1" not in now

    async def test_what_is_deleted_and_restored_is_due_each_time(self, storage: Storage) -> None:
        await keep_vectors(storage)
        await create(storage, "f1")
        number = (await numbers(storage))["f1"]
        await finish_memories(storage, await claim_memories(storage))
        gone = replace(memory("f1", scope=SCOPE), status=MemoryStatus.DEPRECATED)
        await apply(storage, change(2, gone, action=Action.DELETE))
        assert await by_number(storage, [number]) == []
        tasks = await claim_memories(storage)
        await apply(storage, change(3, memory("f1", scope=SCOPE), action=Action.RESTORE))
        assert await finish_memories(storage, tasks) == [], "they were held until now"
        assert [task.number for task in await claim_memories(storage)] == [number], "it changed meanwhile"
        assert await by_number(storage, [number]) == ["f1"]

    async def test_changes_that_are_not_made_are_not_noted(self, storage: Storage) -> None:
        await keep_vectors(storage)
        await create(storage, "f1")
        await finish_memories(storage, await claim_memories(storage))
        with pytest.raises(Conflict):
            await create(storage, "f2", first=7)
        assert await waiting_memories(storage) == 0

    async def test_the_outbox_of_messages_is_another(self, storage: Storage) -> None:
        await keep_vectors(storage)
        await create(storage, "f1")
        async with storage.writing() as work:
            assert await work.progress.outbox.claim(limit=9, now=START, lease=LEASE) == []
            await work.progress.outbox.clear()
        assert await waiting_memories(storage) == 1
        async with storage.writing() as work:
            await work.progress.memory_outbox.clear()
        assert await waiting_memories(storage) == 0

    async def test_what_is_added_by_hand_needs_the_lock_and_is_known(self, storage: Storage) -> None:
        await create(storage, "f1")
        await create(storage, "g1", scope=ODD)
        mine, other = (await numbers(storage))["f1"], (await numbers(storage, ODD))["g1"]
        with pytest.raises(InvalidInput):
            async with storage.writing(TENANT) as work:
                await work.progress.memory_outbox.add(scope=SCOPE, numbers=[mine])
        async with storage.writing(TENANT) as work:
            await work.memories.lock(scope=SCOPE, now=START)
            await work.progress.memory_outbox.add(scope=SCOPE, numbers=[mine, other, 77])
        assert [task.number for task in await claim_memories(storage)] == [mine], "only those of the scope"

    async def test_what_is_released_can_be_claimed_at_once(self, storage: Storage) -> None:
        await keep_vectors(storage)
        await create(storage, "f1", "f2", "f3")
        tasks = await claim_memories(storage, limit=2)
        assert len(await claim_memories(storage)) == 1
        async with storage.writing() as work:
            await work.progress.memory_outbox.release(tasks=tasks)
        again = await claim_memories(storage)
        assert [task.number for task in again] == [task.number for task in tasks]
        assert await finish_memories(storage, tasks) == tasks, "held by the other claim"
        assert await waiting_memories(storage) == 3


class IndexedMemoriesContract:
    async def test_nothing_is_there_in_the_beginning(self, storage: Storage) -> None:
        assert await active(storage) == []
        assert await walk(storage, page=9) == []
        assert await by_number(storage, [1]) == []

    async def test_active_memories_the_latest_first(self, storage: Storage) -> None:
        made = [memory(f"f{n}", scope=SCOPE, updated_at=START + n % 3 * timedelta(hours=1)) for n in range(6)]
        await apply(storage, *(change(n, one) for n, one in enumerate(made, 1)))
        await apply(storage, change(7, replace(made[5], status=MemoryStatus.DEPRECATED), action=Action.DELETE))
        found = await active(storage)
        assert [one.memory.memory_id for one in found] == ["f2", "f4", "f1", "f3", "f0"]
        assert [one.memory for one in found[:1]] == [made[2]]
        assert await active(storage, limit=2) == found[:2]
        assert len({one.number for one in found}) == 5

    async def test_tenants_and_scopes_are_apart(self, storage: Storage) -> None:
        await create(storage, "f1")
        await create(storage, "f1", tenant="another")
        await create(storage, "g1", scope=ODD)
        mine, other = await numbers(storage), await numbers(storage, tenant="another")
        assert (list(mine), list(other), list(await numbers(storage, ODD))) == (["f1"], ["f1"], ["g1"])
        assert mine["f1"] != other["f1"]
        assert await by_number(storage, [mine["f1"], other["f1"]]) == ["f1"]
        assert await by_number(storage, [mine["f1"]], tenant="another") == []
        assert await by_number(storage, [mine["f1"]], ODD) == []
        assert await by_number(storage, []) == []

    @pytest.mark.parametrize("page", [1, 3, 50])
    async def test_a_walk_meets_every_active_memory_once(self, storage: Storage, page: int) -> None:
        for n in range(4):
            await create(storage, f"a{n}", f"b{n}", scope=f"group:{n % 3}", tenant=f"t{n}")
        gone = replace(memory("a1", scope="group:1"), status=MemoryStatus.DEPRECATED)
        await apply(storage, change(3, gone, action=Action.DELETE), tenant="t1", scope="group:1")
        found = await walk(storage, page=page)
        assert [one.number for one in found] == sorted(one.number for one in found)
        met = sorted((one.tenant, one.memory.scope, one.memory.memory_id) for one in found)
        assert met == sorted(
            (f"t{n}", f"group:{n % 3}", f"{x}{n}") for n in range(4) for x in "ab" if (x, n) != ("a", 1)
        )

    async def test_texts_come_back_as_they_were(self, storage: Storage) -> None:
        made = [memory(f"f{n}", scope=ODD, statement=text) for n, text in enumerate(HARD_TEXTS)]
        await apply(storage, *(change(n, one) for n, one in enumerate(made, 1)), scope=ODD)
        assert {one.memory.statement for one in await active(storage, ODD)} == set(HARD_TEXTS)
