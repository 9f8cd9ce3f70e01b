"""Writing memories: a cache of the active ones, additions and updates, and reverts and restores.

A memory that says the same as another one is not added, and a scope may hold many: they are read once, and then only
the changes in their logs.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import Literal, TypeVar

from roomlore.core.audience import NEVER, EvidenceRoom, Viewer, covers, evidence_of, may_see
from roomlore.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from roomlore.core.evolution.audience import may_replace
from roomlore.core.memory import versions
from roomlore.core.memory.log import is_redacted, reverted, touched
from roomlore.core.memory.memory import Action, Change, Memory, MemoryKind, MemoryStatus, Scope, Source
from roomlore.core.memory.versions import (
    Additions,
    InForce,
    KnownTo,
    Lineage,
    Remembered,
    heard_there,
    said_in,
    said_there,
    senders,
)
from roomlore.core.memory.writing import (
    MAX_BATCH,
    Edit,
    NewMemory,
    check_reason,
    check_strength,
    checked,
    checked_edit,
    refuse_unknown,
)
from roomlore.core.models import Origin
from roomlore.ports.audience import view_for
from roomlore.ports.shared import Backends, Service
from roomlore.storage import Storage, UnitOfWork

_ALL = 2**31 - 1
_FOLLOWED = 2_000
_OVERHEAD = 10


_Name = tuple[str, str, MemoryKind, datetime]
"""The key includes the creation time of the scope: a forgotten scope may be created again."""
T = TypeVar("T")
OnConflict = Literal["raise", "report"]
Kinds = Mapping[MemoryKind, InForce]


class InForceCache:
    """The active memories of all tenants; at most about `size`, those of the scopes written to last."""

    def __init__(self, *, storage: Storage, size: int = 20_000) -> None:
        self._storage = storage
        self._size = size
        self._kept: OrderedDict[_Name, InForce] = OrderedDict()

    async def read(self, *, tenant: str, scope: str, kind: MemoryKind) -> InForce:
        """Return a copy, for the caller to change."""
        async with self._storage.reading(tenant) as work:
            stored = await work.memories.scope(scope=scope)
            if stored is None:
                return InForce(kind)
            name = (tenant, scope, kind, stored.created_at)
            in_force = self._kept.get(name)
            if in_force is None or stored.changes - in_force.number > _FOLLOWED:
                in_force = await self._load(work, stored, kind)
            await catch_up(work, in_force, stored)
        self._keep(name, in_force)
        return in_force.copy()

    async def _load(self, work: UnitOfWork, stored: Scope, kind: MemoryKind) -> InForce:
        """Load the scope. Changes that come in meanwhile are applied again although they are included, which does no
        harm."""
        memories = await work.memories.page(scopes=[stored.scope], kinds=[kind], status=MemoryStatus.ACTIVE, limit=_ALL)
        return InForce(kind, stored.changes, memories, created_at=stored.created_at)

    def _keep(self, name: _Name, in_force: InForce) -> None:
        newer = self._kept.get(name)
        if newer is None or newer.number <= in_force.number:
            self._kept[name] = in_force
        self._kept.move_to_end(name)
        while len(self._kept) > 1 and sum(len(held) + _OVERHEAD for held in self._kept.values()) > self._size:
            self._kept.popitem(last=False)


async def catch_up(work: UnitOfWork, in_force: InForce, stored: Scope) -> None:
    """Apply the changes up to the scope's last one. Raise `Conflict` if that is another scope of the same name: the one
    that was read is forgotten."""
    if in_force.created_at not in (None, stored.created_at):
        raise Conflict("memories_forgotten", scope=f"{stored.scope!r:.80}")
    missed = stored.changes - in_force.number
    if missed > 0:
        in_force.follow(await work.memories.changes(scope=stored.scope, after=in_force.number, limit=missed))


async def _locked(work: UnitOfWork, scope: str, before: Kinds, now: datetime) -> Scope:
    """Lock the scope and return it. Raise `Conflict` if it is of a room that is being deleted: it would go with it."""
    stored = await work.memories.lock(scope=scope, now=now)
    kind, _, room_id = scope.partition(":")
    if kind == "group":
        await work.rooms.check_not_deleted(room_id=room_id)
    for in_force in before.values():
        await catch_up(work, in_force, stored)
    return stored


@dataclass(frozen=True, slots=True)
class _Batch:
    """The memories to add, by scope, with the index of each in the caller's list."""

    by_scope: Mapping[str, Sequence[tuple[int, NewMemory]]]
    size: int

    @classmethod
    def of(cls, memories: Sequence[NewMemory], zone: tzinfo) -> "_Batch":
        if len(memories) > MAX_BATCH:
            raise InvalidInput("memory_batch_too_large", count=len(memories), most=MAX_BATCH)
        by_scope: dict[str, list[tuple[int, NewMemory]]] = {}
        for place, memory in enumerate(memories):
            if not isinstance(memory, NewMemory):
                raise InvalidInput("memory_item_invalid", place=place, value=f"{memory!r:.60}")
            good = checked(memory, zone)
            by_scope.setdefault(good.scope, []).append((place, good))
        return cls({scope: by_scope[scope] for scope in sorted(by_scope)}, len(memories))


