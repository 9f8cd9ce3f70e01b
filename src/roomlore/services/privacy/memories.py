"""What is remembered, without a person: every entry of the log and every version, rewritten in place."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from roomlore.core.memory.models import Action, Change, Evolution, Memory, MemoryStatus, Scope, Source
from roomlore.core.models import Role
from roomlore.core.privacy.memories import Redaction, record_without
from roomlore.ports.coordination import Clock, Ids
from roomlore.ports.storage import Storage, UnitOfWork
from roomlore.ports.vectors import MEMORIES
from roomlore.services.privacy.person import Person, goes
from roomlore.services.privacy.tally import Tally
from roomlore.services.privacy.vectors import VectorsGone

_PAGE = 500
_AT_ONCE = 100
_WHY = "The person whose words this rested on was forgotten."
_ACTOR = "roomlore"
_VECTORS_LEFT = "Vectors of memories could not be removed; forget again when their store answers."


class MemoriesWithout:
    """Entries of the log go first, from the last one back, and versions after them: so whoever goes on after a kill
    still finds what an earlier statement said."""

    def __init__(self, *, storage: Storage, vectors: VectorsGone, clock: Clock, ids: Ids) -> None:
        self._storage = storage
        self._vectors = vectors
        self._clock = clock
        self._ids = ids

    async def rewrite(self, person: Person, tally: Tally) -> None:
        for scope in await self._scopes(person.tenant):
            await self._rewrite_log(person, scope, tally)
        await self._rewrite_versions(person, tally)
        await self._rewrite_records(person, tally)
        for scope in await self._scopes(person.tenant):
            if person.owns(scope.scope):
                await self._rename(person, scope.scope, tally)

    async def _scopes(self, tenant: str) -> list[Scope]:
        scopes: list[Scope] = []
        async with self._storage.reading() as work:
            while page := await work.memory_log.scopes(
                tenant=tenant, after=scopes[-1].scope if scopes else None, limit=_PAGE
            ):
                scopes += page
        return scopes

    async def _rewrite_log(self, person: Person, scope: Scope, tally: Tally) -> None:
        statements, found = await self._statements(person, scope)
        if not found:
            return
        for start in range((scope.changes - 1) // _PAGE * _PAGE, -1, -_PAGE):
            async with self._storage.reading() as work:
                page = await work.memory_log.changes(tenant=person.tenant, scope=scope.scope, after=start, limit=_PAGE)
                redaction = await self._redaction(work, person, scope.scope, [one.memory for one in page])
            rewritten = [redaction.entry(change, statements) for change in page]
            changed = [new for new, old in zip(rewritten, page, strict=True) if new != old]
            tally.places["memory_changes"] += len(changed)
            if changed and not tally.dry:
                await self._write_entries(person.tenant, scope.scope, changed[::-1])

    async def _statements(self, person: Person, scope: Scope) -> tuple[dict[str, str], bool]:
        """What statements become, and whether anything of the log changes at all."""
        statements: dict[str, str] = {}
        found = False
        for start in range(0, scope.changes, _PAGE):
            async with self._storage.reading() as work:
                page = await work.memory_log.changes(tenant=person.tenant, scope=scope.scope, after=start, limit=_PAGE)
                redaction = await self._redaction(work, person, scope.scope, [one.memory for one in page])
            statements |= redaction.statements(change.memory for change in page)
            found = found or any(redaction.entry(change, statements) != change for change in page)
        return statements, found

    async def _write_entries(self, tenant: str, scope: str, changes: Sequence[Change]) -> None:
        for start in range(0, len(changes), _AT_ONCE):
            async with self._storage.writing() as work:
                await work.memory_log.lock(tenant=tenant, scope=scope, now=self._clock.now())
                await work.rewriting.rewrite_changes(
                    tenant=tenant, scope=scope, changes=changes[start : start + _AT_ONCE]
                )

    async def _rewrite_versions(self, person: Person, tally: Tally) -> None:
        after, alike = 0, 0
        while True:
            async with self._storage.reading() as work:
                page = await work.rewriting.versions(tenant=person.tenant, after=after, limit=_PAGE)
                told, same = await self._telling(work, person, page)
            alike += same
            for scope, versions in told.items():
                tally.places["memories"] += len(versions)
                for start in range(0, len(versions), _AT_ONCE):
                    await self._rewrite_some(person, scope, versions[start : start + _AT_ONCE], tally)
            if len(page) < _PAGE:
                tally.same_words["memories"] = alike
                return
            after = page[-1][0]

    async def _telling(
        self, work: UnitOfWork, person: Person, page: Sequence[tuple[int, Memory]]
    ) -> tuple[dict[str, list[tuple[str, int]]], int]:
        """Those that have to be rewritten, by scope, with their row numbers; and how many in force have the same words
        afterwards."""
        told: dict[str, list[tuple[str, int]]] = {}
        alike = 0
        for scope in dict.fromkeys(memory.scope for _, memory in page):
            here = [(number, memory) for number, memory in page if memory.scope == scope]
            redaction = await self._redaction(work, person, scope, [memory for _, memory in here])
            left = [(redaction.version(memory), number, memory) for number, memory in here]
            alike += sum(one.status is MemoryStatus.ACTIVE and person.words.repeated(one.statement) for one, *_ in left)
            changed = [(memory.memory_id, number) for version, number, memory in left if version != memory]
            if changed:
                told[scope] = changed
        return told, alike

    async def _rewrite_some(
        self, person: Person, scope: str, versions: Sequence[tuple[str, int]], tally: Tally
    ) -> None:
        ids = [memory_id for memory_id, _ in versions]
        async with self._storage.reading() as work:
            before = await work.memories.by_id(tenant=person.tenant, memory_ids=ids)
            redaction = await self._redaction(work, person, scope, before)
        self._note(redaction, before, tally)
        if tally.dry:
            return
        async with self._storage.writing() as work:
            stored = await work.memory_log.lock(tenant=person.tenant, scope=scope, now=self._clock.now())
            before = await work.memories.by_id(tenant=person.tenant, memory_ids=ids)
            after = {one.memory_id: redaction.version(one) for one in before}
            await work.rewriting.rewrite_versions(tenant=person.tenant, scope=scope, memories=list(after.values()))
            changes = self._changes(stored, redaction, [one for one in before if one.status is MemoryStatus.ACTIVE])
            await work.memory_log.apply(tenant=person.tenant, scope=scope, changes=changes)
        numbers = [number for _, number in versions]
        if not await self._vectors.remove(collection=MEMORIES, tenant=person.tenant, scope=scope, numbers=numbers):
            tally.leave("vectors of memories", len(numbers), _VECTORS_LEFT)

    def _note(self, redaction: Redaction, before: Iterable[Memory], tally: Tally) -> None:
        for memory in before:
            if memory.status is MemoryStatus.ACTIVE:
                alone = redaction.rests_on_them_alone(memory)
                (tally.retired if alone else tally.rewritten)[memory.memory_id] = None

    def _changes(self, scope: Scope, redaction: Redaction, active: Sequence[Memory]) -> list[Change]:
        """What was done to memories in force, told by the log too, so that whoever follows it hears of it."""
        now = self._clock.now()
        return [
            _change(redaction, memory, scope=scope.scope, number=number, now=now)
            for number, memory in enumerate(active, start=scope.changes + 1)
        ]

    async def _redaction(self, work: UnitOfWork, person: Person, scope: str, memories: Sequence[Memory]) -> Redaction:
        room_id = _room_of(scope)
        whole = person.owns(scope) and (room_id is None or await goes(work, person, room_id))
        redaction = Redaction(
            person.traces, person.said_in, whole=whole, shared=room_id in person.said, edited_at=person.edited_at
        )
        for gone in {source.room_id for memory in memories for source in memory.sources} & person.removed:
            await goes(work, person, gone)
        if redaction.whole:
            return redaction
        redaction = replace(redaction, deleted=await _deleted(work, person, scope, memories))
        theirs = [memory for memory in memories if redaction.theirs(memory)]
        sources = {source for memory in theirs for source in memory.sources if not redaction.supports(source)}
        return replace(redaction, others=await _of_others(work, person, sources)) if sources else redaction

    async def _rewrite_records(self, person: Person, tally: Tally) -> None:
        after = ""
        while True:
            async with self._storage.reading() as work:
                page = await work.rewriting.evolutions(tenant=person.tenant, after=after, limit=_PAGE)
                heard = [record.evolution_id for record in page if await _heard(work, person, record)]
                for room_id in {record.room_id for record in page} & person.removed:
                    await goes(work, person, room_id)
            changed = []
            for record in page:
                gone = record.room_id in person.removed
                touched = gone or record.evolution_id in heard or person.owns(record.scope)
                new = record_without(record, person.traces, touched=touched)
                new = replace(new, room_id="") if gone or person.traces.is_named(record.room_id) else new
                changed += [new] if new != record else []
            tally.places["evolutions"] += len(changed)
            if changed and not tally.dry:
                async with self._storage.writing() as work:
                    for record in changed:
                        await work.rewriting.rewrite_evolution(tenant=person.tenant, evolution=record)
            if len(page) < _PAGE:
                return
            after = page[-1].evolution_id

    async def _rename(self, person: Person, scope: str, tally: Tally) -> None:
        """Last, and only where no vector lies under the old name any more, and the room still goes."""
        tally.places["memory_scopes"] += 1
        if tally.dry:
            return
        numbers = await self._numbers(person.tenant, scope)
        if not await self._vectors.remove(collection=MEMORIES, tenant=person.tenant, scope=scope, numbers=numbers):
            tally.leave("memory_scopes", 1, _VECTORS_LEFT)
            return
        async with self._storage.writing() as work:
            stored = await work.memory_log.lock(tenant=person.tenant, scope=scope, now=self._clock.now())
            room_id = _room_of(scope)
            if room_id is not None and not await goes(work, person, room_id):
                return
            if stored.active:
                tally.leave("memory_scopes", 1, "Something was remembered there meanwhile; forget again.")
                return
            await work.people.drop_vector_scope(tenant=person.tenant, scope=scope)
            name = f"{scope.partition(':')[0]}:forgotten-{self._ids.new()}"
            await work.rewriting.rename_scope(tenant=person.tenant, scope=scope, name=name)

    async def _numbers(self, tenant: str, scope: str) -> list[int]:
        numbers: list[int] = []
        after = 0
        while True:
            async with self._storage.reading() as work:
                page = await work.rewriting.versions(tenant=tenant, after=after, limit=_PAGE)
            numbers += [number for number, memory in page if memory.scope == scope]
            if len(page) < _PAGE:
                return numbers
            after = page[-1][0]


def _room_of(scope: str) -> str | None:
    """Return the room of a group's scope, None for any other scope."""
    kind, _, name = scope.partition(":")
    return name if kind == "group" else None


