"""What `MemoryLog` must say of single versions, and of what happened last."""

from dataclasses import replace
from datetime import datetime, timedelta

from roomlore.core.memory.history import Touch
from roomlore.core.memory.models import Action, Change
from roomlore.ports.storage import Storage
from roomlore.testing.builders import START, change, memory
from roomlore.testing.contracts.filling import TENANT
from roomlore.testing.contracts.memory_log import (
    A2,
    MADE,
    MINUTE,
    SCOPE,
    A,
    B,
    apply,
    gone,
    heads,
    merge,
    update,
    versions,
)


async def of_memories(storage: Storage, *memory_ids: str, tenant: str = TENANT) -> list[Change]:
    async with storage.reading() as work:
        return await work.memory_log.of_memories(tenant=tenant, memory_ids=memory_ids)


async def latest(
    storage: Storage,
    *,
    tenant: str = TENANT,
    scope: str = SCOPE,
    limit: int = 9,
    before: int | None = None,
    since: datetime | None = None,
) -> list[Change]:
    async with storage.reading() as work:
        return await work.memory_log.latest(tenant=tenant, scope=scope, limit=limit, before=before, since=since)


class MemoryPastContract:
    async def test_what_happened_last_stands_first(self, storage: Storage) -> None:
        made = [change(number, memory(f"m{number}"), at=START + number * MINUTE) for number in range(1, 8)]
        await apply(storage, *made)
        await apply(storage, change(1, memory("elsewhere", scope="user:bo")), scope="user:bo")
        newest = made[::-1]
        assert await latest(storage) == newest
        assert await latest(storage, limit=2) == newest[:2]
        assert await latest(storage, limit=2, before=6) == newest[2:4]
        assert await latest(storage, before=1) == []
        assert await latest(storage, scope="user:nobody") == [] == await latest(storage, tenant="other")

    async def test_what_changes_did_to_what_is_in_force(self, storage: Storage) -> None:
        """A change that leaves a version as active as it was may leave that open."""
        made = (
            *MADE,
            change(5, A2, action=Action.UPDATE, closes=("a",)),
            change(6, replace(A2, strength=0.5), action=Action.STRENGTH),
            change(7, gone(A2), action=Action.REVERT, undoes="e1"),
            change(8, A, action=Action.REVERT, undoes="e1"),
            change(9, memory("c"), action=Action.RESTORE),
        )
        await apply(storage, *made)
        async with storage.reading() as work:
            here = {"tenant": TENANT, "scope": SCOPE}
            told = await work.memory_log.touches(**here, after=0, limit=99)
            assert await work.memory_log.touches(**here, after=4, limit=2) == told[4:6]
            assert await work.memory_log.touches(tenant="other", scope=SCOPE, after=0, limit=9) == []
        expected = [Touch.of(one) for one in made]
        assert [replace(one, active=None) for one in told] == [replace(one, active=None) for one in expected]
        pairs = [(one.active, other.active) for one, other in zip(told, expected, strict=True)]
        assert all(one in (None, other) for one, other in pairs)
        assert [one for one, _ in pairs[6:8]] == [False, True]

    async def test_what_happened_last_since_a_time(self, storage: Storage) -> None:
        """Clocks may disagree: the order is that of the numbers."""
        ahead = {1: 1, 2: 9, 3: 2, 4: 5, 5: 4}
        made = [change(number, memory(f"茶{number}"), at=START + ahead[number] * MINUTE) for number in ahead]
        await apply(storage, *made)
        assert [one.number for one in await latest(storage, since=START + 4 * MINUTE)] == [5, 4, 2]
        assert [one.number for one in await latest(storage, since=START + 4 * MINUTE, before=5, limit=1)] == [4]
        assert await latest(storage, since=START + timedelta(hours=1)) == []

    async def test_what_became_of_versions(self, storage: Storage) -> None:
        theirs = change(1, memory("茶", scope="user:bo"))
        strong = change(6, replace(A2, strength=0.5), action=Action.STRENGTH)
        await apply(storage, *MADE, update(5, A, "a2"), strong)
        await apply(storage, theirs, scope="user:bo")
        await apply(storage, change(1, memory("a", statement="other")), tenant="other")
        told = [MADE[2], MADE[3], update(5, A, "a2"), strong, theirs]
        assert await of_memories(storage, "a2", "c", "茶", "nowhere") == told
        assert await of_memories(storage, "a") == [MADE[0]]
        assert await of_memories(storage) == [] == await of_memories(storage, "c", tenant="other")

    async def test_what_was_merged_lives_again_beside_what_it_became(self, storage: Storage) -> None:
        await apply(storage, *MADE, merge(5, "a2", A, B), change(6, B, action=Action.RESTORE))
        assert await heads(storage, "a", "b") == {"a": "a2", "b": "b"}
        await apply(storage, change(7, A, action=Action.RESTORE, closes=("a2",)))
        merged = replace(A2, parents=("a", "b"))
        assert await versions(storage, ["a", "a2", "b"]) == {"a": A, "a2": gone(merged), "b": B}
        assert await heads(storage, "a", "a2", "b") == {"a": "a", "a2": "a", "b": "b"}

    async def test_taking_back_what_was_made_and_deleted_and_strengthened(self, storage: Storage) -> None:
        fresh, strong = memory("d"), replace(A, strength=0.25)
        await apply(
            storage,
            *MADE,
            change(5, fresh, evolution_id="e1"),
            change(6, gone(B), action=Action.DELETE, evolution_id="e1"),
            change(7, strong, action=Action.STRENGTH, evolution_id="e1"),
            change(8, A, action=Action.REVERT, undoes="e1"),
            change(9, B, action=Action.REVERT, undoes="e1"),
            change(10, gone(fresh), action=Action.REVERT, undoes="e1"),
        )
        assert await versions(storage, ["a", "b", "d"]) == {"a": A, "b": B, "d": gone(fresh)}
        assert [one.undoes for one in await of_memories(storage, "a", "b", "d")].count("e1") == 3