class MemoryWriter(Service):
    """Write the memories of one tenant. `zone`: in which days begin and end."""

    def __init__(self, backends: Backends, *, tenant: str, cache: InForceCache, zone: tzinfo = UTC) -> None:
        super().__init__(backends)
        self.zone = zone
        self._tenant = tenant
        self._cache = cache

    async def add(
        self, memories: Sequence[NewMemory], *, on_conflict: OnConflict, refresh: bool = False, dry_run: bool = False
    ) -> list[Remembered]:
        """Return the outcomes, in the order given; everything in one transaction. With `dry_run` nothing is written."""
        batch = _Batch.of(memories, self.zone)

        async def once() -> list[Remembered]:
            kinds = {scope: sorted({memory.kind for _, memory in new}) for scope, new in batch.by_scope.items()}
            before = {scope: await self._read(scope, its) for scope, its in kinds.items()}
            if dry_run:
                async with self._storage.reading(self._tenant) as work:
                    return await self._decide(work, batch, before, refresh=refresh, dry_run=True)
            async with self._storage.writing(self._tenant) as work:
                done = await self._decide(work, batch, before, refresh=refresh, dry_run=False)
                _check(done, on_conflict)
                return done

        return await retried(once)

    async def update(
        self, memory_id: str, edit: Edit, *, expected: str | None, reason: str, viewer: Viewer | None = None
    ) -> Memory:
        wanted, why = checked_edit(edit, self.zone), check_reason(reason)
        return await retried(lambda: self._update(memory_id, wanted, expected, why, viewer))

    async def delete(self, memory_id: str, *, expected: str | None, reason: str) -> Memory:
        why = check_reason(reason)
        return await retried(lambda: self._delete(memory_id, expected, why))

    async def check_cited(self, sources: Sequence[Source], viewer: Viewer) -> None:
        """Raise `InvalidInput` for messages that the viewer may not see, as for those that are not there."""
        async with self._storage.reading(self._tenant) as work:
            origins = await self._origins(work, sources)
            rooms = {source.room_id for source in origins}
            view = await view_for(work, viewer=viewer, rooms=rooms, now=self._clock.now())
        seen = {
            source
            for source, was in origins.items()
            if covers(view.windows.get(source.room_id, NEVER), was.first, was.last)
        }
        refuse_unknown(sources, seen)

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
                await _locked(work, scope, before[scope], now)
            number = max(memory.number for memory in before[scope].values())
            origins = await self._origins(work, (source for _, memory in memories for source in memory.sources))
            memories = [(place, _with_evidence(memory, origins)) for place, memory in memories]
            known = await self._known(work, memories, refresh=refresh)
            additions = Additions(
                before[scope],
                known,
                now=now,
                new_id=self._ids.new,
                number=number,
                known_to=await self._known_to(work, [memory for _, memory in memories], before[scope], now),
                refresh=refresh,
            )
            done |= {place: additions.add(memory) for place, memory in memories}
            refuse_unknown((source for change in additions.changes for source in change.memory.sources), origins)
            if not dry_run:
                await work.memories.apply(scope=scope, changes=additions.changes)
        return [done[place] for place in range(batch.size)]

    async def _known_to(
        self, work: UnitOfWork, memories: Sequence[NewMemory], before: Mapping[MemoryKind, InForce], now: datetime
    ) -> KnownTo:
        """Return the check if those who heard a new memory may know one that says the same in other rooms."""
        elsewhere, rooms = list[Memory](), set[str]()
        for new in memories:
            same = before[new.kind].all_saying(new.statement)
            if not any(said_there(memory, new.evidence) for memory in same):
                elsewhere += same
                rooms |= {room.room_id for room in new.evidence} if same else set()
        views = {
            room_id: await view_for(work, viewer=Viewer("room", room_id), memories=elsewhere, now=now)
            for room_id in sorted(rooms)
        }

        def known_to(memory: Memory, evidence: Sequence[EvidenceRoom]) -> bool:
            seen = [views.get(room.room_id) for room in evidence]
            return said_there(memory, evidence) or (
                bool(seen) and all(view is not None and may_see(memory, view) for view in seen)
            )

        return known_to

    async def _known(
        self, work: UnitOfWork, memories: Sequence[tuple[int, NewMemory]], *, refresh: bool
    ) -> dict[str, Lineage]:
        """Return the lineages of the requested ids; their newest versions are read if that may matter."""
        given = {memory.memory_id: memory for _, memory in memories if memory.memory_id is not None}
        lineages = await self._lineages(work, list(given))
        moved = [name for name, lineage in lineages.items() if refresh and not lineage.says(given[name])]
        return lineages | {name: await self._with_newest(work, lineages[name]) for name in moved}

    async def _read(self, scope: str, kinds: Iterable[MemoryKind]) -> dict[MemoryKind, InForce]:
        return {kind: await self._cache.read(tenant=self._tenant, scope=scope, kind=kind) for kind in kinds}

    async def _update(
        self, memory_id: str, edit: Edit, expected: str | None, reason: str, viewer: Viewer | None
    ) -> Memory:
        head = await self.head(memory_id)
        before = await self._read(head.scope, [head.kind]) if edit.statement is not None else {}
        now = self._clock.now()
        async with self._storage.writing(self._tenant) as work:
            scope = await _locked(work, head.scope, before, now)
            lineage = await self._with_newest(work, (await self._lineages(work, [memory_id]))[memory_id])
            head = _in_force(lineage, expected)
            origins = await self._origins(work, edit.sources or ())
            refuse_unknown((room for room in edit.sources or () if room not in head.sources), origins)
            wanted = versions.said_anew(head, versions.edited(head, edit, origins), viewer, now)
            if wanted == head:
                return head
            for in_force in before.values():
                _check_unique(wanted, in_force, now)
            if not await self._is_for_the_same(work, head, wanted):
                change = versions.beside(
                    head, wanted, memory_id=self._ids.new(), number=scope.changes + 1, reason=reason, now=now
                )
                await work.memories.apply(scope=head.scope, changes=[change])
                return change.memory
            change = versions.update(
                head,
                wanted,
                memory_id=self._ids.new(),
                version=lineage.newest + 1,
                number=scope.changes + 1,
                reason=reason,
                now=now,
            )
            await work.memories.apply(scope=head.scope, changes=[change])
            return change.memory

    async def _is_for_the_same(self, work: UnitOfWork, head: Memory, wanted: Memory) -> bool:
        """Return True if whoever may see the version in force may see the new evidence too."""
        new = [room for room in wanted.evidence if room not in head.evidence]
        if not new:
            return True
        names = {room.room_id for room in (*head.evidence, *new)}
        people = await work.rooms.people(room_ids=names)
        return all(may_replace(head, room, people[room.room_id], people) for room in new)

    async def _origins(self, work: UnitOfWork, sources: Iterable[Source]) -> dict[Source, Origin]:
        """Return when and by whom these messages were sent, without those that do not exist. A deleted one exists: its
        id stays taken."""
        origins, by_room = dict[Source, Origin](), defaultdict[str, list[str]](list)
        for source in dict.fromkeys(sources):
            by_room[source.room_id].append(source.message_id)
        for room_id, ids in by_room.items():
            known = await work.messages.origins(room_id=room_id, message_ids=ids)
            origins |= {Source(room_id, message_id): was for message_id, was in known.items()}
        return origins

    async def _delete(self, memory_id: str, expected: str | None, reason: str) -> Memory:
        now, scope_name = self._clock.now(), (await self.head(memory_id)).scope
        async with self._storage.writing(self._tenant) as work:
            scope = await _locked(work, scope_name, {}, now)
            head = (await work.memories.heads(memory_ids=[memory_id]))[memory_id]
            versions.expect(head, expected)
            if head.status is not MemoryStatus.ACTIVE:
                return head
            change = versions.deletion(head, number=scope.changes + 1, reason=reason, now=now)
            await work.memories.apply(scope=head.scope, changes=[change])
            return change.memory

    async def head(self, memory_id: str) -> Memory:
        """Return the active version, or the last one. Raise `NotFound`."""
        async with self._storage.reading(self._tenant) as work:
            heads = await work.memories.heads(memory_ids=[memory_id])
        if memory_id not in heads:
            raise NotFound("memory_unknown", memory=f"{memory_id!r:.80}")
        return heads[memory_id]

    async def _lineages(self, work: UnitOfWork, memory_ids: Sequence[str]) -> dict[str, Lineage]:
        named = {one.memory_id: one for one in await work.memories.by_id(memory_ids=memory_ids)}
        heads = await work.memories.heads(memory_ids=list(named))
        return {memory_id: Lineage(named[memory_id], head, head.version) for memory_id, head in heads.items()}

    async def _with_newest(self, work: UnitOfWork, lineage: Lineage) -> Lineage:
        """Add the newest version: an earlier one may have been restored and be the head."""
        versions = await work.memories.lineage(lineage_id=lineage.head.lineage_id)
        return replace(lineage, newest=max(memory.version for memory in versions))


