"""What the outbox of memories and the memories that vectors know must do, beside what `Outbox` must."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from roomlore.core.errors import Conflict, InvalidInput
from roomlore.core.memory.found import NumberedMemory
from roomlore.core.memory.models import Action, MemoryStatus
from roomlore.core.search import EmbeddingModel, IndexState, IndexTask
from roomlore.ports.indexing import MEMORY_VECTORS, VECTORS
from roomlore.ports.storage import Storage
from roomlore.testing.builders import START, change, memory
from roomlore.testing.contracts.filling import TENANT
from roomlore.testing.contracts.memory_log import SCOPE, apply, update
from roomlore.testing.contracts.texts import HARD_TEXTS

LEASE = timedelta(minutes=5)
ODD = "group:\x00 组"


async def keep_vectors(storage: Storage, name: str = MEMORY_VECTORS) -> None:
    """As a rebuild begins."""
    model = EmbeddingModel(name="m", dimensions=2)
    state = IndexState(name=name, model=model, generation="g", cursor=None, updated_at=START)
    async with storage.writing() as work:
        assert await work.index_states.save(state=state, expected=None)


async def create(storage: Storage, *memory_ids: str, scope: str = SCOPE, tenant: str = TENANT, first: int = 1) -> None:
    made = [change(n, memory(one, scope=scope)) for n, one in enumerate(memory_ids, first)]
    await apply(storage, *made, scope=scope, tenant=tenant)


async def active(
    storage: Storage, scope: str = SCOPE, *, tenant: str = TENANT, limit: int = 99
) -> list[NumberedMemory]:
    async with storage.reading() as work:
        return await work.indexed_memories.active(tenant=tenant, scope=scope, limit=limit)


async def by_number(storage: Storage, numbers: Sequence[int], scope: str = SCOPE, tenant: str = TENANT) -> list[str]:
    async with storage.reading() as work:
        found = await work.indexed_memories.by_number(tenant=tenant, scope=scope, numbers=numbers)
    return [one.memory.memory_id for one in found]


async def walk(storage: Storage, *, page: int) -> list[NumberedMemory]:
    found: list[NumberedMemory] = []
    async with storage.reading() as work:
        while part := await work.indexed_memories.after(number=found[-1].number if found else 0, limit=page):
            assert len(part) <= page
            found += part
        assert await work.indexed_memories.count() == len(found)
    return found


async def numbers(storage: Storage, scope: str = SCOPE, *, tenant: str = TENANT) -> dict[str, int]:
    return {one.memory.memory_id: one.number for one in await active(storage, scope, tenant=tenant)}


async def claim(storage: Storage, *, limit: int = 99) -> list[IndexTask]:
    async with storage.writing() as work:
        return await work.memory_outbox.claim(limit=limit, now=START, lease=LEASE)


async def finish(storage: Storage, tasks: Sequence[IndexTask]) -> list[IndexTask]:
    async with storage.writing() as work:
        return await work.memory_outbox.finish(tasks=tasks)


async def waiting(storage: Storage) -> int:
    async with storage.reading() as work:
        return await work.memory_outbox.waiting()


class MemoryOutboxContract:
    async def test_nothing_is_noted_before_an_index_of_memories_was_begun(self, storage: Storage) -> None:
        await keep_vectors(storage, VECTORS)
        await create(storage, "f1")
        assert await waiting(storage) == 0
        await keep_vectors(storage)
        await create(storage, "f2", first=2)
        known = await numbers(storage)
        assert [task.number for task in await claim(storage)] == [known["f2"]]

    async def test_new_memories_wait_with_their_tenant_and_scope(self, storage: Storage) -> None:
        await keep_vectors(storage)
        await create(storage, "f1", "f2")
        await create(storage, "g1", scope=ODD, tenant="another")
        mine, other = await numbers(storage), await numbers(storage, ODD, tenant="another")
        assert [(task.tenant, task.scope, task.number) for task in await claim(storage)] == [
            (TENANT, SCOPE, mine["f1"]),
            (TENANT, SCOPE, mine["f2"]),
            ("another", ODD, other["g1"]),
        ]

    async def test_an_update_makes_both_versions_due(self, storage: Storage) -> None:
        await keep_vectors(storage)
        first = memory("f1", scope=SCOPE)
        await create(storage, "f1", "f2")
        before = await numbers(storage)
        await finish(storage, await claim(storage))
        await apply(storage, update(3, first, "f1b"))
        now = await numbers(storage)
        assert {task.number for task in await claim(storage)} == {before["f1"], now["f1b"]}
        assert "f1" not in now

    async def test_what_is_deleted_and_restored_is_due_each_time(self, storage: Storage) -> None:
        await keep_vectors(storage)
        await create(storage, "f1")
        number = (await numbers(storage))["f1"]
        await finish(storage, await claim(storage))
        gone = replace(memory("f1", scope=SCOPE), status=MemoryStatus.DEPRECATED)
        await apply(storage, change(2, gone, action=Action.DELETE))
        assert await by_number(storage, [number]) == []
        tasks = await claim(storage)
        await apply(storage, change(3, memory("f1", scope=SCOPE), action=Action.RESTORE))
        assert await finish(storage, tasks) == [], "they were held until now"
        assert [task.number for task in await claim(storage)] == [number], "it changed meanwhile"
        assert await by_number(storage, [number]) == ["f1"]

    async def test_changes_that_are_not_made_are_not_noted(self, storage: Storage) -> None:
        await keep_vectors(storage)
        await create(storage, "f1")
        await finish(storage, await claim(storage))
        with pytest.raises(Conflict):
            await create(storage, "f2", first=7)
        assert await waiting(storage) == 0

    async def test_the_outbox_of_messages_is_another(self, storage: Storage) -> None:
        await keep_vectors(storage)
        await create(storage, "f1")
        async with storage.writing() as work:
            assert await work.outbox.claim(limit=9, now=START, lease=LEASE) == []
            await work.outbox.clear()
        assert await waiting(storage) == 1
        async with storage.writing() as work:
            await work.memory_outbox.clear()
        assert await waiting(storage) == 0

    async def test_what_is_added_by_hand_needs_the_lock_and_is_known(self, storage: Storage) -> None:
        await create(storage, "f1")
        await create(storage, "g1", scope=ODD)
        mine, other = (await numbers(storage))["f1"], (await numbers(storage, ODD))["g1"]
        with pytest.raises(InvalidInput):
            async with storage.writing() as work:
                await work.memory_outbox.add(tenant=TENANT, scope=SCOPE, numbers=[mine])
        async with storage.writing() as work:
            await work.memory_log.lock(tenant=TENANT, scope=SCOPE, now=START)
            await work.memory_outbox.add(tenant=TENANT, scope=SCOPE, numbers=[mine, other, 77])
        assert [task.number for task in await claim(storage)] == [mine], "only those of the scope"

    async def test_what_is_released_can_be_claimed_at_once(self, storage: Storage) -> None:
        await keep_vectors(storage)
        await create(storage, "f1", "f2", "f3")
        tasks = await claim(storage, limit=2)
        assert len(await claim(storage)) == 1
        async with storage.writing() as work:
            await work.memory_outbox.release(tasks=tasks)
        again = await claim(storage)
        assert [task.number for task in again] == [task.number for task in tasks]
        assert await finish(storage, tasks) == tasks, "held by the other claim"
        assert await waiting(storage) == 3


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
