"""Going back: taking an evolution back, restoring a version, setting how strong a memory is.

As when adding and changing: what is in force is read before, brought up to date under the lock of the scope, and tried
once more where somebody else was faster.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from roomlore.core.errors import Conflict, InvalidInput, NotFound
from roomlore.core.memory.intake import check_reason, check_strength
from roomlore.core.memory.models import Action, Change, Memory, MemoryKind, MemoryStatus
from roomlore.core.memory.reverting import is_redacted, reverted, touched
from roomlore.core.memory.writing import InForce
from roomlore.ports.coordination import Clock
from roomlore.ports.storage import Storage, UnitOfWork
from roomlore.services.memories.in_force import InForceCache, catch_up
from roomlore.services.memories.writer import twice

Kinds = Mapping[MemoryKind, InForce]


class Reviser:
    """Revises the memories of one tenant."""

    def __init__(self, *, tenant: str, storage: Storage, cache: InForceCache, clock: Clock) -> None:
        self._tenant = tenant
        self._storage = storage
        self._cache = cache
        self._clock = clock

    async def revert(self, evolution_id: str, reason: str) -> list[Change]:
        """Takes back what an evolution did; the changes that do so, none where there is nothing to take back.

        Raises `Conflict` where something else changed the same memories since, or says the same; `NotFound`.
        """
        why = check_reason(reason)
        async with self._storage.reading() as work:
            own = await work.memory_log.of_evolution(tenant=self._tenant, evolution_id=evolution_id)
            known = own or await work.evolutions.by_id(tenant=self._tenant, evolution_ids=[evolution_id])
        if not known:
            raise NotFound(f"There is no evolution {evolution_id!r:.80}.")
        return await twice(lambda: self._revert(own, why)) if own else []

    async def restore(self, memory_id: str, reason: str) -> Memory:
        """Brings a version back into force, in the place of what is in force of its lineage.

        Raises `Conflict` where another memory of the scope says the same, `InvalidInput` where it says nothing any
        more, `NotFound`.
        """
        why = check_reason(reason)
        return await twice(lambda: self._restore(memory_id, why))

    async def strength(self, memory_id: str, value: float, reason: str) -> Memory:
        """Sets how strong what is in force is, as of now. Raises `Conflict` where it was deleted, `NotFound`."""
        strong, why = check_strength(value), check_reason(reason)
        return await twice(lambda: self._strengthen(memory_id, strong, why))

    async def _revert(self, own: Sequence[Change], reason: str) -> list[Change]:
        scope = own[0].scope
        before, now = await self._read(scope, (change.memory.kind for change in own)), self._clock.now()
        async with self._storage.writing() as work:
            number = await self._lock(work, scope, before, now)
            logged = await work.memory_log.of_memories(tenant=self._tenant, memory_ids=touched(own))
            versions = await self._with_heads(work, touched(own))
            made = reverted(own, logged=logged, versions=versions, number=number, reason=reason, now=now)
            _check_alone(made, before)
            await work.memory_log.apply(tenant=self._tenant, scope=scope, changes=made)
            return made

    async def _restore(self, memory_id: str, reason: str) -> Memory:
        asked = await self._version(memory_id)
        before, now = await self._read(asked.scope, [asked.kind]), self._clock.now()
        async with self._storage.writing() as work:
            number = await self._lock(work, asked.scope, before, now)
            versions = await self._with_heads(work, [memory_id])
            head = next((one for one in versions if one.status is MemoryStatus.ACTIVE), None)
            wanted = next(one for one in versions if one.memory_id == memory_id)
            if wanted == head:
                return wanted
            logged = await work.memory_log.of_memories(tenant=self._tenant, memory_ids=[memory_id])
            change = _restoration(_in_force_again(wanted, logged, now), head, number=number + 1, reason=reason, now=now)
            _check_alone([change], before)
            await work.memory_log.apply(tenant=self._tenant, scope=asked.scope, changes=[change])
            return change.memory

    async def _strengthen(self, memory_id: str, value: float, reason: str) -> Memory:
        scope, now = (await self._version(memory_id)).scope, self._clock.now()
        async with self._storage.writing() as work:
            number = await self._lock(work, scope, {}, now)
            head = (await work.memories.heads(tenant=self._tenant, memory_ids=[memory_id]))[memory_id]
            if head.status is not MemoryStatus.ACTIVE:
                raise Conflict(f"Memory {head.memory_id!r:.80} was deleted; restore it first.")
            strong = replace(head, strength=value, supported_at=now)
            change = Change(
                number=number + 1,
                scope=scope,
                action=Action.STRENGTH,
                memory=strong,
                old_statement=head.statement,
                reason=reason,
                at=now,
            )
            await work.memory_log.apply(tenant=self._tenant, scope=scope, changes=[change])
            return strong

    async def _version(self, memory_id: str) -> Memory:
        async with self._storage.reading() as work:
            found = await work.memories.by_id(tenant=self._tenant, memory_ids=[memory_id])
        if not found:
            raise NotFound(f"There is no memory {memory_id!r:.80}.")
        return found[0]

    async def _with_heads(self, work: UnitOfWork, memory_ids: Sequence[str]) -> list[Memory]:
        """These versions and the heads of their lineages, where those were not merged into others: what is in force of
        these lineages is among them, however many versions they have."""
        found = await work.memories.by_id(tenant=self._tenant, memory_ids=memory_ids)
        lineages = {memory.lineage_id for memory in found}
        heads = await work.memories.heads(tenant=self._tenant, memory_ids=memory_ids)
        own = [head for head in heads.values() if head.lineage_id in lineages]
        return list({memory.memory_id: memory for memory in (*found, *own)}.values())

    async def _read(self, scope: str, kinds: Iterable[MemoryKind]) -> Kinds:
        return {
            kind: await self._cache.read(tenant=self._tenant, scope=scope, kind=kind) for kind in sorted(set(kinds))
        }

    async def _lock(self, work: UnitOfWork, scope: str, before: Kinds, now: datetime) -> int:
        """The number of the last change, under the lock of the scope."""
        stored = await work.memory_log.lock(tenant=self._tenant, scope=scope, now=now)
        for in_force in before.values():
            await catch_up(work, in_force, stored)
        return stored.changes


def _in_force_again(version: Memory, logged: Sequence[Change], now: datetime) -> Memory:
    """As it was when it last was in force, or after it was redacted: being deleted may have changed what it says of
    itself. That somebody wants it back supports it."""
    if is_redacted(version):
        raise InvalidInput(f"Memory {version.memory_id!r:.80} was redacted; there is nothing left to restore.")
    last = [one for one in logged if one.memory.status is MemoryStatus.ACTIVE or one.action is Action.REDACT]
    summary = last[-1].memory.change_summary if last else version.change_summary
    return replace(
        version,
        status=MemoryStatus.ACTIVE,
        change_summary=summary,
        supported_at=max(now, version.supported_at),
    )


def _restoration(memory: Memory, head: Memory | None, *, number: int, reason: str, now: datetime) -> Change:
    return Change(
        number=number,
        scope=memory.scope,
        action=Action.RESTORE,
        memory=memory,
        closes=(head.memory_id,) if head else (),
        old_statement=head.statement if head else None,
        reason=reason,
        at=now,
    )


def _check_alone(changes: Sequence[Change], before: Kinds) -> None:
    """`Conflict` where something that comes into force says what another memory says, which stays as it is."""
    ours = {name for change in changes for name in (*change.closes, change.memory.memory_id)}
    for new in (change.memory for change in changes if change.memory.status is MemoryStatus.ACTIVE):
        same = {one.memory_id for one in before[new.kind].all_saying(new.statement)}
        if new.memory_id not in same and same - ours:
            raise Conflict(f"Memory {min(same - ours)!r:.80} says that already; delete one of the two.")