def _with_evidence(new: NewMemory, origins: Mapping[Source, Origin]) -> NewMemory:
    """Return the memory with the rooms of its sources among its evidence, and their senders among those who said it."""
    return replace(
        new,
        evidence=evidence_of(said_in(new.sources, origins), new.evidence),
        said_by=senders(new.sources, origins, known=new.said_by),
    )


def _in_force(lineage: Lineage, expected: str | None) -> Memory:
    versions.expect(lineage.head, expected)
    if lineage.head.status is not MemoryStatus.ACTIVE:
        raise Conflict("memory_deleted_add", memory=f"{lineage.head.memory_id!r:.80}")
    return lineage.head


def _check(done: Sequence[Remembered], on_conflict: OnConflict) -> None:
    clash = next((outcome for outcome in done if outcome.outcome == "conflict"), None)
    if clash is not None and on_conflict == "raise":
        raise Conflict("memory_exists", memory=f"{clash.memory.memory_id!r:.80}")


def _check_unique(wanted: Memory, in_force: InForce, now: datetime) -> None:
    def known_to(memory: Memory, evidence: Sequence[EvidenceRoom]) -> bool:
        return memory.holds(now) and heard_there(memory, evidence)

    other = in_force.saying(wanted.statement, wanted.evidence, known_to=known_to, beside=wanted.lineage_id)
    if other is not None:
        raise Conflict("memory_repeated", memory=f"{other.memory_id!r:.80}")


