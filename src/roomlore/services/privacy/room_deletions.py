"""Deleting a room, as work that survives its process.

The first transaction records the request and hides the room: from then on nobody reads it or writes to it, and nothing
new can be derived from it. What follows is removed in small steps, each of which may be repeated: finished work,
memories that rest on it, archives, vectors, messages. The last transaction removes what is left, and the request with
it, if no memory rests on the room any more. What goes is counted before the first step, and kept in the hidden room.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from roomlore.core.audience import Window, public_windows
from roomlore.core.deletion import RoomRedaction, RoomReport
from roomlore.core.errors import Conflict, StorageUnavailable, unknown_room
from roomlore.ports.archives import ArchivedMessages
from roomlore.ports.durable import DurableWork, Json, Steps, work_name
from roomlore.ports.noted import NotedWork
from roomlore.ports.shared import Backends
from roomlore.ports.vectors import MEMORIES, MESSAGES
from roomlore.services.privacy.forget_messages import EMPTIED_LEFT, ForgetTally, VectorEraser
from roomlore.services.privacy.forgetter import Forgetter
from roomlore.services.privacy.forgettings import Forgettings
from roomlore.services.privacy.requests import Requests
from roomlore.services.privacy.room_memories import GoneRoom, RoomMemories
from roomlore.storage import UnitOfWork
from roomlore.storage.values import DELETING

_AT_ONCE = 200
_ROUNDS = 3
_GOES = "removing what is stored of a room"
_GONE = "the room is gone"
_DERIVED = "Something was derived from the room just now; roomlore tries again."


class RoomDeletions(Requests):
    """The deletions of all tenants."""

    def __init__(
        self,
        backends: Backends,
        *,
        durable: DurableWork,
        forgetter: Forgetter,
        forgettings: Forgettings,
        memories: RoomMemories,
        vectors: VectorEraser,
        archives: ArchivedMessages,
    ) -> None:
        super().__init__(backends, durable=durable, kinds=(DELETING,))
        self._forgetter = forgetter
        self._forgettings = forgettings
        self._memories = memories
        self._vectors = vectors
        self._archives = archives

    async def would_delete(self, *, tenant: str, room_id: str) -> RoomReport:
        """Return what would go, and what would stay. Raise `UnknownRoom`, `Conflict` if it is being deleted."""
        return await self._counted(tenant, room_id)

    async def delete(self, *, tenant: str, room_id: str) -> RoomReport:
        """Delete the room now. If this breaks off, or leaves something, the background work of any process goes on with
        it. Raise `UnknownRoom`."""
        request, report = await self._begun(tenant, room_id)
        async with self._held(request):
            tally = await self._go(request, own_work="")
        await self._durable.retry(work_name(tenant, DELETING, request.own))  # so that work that failed is not listed
        return replace(report, left=tuple(tally.left.values()), finished_at=self._clock.now())

    async def begin(self, *, tenant: str, room_id: str) -> tuple[RoomReport, str]:
        """Hide the room, submit the work that deletes it, and return what will go, and the id of the work. Raise
        `UnknownRoom`."""
        request, report = await self._begun(tenant, room_id)
        return report, await self._submitted(request, patiently=False)

    async def work(self, steps: Steps, arguments: Json) -> Json | None:
        """Delete what was asked for, as durable work. Raise `StorageUnavailable` if something is left that another try
        may remove: the request stays, and the work is listed as failed until it is tried again."""
        request = await self._request(str(arguments["tenant"]), str(arguments["own"]))
        if request is not None:
            await steps.report(_GOES)
            tally = await self._go(request, own_work=request.own)
            if await self._request(request.room.tenant, request.own) is not None:
                places = " ".join(f"{left.place} ({left.count}): {left.why}" for left in tally.left.values())
                raise StorageUnavailable("room_deletion_incomplete", places=places)
            await steps.report(_GONE)
        return None

    async def _counted(self, tenant: str, room_id: str) -> RoomReport:
        begun, gone = self._clock.now(), GoneRoom(tenant, room_id, RoomRedaction(room_id))
        async with self._storage.reading(tenant) as work:
            room = await work.rooms.find(room_id=room_id)
            if room is None:
                await work.rooms.check_not_deleted(room_id=room_id)
                raise unknown_room(room_id)
            counts, people = await work.maintenance.count_of_room(room_id=room_id)
            remembered = await work.memories.scope(scope=gone.group)
        tally = ForgetTally(dry=True)
        tally.places.update(counts)
        if remembered is not None:
            tally.places.update({"group_memories": remembered.active, "memory_changes": remembered.changes})
        await self._memories.rewrite(gone, tally)
        return RoomReport(
            room_id=room_id,
            name=room.name,
            dry_run=True,
            places={place: count for place, count in tally.places.items() if count},
            retired=tuple(tally.retired),
            rewritten=tuple(tally.rewritten),
            stays={what: count for what, count in (("people", people), ("memories", len(tally.rewritten))) if count},
            started_at=begun,
            finished_at=self._clock.now(),
        )

    async def _begun(self, tenant: str, room_id: str) -> tuple[NotedWork, RoomReport]:
        """Return the request, recorded, and what was counted before. The room is hidden."""
        report = None
        with suppress(Conflict):  # it is hidden already
            report = await self._counted(tenant, room_id)
        async with self._storage.writing(tenant) as work:
            if report is not None and await work.rooms.lock_known(room_id=room_id) is not None:
                public = public_windows((await work.rooms.people(room_ids=[room_id]))[room_id])
                numbers = await self._drop_group(work, f"group:{room_id}")
                kept = _Kept(replace(report, dry_run=False), public, numbers)
                await work.maintenance.hide_room(room_id=room_id, report=kept.text())
            hidden = await work.maintenance.lock_hidden(room_id=room_id)
            if hidden is None:
                raise unknown_room(room_id)
            request = await self._recorded(work, room_id, DELETING)
        return request, _Kept.read(hidden[1]).report

    async def _go(self, request: NotedWork, *, own_work: str) -> ForgetTally:
        """Remove everything. The request is gone afterwards if the room is."""
        tenant, room_id, tally = request.room.tenant, request.room.room_id, ForgetTally(dry=False)
        async with self._storage.writing(tenant) as work:
            there = await work.maintenance.lock_hidden(room_id=room_id)
        if there is None:
            return tally
        last, kept = there[0], _Kept.read(there[1])
        gone = GoneRoom(tenant, room_id, RoomRedaction(room_id, kept.public))
        await self._forgetter.drop_work(tenant, {room_id, gone.group}.__contains__, tally, own_work)
        await self._forgetter.drop_cached(tenant, [room_id], tally)
        await self._archives.delete_all(tenant=tenant, room_id=room_id)
        for _ in range(_ROUNDS):
            await self._memories.rewrite(gone, tally)
            if not await self._without_vectors(gone, last, kept.numbers):
                tally.leave("rooms", 1, EMPTIED_LEFT)
                return tally
            if "durable work" in tally.left:
                return tally
            if await self._without_rows(gone):
                await self._forgettings.compact(tenant, tally)
                return tally
        tally.leave("memories", 1, _DERIVED)
        return tally

    async def _without_vectors(self, gone: GoneRoom, last: int, numbers: Sequence[int]) -> bool:
        """Remove all vectors, and return True if none is left. `last`, `numbers`: the last arrival, and the numbers of
        the memories of the room's group."""
        async with self._storage.reading(gone.tenant) as work:
            numbers = [*numbers, *await work.maintenance.numbers_in(scope=gone.group)]
        its = ((MESSAGES, gone.room_id, range(1, last + 1)), (MEMORIES, gone.group, numbers))
        done = [
            await self._vectors.remove_for_good(collection=collection, tenant=gone.tenant, scope=scope, numbers=some)
            for collection, scope, some in its
        ]
        return all(done)

    async def _drop_group(self, work: UnitOfWork, scope: str) -> Sequence[int]:
        """Delete the room's own memory, if there is any, and return the numbers of its versions."""
        if await work.memories.scope(scope=scope) is None:
            return ()
        await work.memories.lock(scope=scope, now=self._clock.now())
        await work.maintenance.drop_vector_scope(scope=scope)
        return await work.maintenance.drop_scope(scope=scope)

    async def _without_rows(self, gone: GoneRoom) -> bool:
        """Delete the messages in batches, and at last the room with its own memory and the request. Return False if a
        memory elsewhere rests on it: it was derived before the room was hidden, and stored after it."""
        while True:
            async with self._storage.writing(gone.tenant) as work:
                if await work.maintenance.lock_hidden(room_id=gone.room_id) is None:
                    return True
                if await work.maintenance.remove_messages(room_id=gone.room_id, limit=_AT_ONCE):
                    continue
                await self._drop_group(work, gone.group)
                if await work.maintenance.supports(room_id=gone.room_id):
                    return False
                await work.maintenance.drop_import_positions()
                await work.maintenance.remove_shell(room_id=gone.room_id)
                await self._forgettings.note_compaction(work)
                return True


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is kept in a hidden room. `public`: when everybody could hear what was said there; `numbers`: of the
    memories of its group, whose vectors are left."""

    report: RoomReport
    public: tuple[Window, ...]
    numbers: Sequence[int]

    def text(self) -> str:
        return json.dumps(asdict(self), default=datetime.isoformat)

    @classmethod
    def read(cls, text: str) -> "_Kept":
        values = json.loads(text)
        report = values["report"]
        report |= {name: datetime.fromisoformat(report[name]) for name in ("started_at", "finished_at")}
        report |= {name: tuple(report[name]) for name in ("retired", "rewritten", "left")}
        public = (Window(*map(datetime.fromisoformat, its.values())) for its in values["public"])
        return cls(RoomReport(**report), tuple(public), values["numbers"])
