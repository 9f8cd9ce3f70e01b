"""Remove a room from memories elsewhere, and from the records of what made them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from roomlore.core.deletion import RoomRedaction
from roomlore.core.memory.memory import Change, Memory, MemoryStatus
from roomlore.ports.paging import evolution_pages
from roomlore.ports.shared import Service
from roomlore.services.privacy.forget_memories import redacted
from roomlore.services.privacy.forget_messages import ForgetTally
from roomlore.storage import UnitOfWork

_PAGE = 500
_WHY = "The room that this rested on was deleted."


@dataclass(frozen=True, slots=True)
class GoneRoom:
    """A room that is being deleted."""

    tenant: str
    room_id: str
    redaction: RoomRedaction

    @property
    def group(self) -> str:
        """The scope of the room's own memory, which goes as a whole."""
        return f"group:{self.room_id}"


_Changed = tuple[Sequence[Change], Sequence[tuple[Memory, Memory]]]


class RoomMemories(Service):
    """Remove a room from the memories of other scopes: the log and the versions of a scope in one transaction, so that
    they agree whenever the process ends. The indexes follow by the outbox."""

    async def rewrite(self, room: GoneRoom, tally: ForgetTally) -> None:
        async with self._storage.reading(room.tenant) as work:
            scopes = await work.maintenance.scopes_naming(room_id=room.room_id)
        for scope in scopes:
            if scope != room.group:
                await self._rewrite_scope(room, scope, tally)
        await self._rewrite_records(room, tally)

    async def _rewrite_scope(self, room: GoneRoom, scope: str, tally: ForgetTally) -> None:
        async with self._storage.reading(room.tenant) as work:
            entries, versions = await _changed(work, room.redaction, scope)
        if not (entries or versions):
            return
        if not tally.dry:
            async with self._storage.writing(room.tenant) as work:
                now = self._clock.now()
                stored = await work.memories.lock(scope=scope, now=now)
                entries, versions = await _changed(work, room.redaction, scope)
                await work.maintenance.rewrite_changes(scope=scope, changes=entries)
                await work.maintenance.rewrite_versions(scope=scope, memories=[new for _, new in versions])
                active = [pair for pair in versions if pair[0].status is MemoryStatus.ACTIVE]
                changes = [
                    redacted(new, alone=room.redaction.rests_on_it_alone(old), number=number, reason=_WHY, now=now)
                    for number, (old, new) in enumerate(active, start=stored.changes + 1)
                ]
                await work.memories.apply(scope=scope, changes=changes)
        tally.places.update({"memory_changes": len(entries), "memories": len(versions)})
        for old, _ in versions:
            if old.status is MemoryStatus.ACTIVE:
                alone = room.redaction.rests_on_it_alone(old)
                (tally.retired if alone else tally.rewritten)[old.memory_id] = None

    async def _rewrite_records(self, room: GoneRoom, tally: ForgetTally) -> None:
        async for page in evolution_pages(self._storage, room.tenant):
            its = [record.evolution_id for record in page if record.room_id == room.room_id]
            tally.places["evolutions"] += len(its)
            if its and not tally.dry:
                async with self._storage.writing(room.tenant) as work:
                    for record in await work.maintenance.lock_evolutions(evolution_ids=its):
                        await work.maintenance.rewrite_evolution(evolution=room.redaction.record(record))


async def _changed(work: UnitOfWork, redaction: RoomRedaction, scope: str) -> _Changed:
    """Return what changes in a scope: entries of its log as they will be, and versions, old and new."""
    log: list[Change] = []
    while page := await work.memories.changes(scope=scope, after=len(log), limit=_PAGE):
        log += page
    ids = list(dict.fromkeys(change.memory.memory_id for change in log))
    versions = await work.memories.by_id(memory_ids=ids)
    return await asyncio.to_thread(_without, redaction, log, versions)


def _without(redaction: RoomRedaction, log: Sequence[Change], versions: Sequence[Memory]) -> _Changed:
    statements = redaction.statements(change.memory for change in log)
    entries = [redaction.entry(change, statements) for change in log]
    pairs = [(version, redaction.version(version)) for version in versions]
    return (
        [new for old, new in zip(log, entries, strict=True) if new != old],
        [(old, new) for old, new in pairs if new != old],
    )