async def retried(work: Callable[[], Awaitable[T]]) -> T:
    """Run the work again with current data if another writer was faster: an id of another scope, say, that no lock
    held."""
    try:
        return await work()
    except Conflict:
        return await work()


class Reviser(Service):
    """Revise the memories of one tenant."""

    def __init__(self, backends: Backends, *, tenant: str, cache: InForceCache) -> None:
        super().__init__(backends)
        self._tenant = tenant
        self._cache = cache

    async def revert(self, evolution_id: str, reason: str) -> list[Change]:
        """Undo an evolution; return the changes that do so, none if there is nothing to undo.

        Raise `Conflict` if something else changed the same memories since, or says the same; `NotFound`.
        """
        why = check_reason(reason)
        async with self._storage.reading(self._tenant) as work:
            own = await work.memories.changes_of_evolution(evolution_id=evolution_id)
            known = own or await work.memories.evolutions_by_id(evolution_ids=[evolution_id])
        if not known:
            raise NotFound("evolution_unknown", evolution=f"{evolution_id!r:.80}")
        return await retried(lambda: self._revert(own, why)) if own else []

    async def restore(self, memory_id: str, reason: str) -> Memory:
        """Make a version active again, in place of the active one of its lineage.

        Raise `Conflict` if another memory of the scope says the same, `InvalidInput` if its text was redacted,
        `NotFound`.
        """
        why = check_reason(reason)
        return await retried(lambda: self._restore(memory_id, why))

    async def strength(self, memory_id: str, value: float, reason: str) -> Memory:
        """Set the strength of the active version, as of now. Raise `Conflict` if it was deleted, `NotFound`."""
        strong, why = check_strength(value), check_reason(reason)

        def strengthened(head: Memory, now: datetime) -> Memory:
            return replace(head, strength=strong, supported_at=now)

        return await retried(lambda: self._touch(memory_id, Action.STRENGTH, strengthened, reason=why))

    async def share(self, memory_id: str, target: str, *, by: str | None, ends: bool, reason: str) -> Memory:
        """Share the active version with a room or everyone, or end that. `by`: the person who asks; None is an
        administrator. Raise `Forbidden` if it is not about that person, `Conflict` if it was deleted, `NotFound`."""
        why = check_reason(reason)

        def shared(head: Memory, _: datetime) -> Memory:
            others = tuple(person for person in head.shared_with if person != target)
            wanted = others if ends else (*others, target)
            return head if set(wanted) == set(head.shared_with) else replace(head, shared_with=wanted)

        return await retried(lambda: self._touch(memory_id, Action.SHARE, shared, reason=why, by=by))

    async def _revert(self, own: Sequence[Change], reason: str) -> list[Change]:
        scope = own[0].scope
        before, now = await self._read(scope, (change.memory.kind for change in own)), self._clock.now()
        async with self._storage.writing(self._tenant) as work:
            number = (await _locked(work, scope, before, now)).changes
            logged = await work.memories.changes_of_memories(memory_ids=touched(own))
            versions = await self._with_heads(work, touched(own))
            made = reverted(own, logged=logged, versions=versions, number=number, reason=reason, now=now)
            _check_all_unique(made, before)
            await work.memories.apply(scope=scope, changes=made)
            return made

    async def _restore(self, memory_id: str, reason: str) -> Memory:
        version = await self._version(memory_id)
        before, now = await self._read(version.scope, [version.kind]), self._clock.now()
        async with self._storage.writing(self._tenant) as work:
            number = (await _locked(work, version.scope, before, now)).changes
            versions = await self._with_heads(work, [memory_id])
            head = next((candidate for candidate in versions if candidate.status is MemoryStatus.ACTIVE), None)
            wanted = next(candidate for candidate in versions if candidate.memory_id == memory_id)
            if wanted == head:
                return wanted
            logged = await work.memories.changes_of_memories(memory_ids=[memory_id])
            change = _restoration(_in_force_again(wanted, logged, now), head, number=number + 1, reason=reason, now=now)
            _check_all_unique([change], before)
            await work.memories.apply(scope=version.scope, changes=[change])
            return change.memory

    async def _touch(
        self,
        memory_id: str,
        action: Action,
        make: Callable[[Memory, datetime], Memory],
        *,
        reason: str,
        by: str | None = None,
    ) -> Memory:
        """Put what `make` returns in place of the active version, unless it is the same."""
        scope, now = (await self._version(memory_id)).scope, self._clock.now()
        if by is not None and scope != f"user:{by}":
            raise Forbidden("share_not_permitted")
        async with self._storage.writing(self._tenant) as work:
            number = (await _locked(work, scope, {}, now)).changes
            head = (await work.memories.heads(memory_ids=[memory_id]))[memory_id]
            if head.status is not MemoryStatus.ACTIVE:
                raise Conflict("memory_deleted_restore", memory=f"{head.memory_id!r:.80}")
            memory = make(head, now)
            if memory is head:
                return head
            change = Change(
                number=number + 1,
                scope=scope,
                action=action,
                memory=memory,
                old_statement=head.statement,
                reason=reason,
                at=now,
            )
            await work.memories.apply(scope=scope, changes=[change])
            return memory

    async def _version(self, memory_id: str) -> Memory:
        async with self._storage.reading(self._tenant) as work:
            versions_there = await work.memories.by_id(memory_ids=[memory_id])
        if not versions_there:
            raise NotFound("memory_unknown", memory=f"{memory_id!r:.80}")
        return versions_there[0]

    async def _with_heads(self, work: UnitOfWork, memory_ids: Sequence[str]) -> list[Memory]:
        """Return these versions and the heads of their lineages, if those were not merged into others: they include the
        active version of each lineage, however many versions it has."""
        stored = await work.memories.by_id(memory_ids=memory_ids)
        lineages = {memory.lineage_id for memory in stored}
        heads = await work.memories.heads(memory_ids=memory_ids)
        own = [head for head in heads.values() if head.lineage_id in lineages]
        return list({memory.memory_id: memory for memory in (*stored, *own)}.values())

    async def _read(self, scope: str, kinds: Iterable[MemoryKind]) -> Kinds:
        return {
            kind: await self._cache.read(tenant=self._tenant, scope=scope, kind=kind) for kind in sorted(set(kinds))
        }