def _change(redaction: Redaction, memory: Memory, *, scope: str, number: int, now: datetime) -> Change:
    """A retired memory is deleted, one that stays is redacted."""
    new, alone = redaction.version(memory), redaction.rests_on_them_alone(memory)
    return Change(
        number=number,
        scope=scope,
        action=Action.DELETE if alone else Action.REDACT,
        memory=replace(new, status=MemoryStatus.DEPRECATED) if alone else new,
        old_statement=new.statement,
        reason="" if redaction.whole else _WHY,
        actor=_ACTOR,
        at=now,
    )


async def _heard(work: UnitOfWork, person: Person, record: Evolution) -> bool:
    """Whether it read what the person said, or something that was deleted since and may have been theirs."""
    here, first, last = {"tenant": person.tenant, "room_id": record.room_id}, record.first_arrival, record.last_arrival
    if record.room_id not in person.said or person.in_room(record.room_id).within(first, last):
        return record.room_id in person.said
    there = await work.messages.count(**here, after=first - 1) - await work.messages.count(**here, after=last)
    return there < last - first + 1


async def _deleted(work: UnitOfWork, person: Person, scope: str, memories: Iterable[Memory]) -> frozenset[Source]:
    """Sources that were deleted and bear the person's id, or lie in a room where they spoke: nobody knows any more
    whose these were. What is known of somebody else rests on what that one said."""
    of_another = scope.startswith("user:")
    asked: dict[str, set[str]] = {}
    for source in {source for memory in memories for source in memory.sources}:
        doubtful = not of_another and source.room_id in person.said
        if person.said_in(source) is None and (doubtful or person.traces.named_in(source.message_id)):
            asked.setdefault(source.room_id, set()).add(source.message_id)
    found: set[Source] = set()
    for room_id, ids in asked.items():
        prints = await work.messages.fingerprints(tenant=person.tenant, room_id=room_id, message_ids=sorted(ids))
        found |= {Source(room_id, message_id) for message_id, one in prints.items() if not one}
    return frozenset(found)


async def _of_others(work: UnitOfWork, person: Person, sources: Iterable[Source]) -> frozenset[Source]:
    """Those that are messages of other people and are there still."""
    by_room: dict[str, list[str]] = {}
    for source in sources:
        by_room.setdefault(source.room_id, []).append(source.message_id)
    found: set[Source] = set()
    for room_id, ids in by_room.items():
        entries = await work.messages.by_id(tenant=person.tenant, room_id=room_id, message_ids=ids)
        said = (entry.message for entry in entries)
        found |= {Source(room_id, one.id) for one in said if one.role is Role.USER and one.sender_id != person.user_id}
    return frozenset(found)
