"""Adding, changing and deleting memories: read what is in force, decide, and write it to the log of the scope.

A scope's row is locked while its log is written. What is in force is read before, and brought up to date under the lock
by the few changes that came in between, so that a large scope is never read while others wait.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, TypeVar

from roomlore.core.errors import Conflict, InvalidInput, NotFound
from roomlore.core.memory import writing
from roomlore.core.memory.intake import MAX_BATCH, Edit, NewMemory, check_reason, checked, checked_edit
from roomlore.core.memory.models import Memory, MemoryKind, MemoryStatus, Scope
from roomlore.core.memory.writing import Additions, InForce, Lineage, Remembered
from roomlore.ports.coordination import Clock, Ids
from roomlore.ports.storage import Storage, UnitOfWork
from roomlore.services.memories.in_force import InForceCache, catch_up

T = TypeVar("T")
OnConflict = Literal["raise", "report"]


@dataclass(frozen=True, slots=True)
class _Batch:
    """What is to be remembered, by scope, with the place of each in the caller's list."""

    by_scope: Mapping[str, Sequence[tuple[int, NewMemory]]]
    size: int

    @classmethod
    def of(cls, memories: Sequence[NewMemory]) -> "_Batch":
        if len(memories) > MAX_BATCH:
            raise InvalidInput(f"{len(memories)} memories in one call; add at most {MAX_BATCH} at a time.")
        by_scope: dict[str, list[tuple[int, NewMemory]]] = {}
        for place, memory in enumerate(memories):
            if not isinstance(memory, NewMemory):
                raise InvalidInput(f"Item {place} is {memory!r:.60}; it must be a roomlore.NewMemory.")
            good = checked(memory)
            by_scope.setdefault(good.scope, []).append((place, good))
        return cls({scope: by_scope[scope] for scope in sorted(by_scope)}, len(memories))


def _kinds_of(memories: Sequence[tuple[int, NewMemory]]) -> list[MemoryKind]:
    return sorted({memory.kind for _, memory in memories})