def _in_force_again(version: Memory, logged: Sequence[Change], now: datetime) -> Memory:
    """Return the version as it was when it was last active, or after it was redacted: a deletion may have changed its
    change summary. The request to restore it supports it."""
    if is_redacted(version):
        raise InvalidInput("memory_redacted", memory=f"{version.memory_id!r:.80}")
    last = [
        change for change in logged if change.memory.status is MemoryStatus.ACTIVE or change.action is Action.REDACT
    ]
    summary = last[-1].memory.change_summary if last else version.change_summary
    return replace(
        version,
        status=MemoryStatus.ACTIVE,
        change_summary=summary,
        doubtful="",
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


def _check_all_unique(changes: Sequence[Change], before: Kinds) -> None:
    """Raise `Conflict` if a memory that becomes active says the same as an existing one that those who heard it may
    know."""
    ours = {name for change in changes for name in (*change.closes, change.memory.memory_id)}
    for new in (change.memory for change in changes if change.memory.status is MemoryStatus.ACTIVE):
        saying = before[new.kind].all_saying(new.statement)
        same = {memory.memory_id for memory in saying if heard_there(memory, new.evidence)}
        if new.memory_id not in same and same - ours:
            raise Conflict("memory_repeated", memory=f"{min(same - ours)!r:.80}")
