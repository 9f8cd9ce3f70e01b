"""Adding a batch: read what is there, reckon features and links, write all of it if nobody was faster.

Reckoning is processor work and holds no lock. The room's revision, compared under the room's row lock, is the guard:
if another writer moved it, the batch is reckoned again on what is stored now. So the order of arrival alone decides the
links.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from roomlore.core.errors import Conflict
from roomlore.core.intake import Intake, sort_out
from roomlore.core.linking import LinkModel, version_of
from roomlore.core.models import Message, Room
from roomlore.core.room_state import WINDOW, Arrivals, RoomState
from roomlore.ports.coordination import Clock
from roomlore.ports.language import TokenCounter
from roomlore.ports.storage import Storage, UnitOfWork
from roomlore.services.messages.due import Due
from roomlore.services.messages.room_cache import RoomCache

_INLINE = 8
_TRIES = 4

Batches = Mapping[str, Sequence[Message]]
Along = Callable[[UnitOfWork], Awaitable[None]]


@dataclass(slots=True)
class Plan:
    """What one room's share of a batch comes to, and the state it was reckoned on."""

    room: Room
    state: RoomState
    intake: Intake
    arrivals: Arrivals


class _RoomMovedError(Exception):
    """Another writer was faster."""


class Ingest:
    """Adds batches for one tenant."""

    def __init__(
        self,
        *,
        tenant: str,
        storage: Storage,
        model: LinkModel,
        tokens: TokenCounter,
        clock: Clock,
        rooms: RoomCache,
        due: Due,
    ) -> None:
        self._tenant = tenant
        self._due = due
        self._storage = storage
        self._model = model
        self._version = version_of(model)
        self._tokens = tokens
        self._clock = clock
        self._rooms = rooms

    async def add(self, batches: Batches, *, strict: bool, along: Along | None = None) -> list[Plan]:
        """Stores the batches, all of them or none. `strict`: a conflict raises `Conflict` and nothing is stored.

        `along` writes something of the caller's into the same transaction, after the messages; it is called again where
        that had to be tried again, and not at all where every message was there already.
        """
        async with self._rooms.alone(self._tenant, batches):
            for _ in range(_TRIES):
                try:
                    return await self._try(batches, strict=strict, along=along)
                except _RoomMovedError:
                    continue
            return await self._insist(batches, strict=strict, along=along)

    async def _try(self, batches: Batches, *, strict: bool, along: Along | None) -> list[Plan]:
        async with self._storage.reading() as work:
            plans = [await self._plan(work, room_id, batch) for room_id, batch in batches.items()]
        await self._reckon(plans, strict=strict)
        written: dict[str, Room] = {}
        if any(plan.arrivals.entries for plan in plans):
            async with self._storage.writing() as work:
                written = await self._write(work, plans, along)
            self._due.announce()
        return self._remember(plans, written)

    async def _insist(self, batches: Batches, *, strict: bool, along: Along | None) -> list[Plan]:
        """The last resort under heavy contention: reckons while holding the rooms' locks."""
        async with self._storage.writing() as work:
            for room_id in sorted(batches):
                await work.rooms.lock(tenant=self._tenant, room_id=room_id, now=self._clock.now())
            plans = [await self._plan(work, room_id, batch) for room_id, batch in batches.items()]
            await self._reckon(plans, strict=strict)
            written = await self._write(work, plans, along)
        self._due.announce()
        return self._remember(plans, written)

    async def _plan(self, work: UnitOfWork, room_id: str, batch: Sequence[Message]) -> Plan:
        room = await work.rooms.find(tenant=self._tenant, room_id=room_id)
        if room is None:
            room = Room(tenant=self._tenant, room_id=room_id, created_at=self._clock.now())
            state = RoomState(model=self._model, room=room, participants={}, entries=())
            return Plan(room, state, sort_out(batch, {}), state.begin((), ()))
        state = self._rooms.take(room) or await self._read(work, room)
        ids = [message.id for message in batch]
        known = await work.messages.fingerprints(tenant=self._tenant, room_id=room_id, message_ids=ids)
        intake = sort_out(batch, known)
        wanted = [m.reply_to for m in intake.fresh if m.reply_to and not state.holds(m.reply_to)]
        targets = await work.messages.by_id(tenant=self._tenant, room_id=room_id, message_ids=wanted)
        fresh = [message.id for message in intake.fresh]
        found = await work.threads.waiting(tenant=self._tenant, room_id=room_id, message_ids=fresh)
        waiting = [entry for entry in found if room.linked.adopts(entry.message.arrival)]
        return Plan(room, state, intake, state.begin(targets, waiting))

    async def _read(self, work: UnitOfWork, room: Room) -> RoomState:
        names = await work.rooms.participants(tenant=self._tenant, room_id=room.room_id)
        entries = await work.messages.tail(tenant=self._tenant, room_id=room.room_id, limit=WINDOW)
        return RoomState(
            model=self._model,
            room=room,
            participants=names,
            entries=entries,
            calibration=room.linked.calibrated(self._version),
            learning=room.linked.whole(self._version, newest=room.next_arrival - 1),
        )

    async def _reckon(self, plans: Sequence[Plan], *, strict: bool) -> None:
        conflicts = [message_id for plan in plans for message_id in plan.intake.conflicts]
        if strict and conflicts:
            raise Conflict(
                f"{len(conflicts)} message(s) are stored already with other content, {conflicts[0]!r} for one; nothing "
                "was added. Use edit to change a message, or on_conflict='report' to add the others."
            )
        if sum(len(plan.intake.fresh) for plan in plans) <= _INLINE:
            self._link(plans)
        else:
            await asyncio.to_thread(self._link, plans)

    def _link(self, plans: Sequence[Plan]) -> None:
        now = self._clock.now()
        for plan in plans:
            counts = self._tokens.count([message.text for message in plan.intake.fresh])
            for message, tokens in zip(plan.intake.fresh, counts, strict=True):
                plan.arrivals.absorb(message, tokens=tokens, now=now)

    async def _write(self, work: UnitOfWork, plans: Sequence[Plan], along: Along | None) -> dict[str, Room]:
        written: dict[str, Room] = {}
        for plan in sorted(plans, key=lambda plan: plan.room.room_id):
            if not plan.arrivals.entries:
                continue
            room_id = plan.room.room_id
            locked = await work.rooms.lock(tenant=self._tenant, room_id=room_id, now=self._clock.now())
            if locked.revision != plan.room.revision:
                raise _RoomMovedError
            linked = locked.linked.grown(
                self._version, newest=locked.next_arrival - 1, calibration=plan.state.calibration
            )
            written[room_id] = await work.writer.append(
                tenant=self._tenant, room_id=room_id, entries=plan.arrivals.entries, linked=linked
            )
            await self._due.note(work, self._tenant, room_id, plan.arrivals.entries)
            if plan.arrivals.relinked:
                written[room_id] = await work.writer.relink(
                    tenant=self._tenant, room_id=room_id, links=plan.arrivals.relinked
                )
        if written and along is not None:
            await along(work)
        return written

    def _remember(self, plans: list[Plan], written: Mapping[str, Room]) -> list[Plan]:
        for plan in plans:
            self._rooms.keep(written.get(plan.room.room_id, plan.room), plan.state)
        return plans