class MemoryWriter:
    """Writes the memories of one tenant."""

    def __init__(self, *, tenant: str, storage: Storage, cache: InForceCache, clock: Clock, ids: Ids) -> None:
        self._tenant = tenant
        self._storage = storage
        self._cache = cache
        self._clock = clock
        self._ids = ids

    async def add(
        self, memories: Sequence[NewMemory], *, on_conflict: OnConflict, refresh: bool = False, dry_run: bool = False
    ) -> list[Remembered]:
        """What became of each, in the order given; all of it in one transaction. With `dry_run` nothing is written."""
        batch = _Batch.of(memories)

        async def once() -> list[Remembered]:
            before = {scope: await self._read(scope, _kinds_of(new)) for scope, new in batch.by_scope.items()}
            if dry_run:
                async with self._storage.reading() as work:
                    return await self._decide(work, batch, before, refresh=refresh, dry_run=True)
            async with self._storage.writing() as work:
                done = await self._decide(work, batch, before, refresh=refresh, dry_run=False)
                _check(done, on_conflict)
                return done

        return await twice(once)

    async def update(self, memory_id: str, edit: Edit, *, expected: str | None, reason: str) -> Memory:
        wanted, why = checked_edit(edit), check_reason(reason)
        return await twice(lambda: self._update(memory_id, wanted, expected, why))

    async def delete(self, memory_id: str, *, expected: str | None, reason: str) -> Memory:
        why = check_reason(reason)
        return await twice(lambda: self._delete(memory_id, expected, why))

    async def _decide(
        self,
        work: UnitOfWork,
        batch: _Batch,
        before: Mapping[str, Mapping[MemoryKind, InForce]],
        *,
        refresh: bool,
        dry_run: bool,
    ) -> list[Remembered]:
        now, done = self._clock.now(), dict[int, Remembered]()
        for scope, memories in batch.by_scope.items():
            if not dry_run:
                await self._lock(work, scope, before[scope], now)
            number = max(one.number for one in before[scope].values())
            known = await self._known(work, memories, refresh=refresh)
            additions = Additions(before[scope], known, now=now, new_id=self._ids.new, number=number, refresh=refresh)
            done |= {place: additions.add(memory) for place, memory in memories}
            if not dry_run:
                await work.memory_log.apply(tenant=self._tenant, scope=scope, changes=additions.changes)
        return [done[place] for place in range(batch.size)]

    async def _known(
        self, work: UnitOfWork, memories: Sequence[tuple[int, NewMemory]], *, refresh: bool
    ) -> dict[str, Lineage]:
        """The lineages of the ids that are asked for; how far they go is looked up where that may matter."""
        asked = {memory.memory_id: memory for _, memory in memories if memory.memory_id is not None}
        found = await self._lineages(work, list(asked))
        moved = [name for name, lineage in found.items() if refresh and not lineage.says(asked[name])]
        return found | {name: await self._with_newest(work, found[name]) for name in moved}

    async def _read(self, scope: str, kinds: Iterable[MemoryKind]) -> dict[MemoryKind, InForce]:
        return {kind: await self._cache.read(tenant=self._tenant, scope=scope, kind=kind) for kind in kinds}

    async def _lock(self, work: UnitOfWork, scope: str, before: Mapping[MemoryKind, InForce], now: datetime) -> Scope:
        stored = await work.memory_log.lock(tenant=self._tenant, scope=scope, now=now)
        for in_force in before.values():
            await catch_up(work, in_force, stored)
        return stored

    async def _update(self, memory_id: str, edit: Edit, expected: str | None, reason: str) -> Memory:
        head = await self.head(memory_id)
        before = await self._read(head.scope, [head.kind]) if edit.statement is not None else {}
        now = self._clock.now()
        async with self._storage.writing() as work:
            scope = await self._lock(work, head.scope, before, now)
            lineage = await self._with_newest(work, (await self._lineages(work, [memory_id]))[memory_id])
            head = _in_force(lineage, expected)
            wanted = writing.edited(head, edit)
            if wanted == head:
                return head
            for in_force in before.values():
                _check_alone(wanted, in_force)
            change = writing.update(
                head,
                wanted,
                memory_id=self._ids.new(),
                version=lineage.newest + 1,
                number=scope.changes + 1,
                reason=reason,
                now=now,
            )
            await work.memory_log.apply(tenant=self._tenant, scope=head.scope, changes=[change])
            return change.memory

    async def _delete(self, memory_id: str, expected: str | None, reason: str) -> Memory:
        now, scope_name = self._clock.now(), (await self.head(memory_id)).scope
        async with self._storage.writing() as work:
            scope = await work.memory_log.lock(tenant=self._tenant, scope=scope_name, now=now)
            head = (await work.memories.heads(tenant=self._tenant, memory_ids=[memory_id]))[memory_id]
            writing.expect(head, expected)
            if head.status is not MemoryStatus.ACTIVE:
                return head
            change = writing.deletion(head, number=scope.changes + 1, reason=reason, now=now)
            await work.memory_log.apply(tenant=self._tenant, scope=head.scope, changes=[change])
            return change.memory

    async def head(self, memory_id: str) -> Memory:
        """The version in force, or the last one; `NotFound`."""
        async with self._storage.reading() as work:
            found = await work.memories.heads(tenant=self._tenant, memory_ids=[memory_id])
        if memory_id not in found:
            raise NotFound(f"There is no memory {memory_id!r:.80}.")
        return found[memory_id]

    async def _lineages(self, work: UnitOfWork, memory_ids: Sequence[str]) -> dict[str, Lineage]:
        named = {one.memory_id: one for one in await work.memories.by_id(tenant=self._tenant, memory_ids=memory_ids)}
        heads = await work.memories.heads(tenant=self._tenant, memory_ids=list(named))
        return {memory_id: Lineage(named[memory_id], head, head.version) for memory_id, head in heads.items()}

    async def _with_newest(self, work: UnitOfWork, lineage: Lineage) -> Lineage:
        """An earlier version may have been restored, and be the head."""
        versions = await work.memories.lineage(tenant=self._tenant, lineage_id=lineage.head.lineage_id)
        return replace(lineage, newest=max(memory.version for memory in versions))


def _in_force(lineage: Lineage, expected: str | None) -> Memory:
    writing.expect(lineage.head, expected)
    if lineage.head.status is not MemoryStatus.ACTIVE:
        raise Conflict(f"Memory {lineage.head.memory_id!r:.80} was deleted; add it anew.")
    return lineage.head


def _check(done: Sequence[Remembered], on_conflict: OnConflict) -> None:
    clash = next((one for one in done if one.outcome == "conflict"), None)
    if clash is not None and on_conflict == "raise":
        raise Conflict(
            f"Memory {clash.memory.memory_id!r:.80} is there with other content; nothing was added. Update it, or give "
            "another memory_id."
        )


def _check_alone(wanted: Memory, in_force: InForce) -> None:
    other = in_force.saying(wanted.statement, beside=wanted.lineage_id)
    if other is not None:
        raise Conflict(f"Memory {other.memory_id!r:.80} says that already; delete one of the two.")


async def twice(work: Callable[[], Awaitable[T]]) -> T:
    """Once more on what is there now where somebody else was faster: an id of another scope, say, that no lock held."""
    try:
        return await work()
    except Conflict:
        return await work()
