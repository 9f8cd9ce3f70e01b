"""The contract of `MemoryLog`."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from roomlore.core.errors import Conflict, InvalidInput
from roomlore.core.memory.log import STEP, LogState, Snapshot, Touch, Versions, replay
from roomlore.core.memory.memory import Action, Change, Memory, MemoryStatus, Scope, Source
from roomlore.storage import Storage
from roomlore_testkit.builders import START, change, memory
from roomlore_testkit.case_table import all_cases
from storage_contracts.texts import TENANT

SCOPE = "user:ann"
MINUTE = timedelta(minutes=1)
GONE = MemoryStatus.DEPRECATED


async def apply(storage: Storage, *changes: Change, tenant: str = TENANT, scope: str = SCOPE) -> None:
    async with storage.writing(tenant) as work:
        await work.memories.lock(scope=scope, now=START)
        await work.memories.apply(scope=scope, changes=changes)


async def scope_of(storage: Storage, *, tenant: str = TENANT, scope: str = SCOPE) -> Scope | None:
    async with storage.reading(tenant) as work:
        return await work.memories.scope(scope=scope)


async def scopes(storage: Storage, *, tenant: str = TENANT, after: str | None = None, limit: int = 99) -> list[str]:
    async with storage.reading(tenant) as work:
        return [one.scope for one in await work.memories.scopes(after=after, limit=limit)]


async def log(
    storage: Storage,
    *,
    tenant: str = TENANT,
    scope: str = SCOPE,
    after: int = 0,
    limit: int = 9999,
    since: datetime | None = None,
) -> list[Change]:
    async with storage.reading(tenant) as work:
        return await work.memories.changes(scope=scope, after=after, limit=limit, since=since)


async def of_evolution(storage: Storage, evolution_id: str, *, tenant: str = TENANT) -> list[Change]:
    async with storage.reading(tenant) as work:
        return await work.memories.changes_of_evolution(evolution_id=evolution_id)


async def versions(storage: Storage, memory_ids: Sequence[str], *, tenant: str = TENANT) -> Versions:
    """Return those of these ids that exist."""
    async with storage.reading(tenant) as work:
        found = await work.memories.by_id(memory_ids=memory_ids)
    return {one.memory_id: one for one in found}


async def heads(storage: Storage, *memory_ids: str, tenant: str = TENANT) -> dict[str, str]:
    async with storage.reading(tenant) as work:
        found = await work.memories.heads(memory_ids=memory_ids)
    return {asked: head.memory_id for asked, head in found.items()}


def after(parent: Memory, memory_id: str, **fields: Any) -> Memory:
    """Return the version that follows its parent."""
    told: dict[str, Any] = {"statement": f"statement {memory_id}", "parents": (parent.memory_id,)} | fields
    return replace(parent, memory_id=memory_id, version=parent.version + 1, status=MemoryStatus.ACTIVE, **told)


def gone(one: Memory) -> Memory:
    return replace(one, status=GONE)


def update(number: int, parent: Memory, memory_id: str) -> Change:
    new = after(parent, memory_id)
    return change(number, new, action=Action.UPDATE, closes=new.parents, old_statement=parent.statement)


def merge(number: int, memory_id: str, first: Memory, *others: Memory) -> Change:
    parents = tuple(one.memory_id for one in (first, *others))
    return change(number, after(first, memory_id, parents=parents), action=Action.MERGE, closes=parents)


A, B, C = (memory(name) for name in "abc")
MADE = (change(1, A), change(2, B), change(3, C), change(4, gone(C), action=Action.DELETE))
"""A scope in which a and b are active, and c is not."""
A2 = after(A, "a2")
LONG_OLD = after(after(A, "x"), "a2")

REFUSED = {
    "a number left out": [change(6, memory("d"))],
    "a number again": [change(4, memory("d"))],
    "the second of two numbers": [change(5, memory("d")), change(7, memory("e"))],
    "an id that is taken": [change(5, A)],
    "an id of this list": [change(5, memory("d")), change(6, memory("d"))],
    "an id of another lineage": [
        change(5, replace(after(B, "a"), parents=("b",)), action=Action.UPDATE, closes=("b",))
    ],
    "an id of another scope": [change(5, memory("elsewhere"))],
    "a lineage of another scope": [
        change(5, memory("d", lineage_id="elsewhere", version=2), action=Action.REVERT),
    ],
    "closing what is of another scope": [change(5, memory("d"), closes=("elsewhere",))],
    "closing what is not there": [change(5, memory("d"), closes=("nowhere",))],
    "closing what is not active": [change(5, memory("d"), closes=("c",))],
    "closing twice": [change(5, memory("d"), closes=("a", "a"))],
    "an update that closes nothing": [change(5, A2, action=Action.UPDATE)],
    "an update that closes another": [change(5, A2, action=Action.UPDATE, closes=("b",))],
    "an update of what is deleted": [change(5, after(C, "c2"), action=Action.UPDATE, closes=("c",))],
    "an update of what was updated": [
        update(5, A, "a2"),
        change(6, after(A, "a3"), action=Action.UPDATE, closes=("a",)),
    ],
    "an update of nothing": [change(5, memory("d", version=2, lineage_id="x"), action=Action.UPDATE, closes=("a",))],
    "a merge of what is deleted": [merge(5, "a2", A, C)],
    "a version left out": [change(5, LONG_OLD, action=Action.UPDATE, closes=("a",))],
    "a version again": [change(5, replace(A2, version=1), action=Action.UPDATE, closes=("a",))],
    "a new lineage at version 2": [change(5, memory("d", version=2))],
    "a new lineage of another's name": [change(5, memory("d", lineage_id="x"))],
    "a new version called new": [change(5, A2, closes=("a",))],
    "two active versions": [change(5, A2, action=Action.REVERT)],
    "restoring beside an active one": [update(5, A, "a2"), change(6, A, action=Action.RESTORE)],
    "restoring what is active": [change(5, A, action=Action.RESTORE)],
    "restoring what is not there": [change(5, memory("d"), action=Action.RESTORE)],
    "deleting what is deleted": [change(5, gone(C), action=Action.DELETE)],
    "deleting what is not there": [change(5, gone(memory("d")), action=Action.DELETE)],
    "strength of what was deleted": [change(5, C, action=Action.STRENGTH)],
    "strength that deletes": [change(5, gone(A), action=Action.STRENGTH)],
    "redacting what is not there": [change(5, memory("d"), action=Action.REDACT)],
    "redacting another version": [change(5, replace(A, version=2), action=Action.REDACT)],
    "redacting another lineage": [change(5, replace(A, lineage_id="b"), action=Action.REDACT)],
}
SENSELESS = {
    "a new one that is deprecated": [change(5, gone(memory("d")))],
    "a restored one that is deprecated": [change(5, gone(C), action=Action.RESTORE)],
    "a deleted one that is active": [change(5, A, action=Action.DELETE)],
    "closing itself": [change(5, gone(A), action=Action.REVERT, closes=("a",))],
    "another scope": [change(5, memory("d", scope="user:bo"))],
    "a memory of another scope": [change(5, memory("d", scope="user:bo"), scope=SCOPE)],
}


class MemoryLogContract:
    async def test_a_scope_nothing_was_remembered_in(self, storage: Storage) -> None:
        assert await scope_of(storage) is None
        assert await scopes(storage) == []
        assert await log(storage) == []

    async def test_locking_makes_a_scope(self, storage: Storage) -> None:
        bare = Scope(tenant=TENANT, scope=SCOPE, created_at=START)
        async with storage.writing(TENANT) as work:
            assert await work.memories.lock(scope=SCOPE, now=START) == bare
        async with storage.writing(TENANT) as work:
            assert await work.memories.lock(scope=SCOPE, now=START + MINUTE) == bare
        assert await scope_of(storage) == bare

    async def test_a_change_comes_back_as_it_went_in(self, storage: Storage) -> None:
        late = START + timedelta(microseconds=1)
        full = memory(
            "f1",
            statement="对青霉素过敏 👋🏽",
            tags=("药", "a,b", '"'),
            category="health",
            strength=0.1 + 0.2,
            confidence=1e-9,
            sources=(Source("room", "m2"), Source("room", "m1"), Source("other", "m1")),
            change_summary="said so",
            evolution_id="e1",
            made_by="a model",
            fallback=True,
            created_at=late,
            updated_at=late + MINUTE,
            supported_at=late - MINUTE,
        )
        made = change(1, full, reason="为什么", evolution_id="e1", actor="a model", at=late)
        second = change(2, after(full, "f2"), action=Action.UPDATE, closes=("f1",), old_statement="", undoes="e1")
        await apply(storage, made, second)
        assert await log(storage) == [made, second]
        assert await versions(storage, ["f1", "f2"]) == {"f1": gone(full), "f2": second.memory}

    async def test_counters_follow(self, storage: Storage) -> None:
        await apply(storage, *MADE[:2])
        assert await scope_of(storage) == Scope(tenant=TENANT, scope=SCOPE, changes=2, active=2, created_at=START)
        await apply(storage, *MADE[2:], merge(5, "a2", A, B))
        assert await scope_of(storage) == Scope(tenant=TENANT, scope=SCOPE, changes=5, active=1, created_at=START)

    async def test_several_calls_in_one_unit_of_work(self, storage: Storage) -> None:
        async with storage.writing(TENANT) as work:
            await work.memories.lock(scope=SCOPE, now=START)
            for one in MADE:
                await work.memories.apply(scope=SCOPE, changes=[one])
            await work.memories.apply(scope=SCOPE, changes=[])
            assert await work.memories.changes(scope=SCOPE, after=0, limit=9) == list(MADE)
        assert await log(storage) == list(MADE)

    async def test_an_update(self, storage: Storage) -> None:
        await apply(storage, *MADE)
        await apply(storage, update(5, A, "a2"), update(6, A2, "a3"))
        third = after(A2, "a3")
        assert await versions(storage, ["a", "a2", "a3"]) == {"a": gone(A), "a2": gone(A2), "a3": third}
        assert await heads(storage, "a", "a2", "a3") == {"a": "a3", "a2": "a3", "a3": "a3"}

    async def test_a_deletion_keeps_the_head(self, storage: Storage) -> None:
        deleted = replace(gone(A2), change_summary="stale")
        await apply(storage, *MADE, update(5, A, "a2"), change(6, deleted, action=Action.DELETE))
        assert await versions(storage, ["a2"]) == {"a2": deleted}
        assert await heads(storage, "a") == {"a": "a2"}

    async def test_restoring_what_was_deleted(self, storage: Storage) -> None:
        await apply(storage, *MADE, change(5, replace(C, strength=0.5), action=Action.RESTORE))
        assert await versions(storage, ["c"]) == {"c": replace(C, strength=0.5)}
        scope = await scope_of(storage)
        assert scope is not None
        assert scope.active == 3

    async def test_restoring_an_earlier_version(self, storage: Storage) -> None:
        await apply(storage, *MADE, update(5, A, "a2"), change(6, A, action=Action.RESTORE, closes=("a2",)))
        assert await versions(storage, ["a", "a2"]) == {"a": A, "a2": gone(A2)}
        assert await heads(storage, "a", "a2") == {"a": "a", "a2": "a"}
        third = replace(after(A, "a3"), version=3)
        await apply(storage, change(7, gone(A), action=Action.DELETE))
        assert await heads(storage, "a2") == {"a2": "a"}, "the one that was last in force"
        await apply(storage, change(8, A, action=Action.RESTORE))
        await apply(storage, change(9, third, action=Action.UPDATE, closes=("a",)))
        assert await heads(storage, "a", "a2") == {"a": "a3", "a2": "a3"}

    async def test_merging_leads_to_the_first_lineage(self, storage: Storage) -> None:
        await apply(storage, *MADE, merge(5, "b2", B, A))
        assert await heads(storage, "a", "b", "b2", "c") == {"a": "b2", "b": "b2", "b2": "b2", "c": "c"}
        assert (await versions(storage, ["a"])) == {"a": gone(A)}

    async def test_merging_what_was_merged(self, storage: Storage) -> None:
        letters = "abcdef"
        await apply(storage, *(change(n, memory(name)) for n, name in enumerate(letters, 1)))
        last, number = memory("a"), 6
        for name in letters[1:]:
            number += 1
            await apply(storage, merge(number, f"{name}2", memory(name), last))
            last = after(memory(name), f"{name}2")
        assert await heads(storage, *letters) == dict.fromkeys(letters, "f2")

    async def test_a_lineage_that_lives_again_is_its_own(self, storage: Storage) -> None:
        await apply(storage, *MADE, merge(5, "a2", A, B), change(6, B, action=Action.RESTORE))
        assert await heads(storage, "a", "b") == {"a": "a2", "b": "b"}
        await apply(storage, merge(7, "b2", B, A2))
        assert await heads(storage, "a", "a2", "b") == {"a": "b2", "a2": "b2", "b": "b2"}

    async def test_taking_a_merge_back_and_back_again(self, storage: Storage) -> None:
        merged = merge(5, "a2", A, B)
        undone = [
            change(6, A, action=Action.REVERT, closes=("a2",), undoes="e1"),
            change(7, B, action=Action.REVERT, undoes="e1"),
        ]
        await apply(storage, *MADE, merged, *undone)
        assert await heads(storage, "a", "a2", "b") == {"a": "a", "a2": "a", "b": "b"}
        assert await versions(storage, ["a", "b"]) == {"a": A, "b": B}
        await apply(storage, change(8, merged.memory, action=Action.REVERT, closes=("a", "b")))
        assert await heads(storage, "a", "b") == {"a": "a2", "b": "a2"}

    async def test_a_revert_may_make_a_version_or_end_one(self, storage: Storage) -> None:
        back = after(A2, "a3", statement=A.statement)
        await apply(storage, *MADE, update(5, A, "a2"), change(6, back, action=Action.REVERT, closes=("a2",)))
        await apply(storage, change(7, gone(B), action=Action.REVERT))
        assert await versions(storage, ["a2", "a3", "b"]) == {"a2": gone(A2), "a3": back, "b": gone(B)}
        assert await heads(storage, "a", "b") == {"a": "a3", "b": "b"}

    async def test_strength_and_redaction_stay_in_their_place(self, storage: Storage) -> None:
        strong = replace(A, strength=0.25, supported_at=START + MINUTE, sources=(Source("room", "m9"),))
        empty = replace(gone(C), statement="", tags=(), sources=())
        await apply(storage, *MADE)
        await apply(storage, change(5, strong, action=Action.STRENGTH), change(6, empty, action=Action.REDACT))
        assert await versions(storage, ["a", "c"]) == {"a": strong, "c": empty}
        await apply(storage, update(7, strong, "a2"))
        await apply(storage, change(8, replace(gone(A), statement="-"), action=Action.REDACT))
        assert await heads(storage, "a", "c") == {"a": "a2", "c": "c"}
        assert replay(await log(storage)) == await versions(storage, ["a", "a2", "b", "c"])

    async def test_a_conflict_leaves_nothing_behind(self, storage: Storage) -> None:
        await self._stored(storage)
        with all_cases() as case:
            for name, changes in REFUSED.items():
                with case(name):
                    await self._refused(storage, changes, Conflict)

    async def test_what_makes_no_sense_leaves_nothing_behind(self, storage: Storage) -> None:
        await self._stored(storage)
        with all_cases() as case:
            for name, changes in SENSELESS.items():
                with case(name):
                    await self._refused(storage, changes, InvalidInput)

    async def _stored(self, storage: Storage) -> None:
        await apply(storage, change(1, memory("elsewhere", scope="user:bo")), scope="user:bo")
        await apply(storage, *MADE)

    async def _refused(self, storage: Storage, changes: list[Change], error: type[Exception]) -> None:
        """Check that the changes are refused, even if the caller continues and keeps the rest."""
        async with storage.writing(TENANT) as work:
            await work.memories.lock(scope=SCOPE, now=START)
            with pytest.raises(error):
                await work.memories.apply(scope=SCOPE, changes=changes)
            good = change(5, memory("good"))
            with pytest.raises(error):
                await work.memories.apply(
                    scope=SCOPE, changes=[good, *(replace(one, number=one.number + 1) for one in changes)]
                )
        assert await log(storage) == list(MADE)
        named = {one.memory.memory_id for one in changes} | {"a", "b", "c", "good"}
        kept = {name: one for name, one in (await versions(storage, sorted(named))).items() if one.scope == SCOPE}
        assert kept == {"a": A, "b": B, "c": gone(C)}
        assert await heads(storage, "a", "b", "c") == {"a": "a", "b": "b", "c": "c"}
        assert await scope_of(storage) == Scope(tenant=TENANT, scope=SCOPE, changes=4, active=2, created_at=START)

    async def test_writing_needs_the_lock(self, storage: Storage) -> None:
        async with storage.writing(TENANT) as work:
            await work.memories.lock(scope="user:bo", now=START)
            await work.of("other").memories.lock(scope=SCOPE, now=START)
            with pytest.raises(InvalidInput):
                await work.memories.apply(scope=SCOPE, changes=MADE)
        async with storage.reading(TENANT) as work:
            with pytest.raises(InvalidInput):
                await work.memories.lock(scope=SCOPE, now=START)

    async def test_what_raises_leaves_nothing(self, storage: Storage) -> None:
        with pytest.raises(StopError):
            await _apply_and_stop(storage)
        assert await scope_of(storage) is None
        assert await versions(storage, ["a"]) == {}
        assert await log(storage) == []

    async def test_of_two_writers_with_one_number_one_wins(self, storage: Storage) -> None:
        tries = (apply(storage, change(1, memory(name))) for name in ("a", "b"))
        outcomes = await asyncio.gather(*tries, return_exceptions=True)
        assert sorted(type(one).__name__ for one in outcomes) == ["Conflict", "NoneType"]
        assert len(await log(storage)) == 1

    async def test_pages_of_scopes(self, storage: Storage) -> None:
        names = ["group:b", "user:a", "agent:c", "group:部", "group:\U0001f44b"]
        for name in names:
            await apply(storage, scope=name)
        await apply(storage, scope="group:theirs", tenant="other")
        assert await scopes(storage) == sorted(names)
        assert await scopes(storage, limit=2) == ["agent:c", "group:b"]
        assert await scopes(storage, after="group:b", limit=2) == ["group:部", "group:\U0001f44b"]
        assert await scopes(storage, after="user:a") == []
        assert await scopes(storage, limit=0) == []

    async def test_pages_of_changes(self, storage: Storage) -> None:
        many = [change(n, memory(f"m{n}"), at=START + (n % 5) * MINUTE) for n in range(1, 41)]
        await apply(storage, *many)
        await apply(storage, change(1, memory("x", scope="user:bo")), scope="user:bo")
        assert await log(storage) == many
        assert await log(storage, after=7, limit=5) == many[7:12]
        assert await log(storage, after=40) == []
        assert await log(storage, limit=0) == []
        late = [one for one in many if one.at >= START + 3 * MINUTE]
        assert await log(storage, since=START + 3 * MINUTE) == late
        assert await log(storage, since=START + 3 * MINUTE, after=late[2].number, limit=4) == late[3:7]
        assert await log(storage, since=START + timedelta(hours=1)) == []

    async def test_what_an_evolution_changed(self, storage: Storage) -> None:
        told = [change(1, A, evolution_id="e1"), change(2, B, evolution_id="e2"), replace(MADE[2], evolution_id="e1")]
        theirs = change(1, memory("d", scope="group:茶"), evolution_id="e1")
        await apply(storage, *told, change(4, gone(C), action=Action.DELETE))
        await apply(storage, theirs, scope="group:茶")
        await apply(storage, change(1, replace(A, statement="theirs"), evolution_id="e3"), tenant="other")
        assert await of_evolution(storage, "e1") == [theirs, told[0], told[2]]
        assert await of_evolution(storage, "e2") == [told[1]]
        assert await of_evolution(storage, "e3") == await of_evolution(storage, "") == []

    async def test_tenants_use_the_same_ids(self, storage: Storage) -> None:
        await apply(storage, *MADE)
        await apply(storage, change(1, replace(A, statement="theirs")), tenant="other")
        assert (await versions(storage, ["a", "b"], tenant="other")) == {"a": replace(A, statement="theirs")}
        assert await heads(storage, "a", "b", tenant="other") == {"a": "a"}
        assert (await versions(storage, ["a"])) == {"a": A}
        assert len(await log(storage, tenant="other")) == 1


class StopError(Exception):
    """Raised inside a unit of work."""


async def _apply_and_stop(storage: Storage) -> None:
    async with storage.writing(TENANT) as work:
        await work.memories.lock(scope=SCOPE, now=START)
        await work.memories.apply(scope=SCOPE, changes=MADE)
        assert await work.memories.by_id(memory_ids=["a"]) == [A]
        raise StopError


async def of_memories(storage: Storage, *memory_ids: str, tenant: str = TENANT) -> list[Change]:
    async with storage.reading(tenant) as work:
        return await work.memories.changes_of_memories(memory_ids=memory_ids)


async def latest(
    storage: Storage,
    *,
    tenant: str = TENANT,
    scope: str = SCOPE,
    limit: int = 9,
    before: int | None = None,
    since: datetime | None = None,
) -> list[Change]:
    async with storage.reading(tenant) as work:
        return await work.memories.latest_changes(scope=scope, limit=limit, before=before, since=since)


def long_log(length: int, *, tenant: str = "") -> list[Change]:
    """Return a log of three memories that are updated in turn, a minute apart."""
    found: list[Change] = []
    heads: list[Memory] = []
    for number in range(1, length + 1):
        at = START + number * MINUTE
        if len(heads) < 3:
            heads.append(memory(f"{tenant}{number}"))
            found.append(change(number, heads[-1], at=at))
        else:
            old = heads.pop(0)
            heads.append(after(old, f"{tenant}{number}"))
            closed = {"closes": (old.memory_id,), "old_statement": old.statement}
            found.append(change(number, heads[-1], action=Action.UPDATE, at=at, **closed))
    return found


async def snapshot(storage: Storage, at: datetime, *, tenant: str = TENANT, scope: str = SCOPE) -> Snapshot | None:
    async with storage.reading(tenant) as work:
        return await work.memories.snapshot(scope=scope, at=at)


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
        async with storage.reading(TENANT) as work:
            told = await work.memories.touches(scope=SCOPE, after=0, limit=99)
            assert await work.memories.touches(scope=SCOPE, after=4, limit=2) == told[4:6]
            assert await work.of("other").memories.touches(scope=SCOPE, after=0, limit=9) == []
        expected = [Touch.of(one) for one in made]
        assert [replace(one, active=None) for one in told] == [replace(one, active=None) for one in expected]
        pairs = [(one.active, other.active) for one, other in zip(told, expected, strict=True)]
        assert all(one in (None, other) for one, other in pairs)
        assert [one for one, _ in pairs[6:8]] == [False, True]

    async def test_changes_by_their_numbers(self, storage: Storage) -> None:
        made = [change(number, memory(f"m{number}")) for number in range(1, 8)]
        await apply(storage, *made)
        await apply(storage, change(1, memory("elsewhere", scope="user:bo")), scope="user:bo")
        async with storage.reading(TENANT) as work:
            read = work.memories.changes_by_number
            assert await read(scope=SCOPE, numbers=[6, 2, 99]) == [made[1], made[5]]
            assert await read(scope=SCOPE, numbers=[]) == []
            assert await work.of("other").memories.changes_by_number(scope=SCOPE, numbers=[2]) == []

    async def test_changes_of_lineages(self, storage: Storage) -> None:
        made = (
            *MADE,
            change(5, A2, action=Action.UPDATE, closes=("a",)),
            change(6, replace(A2, strength=0.5), action=Action.STRENGTH),
        )
        await apply(storage, *made)
        async with storage.reading(TENANT) as work:
            read = partial(work.memories.changes_of_lineages, scope=SCOPE)
            its = [one for one in made if one.memory.lineage_id == "a"]
            assert [one.number for one in its][-2:] == [5, 6]
            assert await read(lineage_ids=["a", "zz"], after=0, until=9) == its
            assert await read(lineage_ids=["a", "zz"], after=0, until=99_999) == its
            assert await read(lineage_ids=["a"], after=its[0].number, until=5) == its[1:-1]
            assert await read(lineage_ids=[], after=0, until=9) == []
            others = work.of("other").memories
            assert await others.changes_of_lineages(scope=SCOPE, lineage_ids=["a"], after=0, until=9) == []

    async def test_snapshots_of_a_long_log(self, storage: Storage) -> None:
        """Made while changes are added, and read for the moments that they serve."""
        entries = long_log(3 * STEP)
        await apply(storage, *entries[: STEP - 1])
        assert await snapshot(storage, START + timedelta(days=9)) is None
        for start, end in ((STEP - 1, STEP), (STEP, STEP + 90), (STEP + 90, 3 * STEP)):
            await apply(storage, *entries[start:end])
        await apply(storage, *long_log(STEP, tenant="other"), tenant="other")
        state, expected = LogState(), {}
        for one in entries:
            state.add(Touch.of(one))
            expected[one.number] = state.snapshot()
        for number in (1, STEP - 1, STEP, STEP + 1, 2 * STEP, 3 * STEP - 1, 3 * STEP, 4 * STEP):
            its = number // STEP * STEP
            assert await snapshot(storage, START + number * MINUTE) == expected.get(min(its, 3 * STEP))
        assert await snapshot(storage, START + timedelta(days=9), scope="user:nobody") is None
        assert await snapshot(storage, START + timedelta(days=9), tenant="nobody") is None
        other = await snapshot(storage, START + timedelta(days=9), tenant="other")
        assert other is not None
        assert other.number == STEP

    async def test_two_changes_of_a_unit_of_work_make_a_snapshot_once(self, storage: Storage) -> None:
        entries = long_log(2 * STEP + 5)
        async with storage.writing(TENANT) as work:
            await work.memories.lock(scope=SCOPE, now=START)
            for start, end in ((0, STEP + 1), (STEP + 1, 2 * STEP), (2 * STEP, 2 * STEP + 5)):
                await work.memories.apply(scope=SCOPE, changes=entries[start:end])
            kept = await work.maintenance.read_snapshots(scope=SCOPE, after=0, until=9999, limit=9)
        assert [one.number for one in kept] == [STEP, 2 * STEP]
        async with storage.reading(TENANT) as work:
            read = partial(work.maintenance.read_snapshots, scope=SCOPE)
            assert await read(after=0, until=9999, limit=9) == kept
            assert await read(after=STEP, until=9999, limit=9) == kept[1:]
            assert await read(after=0, until=STEP, limit=9) == kept[:1] == await read(after=0, until=9999, limit=1)

    async def test_what_happened_last_since_a_time(self, storage: Storage) -> None:
        """Clocks may disagree: the order is that of the numbers."""
        ahead = {1: 1, 2: 9, 3: 2, 4: 5, 5: 4}
        made = [change(number, memory(f"茶{number}"), at=START + ahead[number] * MINUTE) for number in ahead]
        await apply(storage, *made)
        assert [one.number for one in await latest(storage, since=START + 4 * MINUTE)] == [5, 4, 2]
        assert [one.number for one in await latest(storage, since=START + 4 * MINUTE, before=5, limit=1)] == [4]
        assert await latest(storage, since=START + timedelta(hours=1)) == []

    async def test_the_newest_changes_of_content_in_several_scopes(self, storage: Storage) -> None:
        theirs = change(1, memory("茶", scope="user:bo"), at=START + 3 * MINUTE)
        strong = change(6, replace(A2, strength=0.5), action=Action.STRENGTH)
        await apply(storage, *MADE, update(5, A, "a2"), strong)
        await apply(storage, theirs, scope="user:bo")
        await apply(storage, change(1, memory("a")), tenant="other")
        own = [update(5, A, "a2"), *MADE[::-1]]
        every = sorted([*own, theirs], key=lambda one: (one.at, one.number), reverse=True)
        for wanted, scopes in ((every, None), (own, [SCOPE]), ([theirs], ["user:bo"]), ([], [])):
            async with storage.reading(TENANT) as work:
                found = await work.memories.latest_in(scopes=scopes, since=START, limit=99)
                some = await work.memories.latest_in(scopes=scopes, since=START + 3 * MINUTE, limit=2)
            assert sorted(found, key=lambda one: (one.at, one.number), reverse=True) == wanted
            assert [one.at for one in found] == sorted((one.at for one in found), reverse=True)
            assert some == [one for one in found if one.at >= START + 3 * MINUTE][:2]

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
