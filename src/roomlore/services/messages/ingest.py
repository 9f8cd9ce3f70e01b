"""Adding messages: the quota, the turn of the writer, the plan, and the transaction that stores it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from roomlore.core.linking.model import LinkModel
from roomlore.core.models import Room
from roomlore.core.quotas import Quotas
from roomlore.ports.quotas import QuotaChecks
from roomlore.ports.shared import Backends, Service
from roomlore.ports.verbs import DueWork
from roomlore.services.messages.joint import Joint
from roomlore.services.messages.planning import INLINE, Batches, BatchPlan, Planner, check_conflicts, weight
from roomlore.services.messages.room_states import BatchStates, RoomCache

if TYPE_CHECKING:
    from roomlore.storage import UnitOfWork
    from roomlore.storage.stamps import Stamp

_TRIES = 4
_BRIEF = 8
"""The most messages of a batch that may share its transaction with others, or is planned while its rooms are
locked; and the most that come one by one and are added as one batch."""
Along = Callable[["UnitOfWork"], Awaitable[None]]


@dataclass(slots=True)
class _Written:
    """The rooms that a transaction has written to, as they are now, and their stamps, by id. `due`: True if work is to
    be announced."""

    rooms: dict[str, Room] = field(default_factory=dict)
    stamps: dict[str, "Stamp | None"] = field(default_factory=dict)
    due: bool = False


class _RoomMovedError(Exception):
    """Another writer was faster."""


class Ingest(Service):
    """Add batches for one tenant.

    `refuses`: if False, messages count for the tenant's quotas and are never refused. `one_writer`: True if the
    database has one writer at a time, and is near: then messages that come at once share their work whatever their
    rooms, and else only those to one room, which have to wait for each other.
    """

    def __init__(
        self,
        backends: Backends,
        *,
        tenant: str,
        model: LinkModel,
        rooms: RoomCache,
        due: DueWork,
        quotas: QuotaChecks,
        refuses: bool = True,
        one_writer: bool = False,
    ) -> None:
        super().__init__(backends)
        self._quotas = quotas
        self._refuses = refuses
        self._tenant = tenant
        self._due = due
        self._rooms = rooms
        self._planner = Planner(backends, tenant=tenant, model=model, rooms=rooms)
        self._joint = Joint(
            rooms.turns,
            tenant,
            partial(self._add_now, strict=False),
            most=_BRIEF,
            most_weight=INLINE,
            across=one_writer,
        )

    async def add(self, batches: Batches, *, strict: bool, along: Along | None = None) -> list[BatchPlan]:
        """Store the batches, all of them or none. `strict`: a conflict raises `Conflict` and nothing is stored.

        `along` writes something of the caller's in the same transaction, after the messages. It is called again if the
        transaction is retried, and not at all if every message existed already.
        """
        messages = [message for batch in batches.values() for message in batch]
        if along is not None or len(messages) != 1:
            async with self._joint.turn(batches):
                return await self._add_now(batches, strict=strict, along=along)
        plan = await self._joint.add(messages[0], weight(messages))
        if strict:
            check_conflicts(plan.intake.conflicts)
        return [plan]

    async def _add_now(self, batches: Batches, *, strict: bool, along: Along | None = None) -> list[BatchPlan]:
        """Add batches to rooms whose turn it is."""
        limits = await self._quotas.of(self._tenant)
        few = sum(map(len, batches.values())) <= _BRIEF
        if few and self._rooms.have(self._tenant, batches):
            return await self._try_locked(batches, strict=strict, along=along, limits=limits)
        for _ in range(_TRIES):
            try:
                return await self._try(batches, strict=strict, along=along, limits=limits)
            except _RoomMovedError:
                continue
        return await self._try_locked(batches, strict=strict, along=along, limits=limits)

    async def _try(self, batches: Batches, *, strict: bool, along: Along | None, limits: Quotas) -> list[BatchPlan]:
        states = self._rooms.hold()
        plans = await self._planner.plan(None, batches, states, strict=strict)
        written = _Written()
        if any(plan.entries for plan in plans):
            brief = along is None and sum(len(plan.entries) for plan in plans) <= _BRIEF
            rooms = None if along else batches.keys()
            async with self._storage.writing(self._tenant, brief=brief, rooms=rooms) as work:
                for plan in sorted(plans, key=lambda plan: plan.room.room_id):
                    if plan.entries:
                        await self._lock(work, plan.room)
                written = await self._write(work, plans, along, limits)
        return self._done(plans, states, written)

    async def _try_locked(
        self, batches: Batches, *, strict: bool, along: Along | None, limits: Quotas
    ) -> list[BatchPlan]:
        """Plan while holding the rooms' locks: no plan is in vain, and each room is read once."""
        states = self._rooms.hold()
        brief = along is None and sum(map(len, batches.values())) <= _BRIEF
        rooms = None if along else batches.keys()
        async with self._storage.writing(self._tenant, brief=brief, rooms=rooms) as work:
            plans = await self._planner.plan(work, dict(sorted(batches.items())), states, strict=strict)
            written = await self._write(work, plans, along, limits)
        places = {room_id: place for place, room_id in enumerate(batches)}
        return self._done(sorted(plans, key=lambda plan: places[plan.room.room_id]), states, written)

    async def _lock(self, work: "UnitOfWork", planned: Room) -> None:
        """Lock a room. Raise `_RoomMovedError` if it is not as it was when the plan was made."""
        locked = await work.rooms.lock(room_id=planned.room_id, now=self._clock.now())
        made_again = planned.revision > 0 and locked.created_at != planned.created_at
        if made_again or locked.revision != planned.revision:
            raise _RoomMovedError

    async def _write(
        self, work: "UnitOfWork", plans: Sequence[BatchPlan], along: Along | None, limits: Quotas
    ) -> _Written:
        """Store what was planned for rooms that are locked."""
        written = _Written()
        for plan in plans:
            if not plan.entries:
                continue
            room, room_id = plan.room, plan.room.room_id
            linked = room.linked.grown(
                self._planner.version, newest=room.next_arrival - 1, calibration=plan.calibration
            )
            stored = await work.messages.append(
                room_id=room_id, entries=plan.entries, linked=None if linked == room.linked else linked
            )
            written.due |= await self._due.note(work, room_id, plan.entries)
            if plan.relinked:
                relinked = await work.messages.relink(room_id=room_id, links=plan.relinked)
                stored = relinked.room
            written.rooms[room_id] = stored
            written.stamps[room_id] = self._storage.stamp(self._tenant, room_id, work.connection)
        if written.rooms:
            added = sum(len(plan.entries) for plan in plans)
            await self._quotas.count_messages(work, limits, added=added, refuses=self._refuses)
        if written.rooms and along is not None:
            await along(work)
        return written

    def _done(self, plans: list[BatchPlan], states: BatchStates, written: _Written) -> list[BatchPlan]:
        """Announce due work once the transaction is committed, and keep the states. One that is not whole is dropped if
        links of older messages changed: the store also moves what answers these by way of messages that are not in
        memory, so the state may be wrong."""
        if written.due:
            self._due.announce()
        for room_id, stored in written.rooms.items():
            self._rooms.stamp(stored, written.stamps[room_id])
        moved = {plan.room.room_id for plan in plans if plan.relinked}
        for room, state in states:
            if room.room_id not in moved or state.is_whole:
                self._rooms.keep(written.rooms.get(room.room_id, room), state)
        return plans
